# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Completion of the saina command for bash.  The names of jobs, workers and ports come
# from the running control plane: the command that is being completed asks it, with the
# socket and the network namespace given on the line.

# _saina_ask KEY WORD...: prints all values of KEY in the output of `saina -j WORD...'
_saina_ask() {
	local key=$1
	shift
	"${COMP_WORDS[0]}" "${_saina_socket[@]}" -j "$@" 2>/dev/null |
		grep -o "\"$key\":\(\"[^\"]*\"\|[0-9]*\)" | sed 's/^[^:]*://; s/"//g' | sort -u
}

# _saina_keys WORD...: prints those words that are not on the line yet
_saina_keys() {
	local key out=
	for key; do
		[[ " ${_saina_rest[*]} " == *" $key "* ]] || out+=" $key"
	done
	echo "$out"
}

_saina_uplink="uplink parent-job parent-worker parent-token-file"
_saina_bench="workers policy seconds -b -e -f"

# _saina_policy WORD: prints the policies, or what may follow in WORD if it begins one, such as
# fastest:k=3,
_saina_policy() {
	local begun=${1%"${1##*[:,]}"} key keys
	case $1 in
	fastest:*,*) keys="timeout= kmin= late=residual late=drop lead= lead=none" ;;
	sfcd:*,*) keys="kmin= kmax= sth= cth= stride= late=residual late=drop lead= lead=none parity down" ;;
	timeout:*,*) keys="kmin= late=residual late=drop lead= lead=none" ;;
	external:*,*) keys="late=residual late=drop lead= lead=none" ;;
	coded:*,*) keys="lead= lead=none" ;;
	*)
		echo "bsp fastest:k= sfcd:k0=1,sth=0.5,cth=5 timeout:10ms external:k0= coded:s=1 ssp:10 asp grouped:g="
		return ;;
	esac
	for key in $keys; do
		[[ $begun == *[:,]"${key%%=*}"[=,]* ]] || echo "$begun$key"
	done
}

# Prints the words that may stand at the cursor.
_saina_words() {
	local object=${_saina_rest[0]-} command=${_saina_rest[1]-} n=${#_saina_rest[@]} prev=
	[ "$n" -gt 0 ] && prev=${_saina_rest[n - 1]}
	if [ "$n" = 0 ]; then
		echo "job worker port policy slot stats limits monitor top bench doctor help -j -p -s -n --show-tokens -V -h"
		return
	fi
	if [ "$n" = 1 ]; then
		case $object in
		job) echo "show add set del help" ;;
		worker) echo "show set del help" ;;
		port | limits) echo "show set help" ;;
		policy) echo "set cancel control help" ;;
		slot) echo "show help" ;;
		stats) echo "show drops help" ;;
		monitor) echo "all config events arrivals help" ;;
		top)
			echo "interval help"
			_saina_ask name job show ;;
		bench) echo "$_saina_bench help" ;;
		doctor) echo "host worker help" ;;
		esac
		return
	fi
	case $object:$command:$n:$prev in
	bench:*:policy) _saina_policy "$cur" ;;
	bench:*:workers | bench:*:seconds | bench:*:-?) ;;
	bench:*)
		# shellcheck disable=SC2086 # words
		_saina_keys $_saina_bench ;;
	job:show:2:* | job:set:2:* | job:del:2:* | worker:*:2:* | policy:*:2:* | monitor:arrivals:2:*)
		_saina_ask name job show ;;
	slot:show:2:*)
		echo older-than
		_saina_ask name job show ;;
	stats:*:2:*)
		echo global all
		_saina_ask name job show ;;
	worker:*:3:*)
		_saina_ask worker worker show "${_saina_rest[2]}" ;;
	stats:*:3:*)
		echo all
		_saina_ask worker worker show "${_saina_rest[2]}" ;;
	port:*:2:*)
		_saina_ask port port show ;;
	job:*:policy | policy:set:3:*) _saina_policy "$cur" ;;
	job:show:3:*) echo tokens ;;
	policy:set:*:from) ;;
	policy:set:*:on) echo "k degraded worker-joined worker-dead" ;;
	policy:set:*) _saina_keys from on ;;
	policy:control:*:noise | policy:control:*:groups | policy:control:*:interval) ;;
	policy:control:*) _saina_keys noise groups interval ;;
	job:*:state) echo "forming running stopped" ;;
	job:*:type) echo "int32 int16 float32 bfloat16" ;;
	job:*:payload) echo "64 128 256 352 1024 2048" ;;
	worker:*:state) echo "alive slow dead left" ;;
	port:set:*:hook) echo "auto xdp generic tc" ;;
	doctor:host:*:bridge)
		ls /sys/class/net 2>/dev/null ;;
	job:*:elements) echo auto ;;
	# keys whose value only the user knows
	*:workers | *:k | *:id | *:pool | *:ring | *:token | *:exponent | *:heartbeat | \
	*:dead | *:loss-in | *:loss-out | *:seed | *:jobs | *:memory | \
	*:memory-job | *:older-than | *:to | *:ovsdb | *:config | *:weights | *:uplink | \
	*:parent-*) ;;
	job:add:2:*) ;;	# a new name
	job:add:*)
		# shellcheck disable=SC2086 # words
		_saina_keys elements workers id payload pool ring type policy token token-file exponent \
			heartbeat dead by-reference by-reference-only weights $_saina_uplink ;;
	job:set:*)
		# shellcheck disable=SC2086 # words
		_saina_keys policy k state token token-file heartbeat dead $_saina_uplink ;;
	worker:set:*) _saina_keys state ;;
	port:set:*) _saina_keys hook loss-in loss-out seed ;;
	slot:show:*) _saina_keys older-than ;;
	top:*:interval) ;;
	top:*) _saina_keys interval ;;
	stats:*:4:*) echo all ;;
	limits:set:*) _saina_keys jobs memory-job memory ;;
	doctor:host:*) _saina_keys bridge ovsdb config ;;
	doctor:worker:*) _saina_keys to ;;
	esac
}

_saina() {
	local cur=${COMP_WORDS[COMP_CWORD]} first=$COMP_CWORD i _saina_rest=() _saina_socket=()
	# bash splits words at : and =, and replaces only the last piece: join the pieces
	while ((first > 1)) && [[ $cur == [:=]* || ${COMP_WORDS[first - 1]} == *[:=] ]]; do
		cur=${COMP_WORDS[--first]}$cur
	done
	for ((i = 1; i < first; i++)); do
		case ${COMP_WORDS[i]} in
		-s | --socket)
			_saina_socket+=(-s "${COMP_WORDS[i + 1]}")
			i=$((i + 1)) ;;
		-n | --netns)
			_saina_socket+=(-n "${COMP_WORDS[i + 1]}")
			i=$((i + 1)) ;;
		-*) [ ${#_saina_rest[@]} = 0 ] || _saina_rest+=("${COMP_WORDS[i]}") ;;
		*) _saina_rest+=("${COMP_WORDS[i]}") ;;
		esac
	done
	COMPREPLY=()
	if [ "${COMP_WORDS[COMP_CWORD - 1]}" = -s ]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$cur")
		return
	fi
	if [ "${COMP_WORDS[COMP_CWORD - 1]}" = -n ]; then
		mapfile -t COMPREPLY < <(compgen -W "$(ls /run/netns 2>/dev/null)" -- "$cur")
		return
	fi
	mapfile -t COMPREPLY < <(compgen -W "$(_saina_words)" -- "$cur")
	[[ ${COMPREPLY[*]} != *= ]] || compopt -o nospace 2>/dev/null
	[ "$first" = "$COMP_CWORD" ] || COMPREPLY=("${COMPREPLY[@]#"${cur%"${cur##*[:=]}"}"}")
}

complete -F _saina saina
