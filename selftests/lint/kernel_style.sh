#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The kernel's own checkpatch --strict and kernel-doc (6.1's -v and 6.12's -Wall: undocumented
# parameters, members and return values) have nothing to say about kmod/ and uapi/, but for
# what checkpatch.allow lists with its reason.

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=../tap.sh
. selftests/tap.sh
# shellcheck source=../lib/kernel_tree.sh
. selftests/lib/kernel_tree.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
tree=$(kernel_tree "$PWD") || bail "no kernel sources"
newer=$(selftests/vm/saina-vm kernel-tools) || bail "no kernel tools"
find kmod uapi -name '*.[ch]' ! -name '*.mod.c' | sort >"$tmp/files"
[ "$(wc -l <"$tmp/files")" -gt 30 ]
point $? "kernel style: sources are found ($(wc -l <"$tmp/files"))"

xargs perl "$tree/scripts/checkpatch.pl" --strict --no-tree --file --terse --no-summary --show-types \
	<"$tmp/files" >"$tmp/checkpatch" 2>&1
# Allowed: TYPE GLOB: reason
while read -r type glob _; do
	case $type in ''|'#'*) continue ;; esac
	echo "$type ${glob%:}"
done <selftests/lint/checkpatch.allow >"$tmp/allow"
declare -A used=()
while IFS= read -r line; do
	[[ $line =~ ^([^:]+):[0-9]+:\ (CHECK|WARNING|ERROR):([A-Z_0-9]+): ]] || { echo "$line"; continue; }
	found=
	while read -r type glob; do
		# shellcheck disable=SC2053 # a glob
		if [[ $type = "${BASH_REMATCH[3]}" && ${BASH_REMATCH[1]} == $glob ]]; then
			found=1
			used["$type $glob"]=1
		fi
	done <"$tmp/allow"
	[ -n "$found" ] || echo "$line"
done <"$tmp/checkpatch" >"$tmp/remarks"
check "checkpatch --strict: no remark that is not allowed" [ ! -s "$tmp/remarks" ] || diag "$(cat "$tmp/remarks")"
unused=$(while IFS= read -r line; do [ -n "${used[$line]-}" ] || echo "$line"; done <"$tmp/allow")
check "checkpatch --strict: every allowed remark is made" [ -z "$unused" ] || diag "$unused"

xargs perl "$tree/scripts/kernel-doc" -v -none <"$tmp/files" 2>&1 | grep -v ': info: ' >"$tmp/doc"
check "kernel-doc -v: no remark" [ ! -s "$tmp/doc" ] || diag "$(cat "$tmp/doc")"
xargs perl "$newer/scripts/kernel-doc" -Wall -none <"$tmp/files" >"$tmp/doc" 2>&1
check "kernel-doc -Wall: no remark" [ ! -s "$tmp/doc" ] || diag "$(cat "$tmp/doc")"

# All three find planted faults.
printf '%s\n' '// SPDX-License-Identifier: GPL-2.0' '/**' ' * f() - does nothing' ' */' \
	'int f(int x)' '{' '    if(x) return 1;' '}' >"$tmp/bad.c"
perl "$tree/scripts/checkpatch.pl" --strict --no-tree --file --terse --show-types "$tmp/bad.c" 2>&1 | grep -q ERROR
point $? "checkpatch --strict: a planted fault is found"
perl "$tree/scripts/kernel-doc" -v -none "$tmp/bad.c" 2>&1 | grep -q "parameter or member 'x' not described"
point $? "kernel-doc -v: a planted fault is found"
perl "$newer/scripts/kernel-doc" -Wall -none "$tmp/bad.c" 2>&1 | grep -q "No description found for return value of 'f'"
point $? "kernel-doc -Wall: a planted fault is found"
plan
