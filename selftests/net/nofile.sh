#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Descriptors: as many jobs as there may be fit in a process whose soft limit is the usual 1024,
# and a job for which none is left is refused with a sentence that names the limit.
#
#     w0, w1 reduce in the last of 256 jobs
#
# 1. 200 jobs
# 2. No descriptor is left for another one
# 3. As many jobs as there may be; a new agent takes them over

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

ulimit -Sn 1024
lab_up --workers 2
ulimit -Sn "$(ulimit -Hn)"
add() { # NAME
	saina job add "$1" workers 2 elements 64 payload 64 pool 1 ring 2
}

jobs_shown() {
	saina_jq job show length
}

# 1. 200 jobs
for ((i = 0; i < 200; i++)); do
	add "many$i" >/dev/null 2>"$WORK/add" || break
done
equal "200 jobs exist" 200 "$(jobs_shown)"
[ ! -s "$WORK/add" ] || diag "$(cat "$WORK/add")"

# 2. No descriptor is left for another one
high=$(prlimit --pid "$(agent_pid)" --nofile --output SOFT,HARD --raw --noheadings)
prlimit --pid "$(agent_pid)" --nofile=$(($(agent_descriptors) + 3)):"${high#* }"
before=$(agent_descriptors)
matches "a job for which no descriptor is left is refused, and the limit named" "no descriptor is left.*LimitNOFILE" \
	"$(add refused 2>&1)"
equal "a job that was refused is not shown" 200 "$(jobs_shown)"
equal "descriptors of a job that was refused are closed" "$before" "$(agent_descriptors)"
check "a job is deleted" saina job del many7
check "after a job was deleted another one can be added" add many7

# 3. As many jobs as there may be; a new agent takes them over
prlimit --pid "$(agent_pid)" --nofile="${high% *}:${high#* }"
for ((i = 200; i < 256; i++)); do
	add "many$i" >/dev/null 2>"$WORK/add" || break
done
equal "256 jobs exist" 256 "$(jobs_shown)"
[ ! -s "$WORK/add" ] || diag "$(cat "$WORK/add")"
check "the maps of 256 jobs take more than 1024 descriptors" [ "$(agent_descriptors)" -gt 1024 ]
start 0 many255 20 --elements 64
start 1 many255 20 --elements 64
check "the last of 256 jobs reduces: all sums are exact" wait_all 60
check "the agent is killed" lab agent kill
ulimit -Sn 1024
check "a new agent starts" lab agent start
equal "256 jobs exist with the new agent" 256 "$(jobs_shown)"
ulimit -Sn "$(ulimit -Hn)"
start 0 many255 20 --elements 64
start 1 many255 20 --elements 64
check "the last of 256 jobs reduces with the new agent: all sums are exact" wait_all 60
finished
