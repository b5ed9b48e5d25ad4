#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Runs tests with programs that are built with gcc's sanitizers, in a build directory of their
# own:
#
#	sanitize.sh address	ASan, LSan and UBSan: test programs, the agent, the tool
#				and workers in labs
#	sanitize.sh thread	TSan: libsaina and its threads, and those of what uses it

set -u
top=$(readlink -f "$(dirname "$0")/../..")
cd "$top" || exit 1
kind=$1
normal=${SAINA_BUILD:-$top/build}
B=$normal/san-$kind
# shellcheck source=../tap.sh
. selftests/tap.sh
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
child=
# On a signal the test that runs takes its lab down.
trap '[ -z "$child" ] || { kill -TERM "$child"; wait "$child"; }; exit 130' INT TERM HUP

case $kind in
address)
	# Not those that compare the BPF programs with the oracle for minutes.
	programs='_test$' without='^(trace_test|race_test)$'
	scripts=(unit/sainad_test tool/tool_test net/agent net/join)
	export SAINA_SLOW=3 ;;
thread)
	programs='^lib_.*_test$' without='^$'
	scripts=(net/death net/loss "mpi/mpi quick")
	export SAINA_SLOW=6 SAINA_TEST_SHRINK=2 ;;
*)
	echo "usage: sanitize.sh address | thread" >&2
	exit 2 ;;
esac
# Reports go to files: daemons and workers of a lab have no terminal.
export ASAN_OPTIONS=log_path=$tmp/report:detect_stack_use_after_return=1
export UBSAN_OPTIONS=log_path=$tmp/report:print_stacktrace=1
export TSAN_OPTIONS=log_path=$tmp/report:second_deadlock_stack=1
export LSAN_OPTIONS=log_path=$tmp/report

# Unit test programs of the quick tier whose names match, with their arguments: a test has the name of its
# program.
mapfile -t chosen < <(awk -v re="$programs" -v without="$without" '
	$2 == "quick" && $3 == "unit" && $1 ~ re && $1 !~ without && $5 ~ "/selftests/" $1 "$" {
		line = $1
		for (i = 6; i <= NF; i++)
			line = line " " $i
		print line
	}' "$normal/tests.list")
names=("${chosen[@]%% *}")
[ ${#names[@]} -gt 3 ]
point $? "$kind: test programs are chosen (${#names[@]})"
targets=("${names[@]/#/$B/selftests/}" "$B"/{saina,sainad,saina-allreduce,saina_xdp.bpf.o,saina_tc.bpf.o,selftests/rawsend})
[ "$kind" = address ] || targets+=("$B"/{libsaina-mpi.so,selftests/mpi-sums})
make SAN="$kind" B="$B" -j2 "${targets[@]}" >"$tmp/make" 2>&1
point $? "$kind: the programs are built" || { diag "$(tail -n 20 "$tmp/make")"; bail "nothing to run"; }

# The sanitizers themselves: they report a program with planted faults.
printf '%s\n' '#include <pthread.h>' '#include <stdlib.h>' 'int shared;' \
	'static void *add(void *p) { shared++; return p; }' \
	'int main(void) { pthread_t t; char *m = malloc(4); pthread_create(&t, 0, add, 0); shared++;' \
	'pthread_join(t, 0); free(m); return m[(shared > 0) + 1]; }' >"$tmp/bad.c"
gcc -w -g -fsanitize="$kind" -o "$tmp/bad" "$tmp/bad.c" -pthread && ! setarch -R "$tmp/bad" >/dev/null 2>&1 &&
	ls "$tmp"/report.* >/dev/null 2>&1
point $? "$kind: a planted fault is reported"
rm -f "$tmp"/report.*

# again NAME COMMAND...: runs a test; its points, and one that no sanitizer has reported anything
again() {
	setarch -R "${@:2}" >"$tmp/log" 2>&1 </dev/null &
	child=$!
	wait "$child"
	local status=$?
	child=
	pass_on "$kind $1" $status "$tmp/log"
	! ls "$tmp"/report.* >/dev/null 2>&1
	point $? "$kind $1: no report of a sanitizer" || diag "$(head -qn 60 "$tmp"/report.* | head -n 200)"
	rm -f "$tmp"/report.*
}

export SAINA_BUILD=$B CMOCKA_MESSAGE_OUTPUT=TAP
for t in "${chosen[@]}"; do
	read -ra words <<<"$t"
	again "${words[0]}" "$B/selftests/${words[0]}" "${words[@]:1}"
done
if [ "$(id -u)" = 0 ]; then
	for t in "${scripts[@]}"; do
		read -ra words <<<"$t"
		again "${words[0]##*/}" "selftests/${words[0]}.sh" "${words[@]:1}"
	done
fi
plan
