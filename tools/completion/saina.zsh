#compdef saina
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Completion of the saina command for zsh: runs the completion for bash, in bash.
local completion=/usr/share/bash-completion/completions/saina
local -a found
[[ -r ${SAINA_COMPLETION:-$completion} ]] || return 1
found=(${(f)"$(bash -c 'source "$0" && COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) && _saina && printf "%s\n" "${COMPREPLY[@]}"' \
	"${SAINA_COMPLETION:-$completion}" "${(@)words[1,CURRENT]}" 2>/dev/null)"})
# Words that end in = get no space.
compadd -S '' -- ${(M)found:#*=}
compadd -- ${found:#*=}
