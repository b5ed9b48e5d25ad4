#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The Python package: four processes of selftests/python/api.py, in one of its cases after
# the other, with numpy arrays, or, `python.sh torch', with torch tensors.
#
#     worker 0 .. 3: w0 .. w3 --- br0
#
#	python.sh [numpy|torch [quick]]		quick: without the case that mostly waits
#
# 1. One case after the other
# 2. coded: the part that a worker computes follows the policy
# 3. Logs go to Python, and Ctrl-C ends the waiting

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../python/lib.sh
. "$NET_DIR/../python/lib.sh"
with=${1-numpy}
# A worker without multicast.  A root that is late for a broadcast: the others go on without it, and it
# skips what it missed; a worker whose round has more buckets than that of the others.
expected_log='worker 3 .* gets no redirected frames|job (broadcast|broadcast_late|broadcast_first|buckets|agree): worker [0-9]+ asked for round [0-9]+, which is gone'

lab_up --workers 4

# run_case NAME [saina job add's words]: runs a case in a new job, and repeats its points.  The function
# NAME_meanwhile is called, if there is one.
run_case() {
	local name=$1 i
	job "$name" id 0 elements 20000 workers 4 token s3cret "${@:2}"
	rm -f "$WORK"/*.py.out
	for i in 0 1 2 3; do
		py "$i" "$i" "$TOP/selftests/python/api.py" "$name" "${with#numpy}"
	done
	[ "$(type -t "${name}_meanwhile")" != function ] || "${name}_meanwhile"
	check "$with $name: all workers end well" wait_all 120
	points "$with $name"
	saina job del "$name" >/dev/null
}

# 1. One case after the other
run_case reduce
equal "$with reduce: all have the same float32 mean, to the last bit" 1 \
	"$(sed -n 's/^digest //p' "$WORK"/*.py.out | sort -u | wc -l)"
run_case broadcast policy fastest:k=3
# Without multicast worker 3 gets only results that it asks for.
no_multicast=(INPUT -d 239.190.0.0/16 -j DROP)
in_worker 3 iptables -A "${no_multicast[@]}" || bail "worker 3 has no packet filter"
run_case broadcast_late policy fastest:k=3,lead=none
in_worker 3 iptables -D "${no_multicast[@]}"
run_case broadcast_first policy fastest:k=3
equal "$with broadcast_first: all end the broadcast of a worker that has left in the same round" 1 \
	"$(sort -u "$WORK"/round-[123] | wc -l)"
run_case residual policy fastest:k=3
equal "$with residual: what was produced is in the results or the residuals" "True" "$(/usr/bin/python3 -c '
import numpy, sys
f = [numpy.load(p) for p in sys.argv[1:]]
u = lambda x: x.astype(numpy.uint32)
print(all((f[0]["done"] == g["done"]).all() for g in f) and
      (sum(u(g["mine"]) for g in f) == u(f[0]["done"]) + sum(u(g["left"]) for g in f)).all())' "$WORK"/residual-?.npz)"
run_case refuse
run_case fork
run_case twin
# job show names the worker at once; workers find out after twice dead-ms.
starts_less_is_named() {
	[[ $(saina_jq job show sizes '.[0].slow // ""') =~ ^waiting\ for\ worker\ 3\ for\ .*\;\ worker\ 3\ is\ at\ round\ 2\ already ]]
}
sizes_meanwhile() {
	check "$with sizes: job show names the worker that starts fewer elements" slowwait 60 starts_less_is_named
}
[ "${2-}" = quick ] || run_case sizes dead 5000
run_case buckets
run_case agree policy fastest:k=3
run_case saturate policy ssp:2

# 2. coded: the part that a worker computes follows the policy
all_say() { # TEXT
	local i
	for i in 0 1 2 3; do
		grep -q "^ok $1" "$WORK/$i.py.out" || return 1
	done
}
coded_meanwhile() {
	check "$with coded: five rounds are done" slowwait 60 all_say "coded: sums"
	check "$with coded: bsp is set" saina policy set coded bsp
	check "$with coded: five rounds of bsp are done" slowwait 60 all_say "bsp: sums"
	check "$with coded: coded is set again" saina policy set coded coded:s=1
}
run_case coded policy coded:s=1

# 3. Logs go to Python, and Ctrl-C ends the waiting
log_case() {
	local i
	job log id 0 elements 20000 workers 4 token s3cret
	for i in 0 1 2; do
		py "$i" "$i" "$TOP/selftests/python/api.py" log "${with#numpy}"
	done
	for i in 0 1 2; do
		slowwait 60 grep -q "^log .*waits for its workers" "$WORK/$i.py.out" || return 1
	done
	[ "${1-}" != interrupt ] || return 0
	py 3 3 "$TOP/selftests/python/api.py" log "${with#numpy}"
	wait_all 60
}
check "$with log: workers whose log goes to Python wait for the last one, and go on" log_case
points "$with log"
saina job del log >/dev/null
check "$with join: three of four workers wait for the last one" log_case interrupt
kill -INT "${worker_pids[@]}"
for i in 0 1 2; do
	check "$with join: Ctrl-C ends the waiting of worker $i" slowwait 30 grep -q KeyboardInterrupt "$WORK/$i.err"
done
equal "$with join: workers that Ctrl-C ends have left the job" "left left left" \
	"$(saina_jq worker show log '[.[] | select(.state != "none") | .state] | join(" ")')"

finished
