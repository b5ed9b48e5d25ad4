# shellcheck shell=bash disable=SC2034,SC2154
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Jobs across hosts, for tests (after lib.sh) and tools/demo-tree: see tools/lab/tree.sh for the lab.

# tree_lab HOSTS WORKERS [saina-lab's options]: the lab; sets hosts and each (workers of a host)
tree_lab() {
	hosts=$1 each=$2
	"$LAB_TOOL" tree up "$LAB" --owner $$ --bridge linux --hosts "$1" --workers "$2" "${@:3}" >"$WORK/tree" ||
		bail "the tree did not come up"
}

# tree_complaints: what the agents have said and expected_log has not
tree_complaints() {
	local log complaints
	for log in "/run/saina-lab/$LAB"*/sainad.log; do
		complaints=$(grep -aE '(error|warn(ing)?)[]:> ]' "$log" | grep -avE "$expected_log")
		if [ -n "$complaints" ]; then
			not_ok "the agents complained of nothing unexpected"
			diag "$log: $complaints"
		fi
	done
}

# In the place of lib.sh's: takes the tree down.
lab_down() {
	tree_complaints
	"$LAB_TOOL" tree down "$LAB" || not_ok "the tree could be taken down"
}

# tree_routes: IP from any worker, and the root's host, to any other, by the hosts
tree_routes() {
	local h g i ns
	in_switch sysctl -qw net.ipv4.ip_forward=1
	for ((h = 0; h < hosts; h++)); do
		in_switch ip route replace "10.190.$((h + 1)).0/24" via "10.190.0.$((10 + h))"
		ns=/run/netns/saina-$LAB-w$h
		nsenter --net="$ns" -- sysctl -qw net.ipv4.ip_forward=1
		for ((g = 0; g < hosts; g++)); do
			[ "$g" = "$h" ] || nsenter --net="$ns" -- ip route replace "10.190.$((g + 1)).0/24" via "10.190.0.$((10 + g))"
		done
		for ((i = 0; i < each; i++)); do
			nsenter --net="/run/netns/saina-$LAB.h$h-w$i" -- ip route replace default via "10.190.$((h + 1)).1"
		done
	done
}

# saina_at root|HOST WORDS...: the tool, at the agent of the root or of a host
saina_at() {
	local lab=$LAB
	[ "$1" = root ] || lab=$LAB.h$1
	"$B/saina" -s "/run/saina-lab/$lab/control" "${@:2}"
}

# tree_job NAME ELEMENTS [words of both jobs]: the root's job, and one of each host below it
# tree_dead: milliseconds without a message after which a worker is dead; tree_token: of all jobs; tree_plain:
# workers that the root's job has itself, behind those of the hosts
tree_job() {
	local h out name=$1 elements=$2 dead=$((${tree_dead:-15000} * SLOW))
	[ "$dead" -le 65535 ] || dead=65535
	local weights=$each below=()
	shift 2
	if [ -n "${tree_token-}" ]; then
		set -- "$@" token "$tree_token"
		echo "$tree_token" >"$WORK/token"
		below=(parent-token-file "$WORK/token")
	fi
	for ((h = 1; h < hosts; h++)); do
		weights+=,$each
	done
	for ((h = 0; h < ${tree_plain:-0}; h++)); do
		weights+=,1
	done
	out=$(saina_at root job add "$name" elements "$elements" workers $((hosts + ${tree_plain:-0})) weights "$weights" dead "$dead" "$@" 2>&1) ||
		bail "no job $name at the root: $out"
	for ((h = 0; h < hosts; h++)); do
		out=$(saina_at "$h" job add "$name" elements "$elements" workers "$each" dead "$dead" \
			uplink 10.190.0.1 parent-job "$name" parent-worker "$h" "${below[@]}" "$@" 2>&1) ||
			bail "no job $name at host $h: $out"
	done
}

# tree_worker HOST WORKER JOB ELEMENTS ROUNDS TYPE [EVERY]: starts one; what it prints is in $WORK/out.HOST.WORKER
tree_worker() {
	nsenter --net="/run/netns/saina-$LAB.h$1-w$2" -- "$B/selftests/tree_worker" "10.190.$(($1 + 1)).1" "$3" "$2" \
		$(($1 * each + $2)) $((hosts * each)) "$4" "$5" "$6" "$WORK/log.$1.$2" "${7-1}" \
		>"$WORK/out.$1.$2" 2>"$WORK/$1.$2.err" </dev/null &
	worker_pids[$1.$2]=$!
}

tree_workers() { # JOB ELEMENTS ROUNDS TYPE [EVERY]
	local h i
	rm -f "$WORK"/out.* "$WORK"/log.*
	for ((h = 0; h < hosts; h++)); do
		for ((i = 0; i < each; i++)); do
			tree_worker "$h" "$i" "$@"
		done
	done
}

# tree_field NAME: what the workers say, without repetition
tree_field() {
	jq -r ".$1" "$WORK"/out.* | sort -u | xargs
}

# tree_sum NAME: .. and summed over them
tree_sum() {
	jq -s "map(.$1)|add" "$WORK"/out.*
}

# tree_flat WORKERS TYPE ELEMENTS ROUNDS: checksum of the results of as many workers at one aggregator
tree_flat() {
	local i of=$LAB.flat pids=()
	"$LAB_TOOL" up "$of" --owner $$ --bridge linux --workers "$1" || bail "the flat lab did not come up"
	"$B/saina" -s "/run/saina-lab/$of/control" job add t elements "$3" workers "$1" dead 60000 >/dev/null
	for ((i = 0; i < $1; i++)); do
		nsenter --net="/run/netns/saina-$of-w$i" -- "$B/selftests/tree_worker" 10.190.0.1 t $i $i "$1" "$3" "$4" "$2" \
			/dev/null >"$WORK/flat.$i" 2>&1 &
		pids+=($!)
	done
	wait "${pids[@]}"
	"$LAB_TOOL" down "$of"
	jq -r .crc "$WORK"/flat.* | sort -u | xargs
}

# tree_exact WHAT WORKERS ELEMENTS ROUNDS: after the workers have ended
tree_exact() {
	equal "$1: no sum is wrong, and none lacks a worker" "0 0" "$(tree_sum wrong) $(tree_sum some)"
	equal "$1: all sums were checked" $(($4 * (($3 + 7) / 8) * $2)) "$(tree_sum all)"
	matches "$1: all workers have the same results" '^[0-9a-f]{8}$' "$(tree_field crc)"
}

tree_round() { # the last round that worker 0 of host 0 has finished
	tail -n 1 "$WORK/log.0.0" 2>/dev/null | cut -d' ' -f1
}

tree_round_at_least() {
	local round
	round=$(tree_round)
	[ "${round:--1}" -ge "$1" ]
}

tree_has() { # HOST JOB WORKERS
	[ "$(saina_at "$1" -j job show "$2" | jq '[.. | .tree_workers? // empty][0]')" = "$3" ]
}

# relay_in NAMESPACE: of the relay that was started last there, by the agent or an earlier one
relay_in() {
	local pid newest
	for pid in $(ip netns pids "saina-$1"); do
		[ "$(cat "/proc/$pid/comm" 2>/dev/null)" != saina-uplink ] || newest=$pid
	done
	echo "${newest-}"
}

relay_pid() { # HOST
	relay_in "$LAB-w$1"
}

# host_kill HOST: its agent and relay; workers are the caller's
host_kill() {
	local pid
	pid=$(relay_pid "$1")
	"$LAB_TOOL" agent "$LAB.h$1" kill
	[ -z "$pid" ] || kill -KILL "$pid"
}

relay_is_new() { # HOST PID
	local pid
	pid=$(relay_pid "$1")
	[ -n "$pid" ] && [ "$pid" != "$2" ]
}

# UDP payload that went up from the host to the root, as its relay counts
bytes_up() { # HOST JOB
	saina_at "$1" -j job show "$2" | jq '.uplink.bytes_up // .[0].uplink.bytes_up'
}
