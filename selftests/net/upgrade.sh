#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Previous versions, built from git, beside this one: pins and state file of the old agent with the
# new one and the reverse, the old tool and old workers with the new agent and the reverse.  Each
# pair works, or is refused with a sentence that says what to do.
#
#     upgrade.sh [COMMIT...]      else those that SAINA_PREVIOUS names, else four: three that speak older
#                                 protocols and have other maps, and the first one that has this protocol,
#                                 these maps and these attributes
#
#     w0 .. w3: workers of one version or of both
#
# 1. The agent is upgraded under a job that trains
# 2. The new agent, with tool and workers of the old version
# 3. The agent is downgraded, with tool and workers of the new version
# 4. Maps of another layout

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

same=$(git -C "$TOP" log -1 --format=%h -G'#define[[:space:]]+SAINA_(PROTO_VERSION|LAYOUT)[[:space:]]|SAINA_A_[A-Z_]+,' -- \
	uapi/saina/proto.h uapi/saina/bpf.h uapi/linux/saina.h)
[ "${same:=${*:-${SAINA_PREVIOUS-}}}" ] || bail "git finds no commit that made the present protocol, maps and attributes: run it in a clone, or name commits"
read -ra commits <<<"${*:-${SAINA_PREVIOUS-732dd4f 0ca4d8c cd892c4 $same}}"
new=$B
expected_log='is of another version \((its maps have )?not layout|jobs are known from before, but the data path is gone|it makes no sense to this version|it is damaged, or of another version|speaks version|is dead: silent for'

# number FILE NAME: prints the number that this #define of a header has
number() {
	sed -nE "s/^#define[[:space:]]+$2[[:space:]]+([0-9]+).*/\1/p" "$1"
}

# build COMMIT: builds a version in $B/previous, once; sets old, protocol and layout; fails if git does
# not have COMMIT
build() {
	local full dir
	full=$(git -C "$TOP" rev-parse --verify --quiet "$1^{commit}") || return 1
	dir=$B/previous/$full
	old=$dir/build
	protocol=$(git -C "$TOP" show "$full:uapi/saina/proto.h" | number - SAINA_PROTO_VERSION)
	layout=$(git -C "$TOP" show "$full:uapi/saina/bpf.h" | number - SAINA_LAYOUT)
	[ ! -e "$dir/built" ] || return 0
	mkdir -p "$dir"
	git -C "$TOP" archive "$full" | tar -x -C "$dir" || bail "version $1 cannot be unpacked into $dir"
	make -C "$dir" -j"$(nproc)" B=build \
		build/saina build/sainad build/saina-allreduce build/saina_xdp.bpf.o build/saina_tc.bpf.o \
		>"$dir/log" 2>&1 || bail "version $1 cannot be built: see $dir/log"
	touch "$dir/built"
}

# agent VERB [OPTION...]: the agent of the build directory $agent_of, with its programs
agent() {
	sed -i "s|^object = .*|object = \"$agent_of/saina_xdp.bpf.o\";|" "/run/saina-lab/$LAB/sainad.conf"
	SAINA_BUILD=$agent_of lab agent "$@"
}

# workers_of BUILD: start() starts the saina-allreduce of this build directory
workers_of() {
	worker_program=("$1/saina-allreduce")
	# Earlier versions without that option finish their round in any case.
	stop_options=()
	! "$1/saina-allreduce" --help | grep -q -- --stop-ms || stop_options=(--stop-ms $((60000 * SLOW)))
}

# tool_of BUILD WORD...
tool_of() {
	timeout 60 "$1/saina" "${@:2}"
}

logged() { # ERE
	grep -qaE "$1" "/run/saina-lab/$LAB/sainad.log"
}

# Workers of another protocol version do not notice that the agent was replaced: their time-out ends
# them.
quick=(--elements 8192 --token t0ken --think-us 4000 --timeout-ms $((15000 * SLOW)))
train() { # N
	start_all steady 1000000 "$1" "${quick[@]}"
}

# sentence STATUS TEXT ERE: the tool failed with status 1 and a sentence, not with a usage text
sentence() {
	[ "$1" = 1 ] && [[ $2 =~ $3 ]] && [[ $2 != *Usage* ]]
}

# shows BUILD WHOSE: the tool shows everything, as JSON and as text
shows() {
	local object out bad=''
	for object in "job show" "worker show steady" "port show" "slot show steady" "stats show" "limits show"; do
		# shellcheck disable=SC2086
		out=$(tool_of "$1" -j $object 2>&1) && jq -e . >/dev/null <<<"$out" || bad+="$object: $out; "
		# shellcheck disable=SC2086
		tool_of "$1" $object >"$WORK/text" 2>&1 && [ -s "$WORK/text" ] || bad+="$object as text: $(head -n 3 "$WORK/text"); "
	done
	equal "$2 shows jobs, workers, ports, slots, counters and limits" "" "$bad"
}

# changes BUILD WHOSE: the tool adds, changes and deletes a job, and is refused
changes() {
	check "$2 adds a job" tool_of "$1" job add "other" workers 2 elements 1000 payload 256 policy fastest:k=2
	check "$2 sets its policy" tool_of "$1" job set other policy bsp
	matches "$2 shows no job that does not exist, with a sentence" "no job|does not exist|there is" "$(tool_of "$1" job show nobody 2>&1)"
	equal "$2 sets no k above the workers, with status 1" 1 "$(tool_of "$1" job set other policy fastest:k=9 >/dev/null 2>&1; echo $?)"
	check "$2 deletes a job" tool_of "$1" job del other
}

monitors() { # BUILD WHOSE
	tool_of "$1" -j monitor all >"$WORK/heard" 2>"$WORK/heard.err" </dev/null &
	local pid=$!
	slowwait 10 grep -q monitoring "$WORK/heard.err"
	saina job set steady policy fastest:k=4 && saina job set steady policy bsp
	check "$2 hears that a job was changed" slowwait 10 grep -q steady "$WORK/heard"
	kill "$pid" 2>/dev/null
	wait "$pid" 2>/dev/null
	equal "$2 understands what it hears" "" "$(jq -c . "$WORK/heard" 2>&1 >/dev/null)"
}

trains() { # WHAT: rounds of the workers that run go on
	check "$1: rounds go on" log_goes_on 20
}

ends_well() { # WHAT
	stop_workers
	check "$1: all sums are exact" wait_all 60
}

# check_refused WHAT ERE: worker 0 ends with that sentence, soon
check_refused() {
	matches "$1" "$2" "$(join_error 0 0 steady --token t0ken --elements 8192 --join-timeout-ms $((3000 * SLOW)))"
}

# mixed: w0 and w1 of the old version, w2 and w3 of the new one
mixed() {
	local i
	for i in 0 1 2 3; do
		workers_of "$([ $i -lt 2 ] && echo "$old" || echo "$new")"
		start $i steady 1000000 "${quick[@]}"
	done
}

# pair COMMIT: upgrades from that version to this one, and back
pair() {
	local version=$1 same_protocol='' same_layout=''
	[ "$protocol" != "$(number "$TOP/uapi/saina/proto.h" SAINA_PROTO_VERSION)" ] || same_protocol=1
	[ "$layout" != "$(number "$TOP/uapi/saina/bpf.h" SAINA_LAYOUT)" ] || same_layout=1

	# 1. The agent is upgraded under a job that trains
	agent_of=$old
	lab_up --workers 4 --no-agent
	agent start || bail "the agent of $version does not start"
	job steady id 5 workers 4 elements 8192 payload 256 ring 64 policy bsp token t0ken heartbeat 100
	workers_of "$old"
	train 4
	check "$version: it trains" slowwait 30 rounds_at_least steady 10
	check "$version: its agent is killed" agent kill
	agent_of=$new
	check "$version, upgrade: the agent of this version starts on what it left" agent start
	equal "$version, upgrade: the job is there" "steady 4 8192" "$(saina_jq job show '.[]|"\(.name) \(.workers) \(.elements)"')"
	if [ -n "$same_layout" ]; then
		equal "$version, upgrade: all workers are members still" 4 "$(members steady)"
	else
		check "$version, upgrade: the log says that pins of another version are removed" logged "is of another version .* it is stopped and removed"
	fi
	if [ -n "$same_protocol" ]; then
		trains "$version, upgrade: its workers"
		ends_well "$version, upgrade: its workers"
	else
		check "$version, upgrade: its workers end" slowwait 90 all_gone
		wait_all 1 >"$WORK/output"
		# Messages of early versions are too short for an answer: there the agent's log says it.
		if grep -q "nothing heard from" "$WORK"/[0-3].err; then
			check "$version, upgrade: the log says that libsaina is to be updated" logged "10.190.0.1[0-3]:[0-9]+ speaks version $protocol of the protocol.*update libsaina"
		else
			matches "$version, upgrade: its workers say that they are to be updated" "version $protocol of the protocol is not spoken here.*update the older side" "$(cat "$WORK"/[0-3].err)"
		fi
	fi

	# 2. The new agent, with tool and workers of the old version
	shows "$old" "$version: its tool with the agent of this version"
	changes "$old" "$version: its tool with the agent of this version"
	monitors "$old" "$version: its tool with the agent of this version"
	if [ -n "$same_protocol" ]; then
		mixed
		check "$version: two of its workers and two of this version train together" slowwait 30 log_at_least 20
		ends_well "$version: two of its workers and two of this version"
	else
		workers_of "$old"
		check_refused "$version: its worker is not let in by the agent of this version, and says so" "no answer|version"
	fi
	workers_of "$new"
	train 4
	check "$version, upgraded: workers of this version train" slowwait 30 log_at_least 20

	# 3. The agent is downgraded, with tool and workers of the new version
	saina job add auto workers 2 elements auto >/dev/null || not_ok "a job that has no size yet is added"
	check "$version, downgrade: the agent of this version is killed" agent kill
	agent_of=$old
	check "$version, downgrade: its agent starts on what this version left" agent start
	# Whether it understands the jobs of this version depends on what they have.
	if [ -n "$same_protocol" ] && saina job show steady >/dev/null 2>&1; then
		trains "$version, downgrade: workers of this version"
		ends_well "$version, downgrade: workers of this version"
	else
		check "$version, downgrade: workers of this version end" slowwait 90 all_gone
		wait_all 1 >"$WORK/output"
		matches "$version, downgrade: workers of this version say why they end" "$([ -n "$same_protocol" ] && echo "there is no job" ||
			echo "version .* is not spoken here, only $protocol: update the older side")" "$(cat "$WORK"/[0-3].err)"
	fi
	# 0ca4d8c cannot show counters beside such a job.
	saina job del auto >/dev/null 2>&1
	saina job show steady >/dev/null 2>&1 ||
		job steady id 5 workers 4 elements 8192 payload 256 ring 64 policy bsp token t0ken heartbeat 100
	shows "$new" "$version: the tool of this version with its agent"
	changes "$new" "$version: the tool of this version with its agent"
	monitors "$new" "$version: the tool of this version with its agent"
	if ! grep -q ELEMENTS_AUTO <(git -C "$TOP" show "$version:uapi/linux/saina.h"); then
		out=$(tool_of "$new" job add sized workers 2 elements auto 2>&1)
		check "$version: what its agent cannot do is refused with a sentence to the tool of this version" sentence $? "$out" "elements"
		diag "$out"
	fi
	workers_of "$new"
	if [ -n "$same_protocol" ]; then
		mixed
		check "$version: two of its workers and two of this version train with its agent" slowwait 30 log_at_least 20
		ends_well "$version: two of its workers and two of this version, with its agent"
	else
		check_refused "$version: a worker of this version gets from its agent which side to update" \
			"version [0-9]+ of the protocol is not spoken here, only $protocol: update the older side"
	fi
	lab_down
}

all_gone() {
	local i
	for i in "${!worker_pids[@]}"; do
		worker_ended "$i" || return 1
	done
}

# 4. Maps of another layout
# Workers of this version, whose agent finds maps of another layout by the names of the programs.
other_layout() {
	local pins=/run/saina-lab/$LAB/bpf p
	layout=$(number "$TOP/uapi/saina/bpf.h" SAINA_LAYOUT)
	agent_of=$new
	workers_of "$new"
	lab_up --workers 4
	job steady id 5 workers 4 elements 8192 payload 256 ring 64 policy bsp token t0ken heartbeat 100
	train 4
	check "other layout: workers of this version train" slowwait 30 rounds_at_least steady 10
	check "other layout: the agent is killed" agent kill
	for p in "$pins/prog-$layout-"*; do
		mv "$p" "$pins/prog-1-${p##*"prog-$layout-"}"
	done
	check "other layout: the agent starts again" agent start
	check "other layout: the log says that what is pinned is of another version" logged "is of another version .* it is stopped and removed"
	trains "other layout: workers join again"
	ends_well "other layout: workers join again"
	lab_down
}

for commit in "${commits[@]}"; do
	if build "$commit"; then
		pair "$commit"
	else
		point 0 "$commit # SKIP this clone has no commit $commit: fetch it, or set SAINA_PREVIOUS"
	fi
done
other_layout
finished
