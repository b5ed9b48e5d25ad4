#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# One SIGTERM or SIGINT ends a worker, whatever it waits for: other workers before the job
# runs, or the result of a round.
#
#     w0: gets the signal     w1: is not there, or stands still
#
# 1. saina-allreduce, before the job runs and in a round
# 2. saina-train, likewise

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

lab_up --workers 2 --bridge linux

# ends_by SIGNAL WORKER: sent once
ends_by() {
	kill "-$1" "${worker_pids[$2]}"
	slowwait 60 worker_ended "$2"
}

waits() { # WORKER JOB: the worker waits for others before the job runs
	worker_state_is "$2" "$1" alive && [ "$(job_field "$2" state)" = forming ]
}

has_left() { # JOB WORKER
	worker_state_is "$1" "$2" left
}

# start_trainer WORKER JOB: as start() does
start_trainer() {
	nsenter --net="/run/netns/saina-$LAB-w$1" -- "$B/saina-train" --data "$WORK/examples" --workers 2 \
		--worker "$1" --aggregator "$AGG" --job "${job_ids[$2]}" --hidden 16 --base 1 --delay 0 \
		--rounds 1000000 --progress 0 >"$WORK/$1.out" 2>"$WORK/$1.err" </dev/null &
	worker_pids[$1]=$!
}

# 1. saina-allreduce, before the job runs and in a round
# dead is so long that the other worker is not declared dead in the meantime.
for signal in TERM INT; do
	job "forming-$signal" workers 2 elements 20000 dead 60000
	start 0 "forming-$signal" 10
	check "SIG$signal: a worker waits for another one" slowwait 60 waits 0 "forming-$signal"
	check "SIG$signal: it ends a worker that waits for the job to run" ends_by "$signal" 0
	worker_reap 0
	equal "SIG$signal: the worker ends with the status of one that could not join" 3 "$status"
	matches "SIG$signal: the worker says why it ends" "ended by a signal before the job ran" "$(cat "$WORK/0.err")"
	saina job del "forming-$signal"

	job "round-$signal" workers 2 elements 20000 policy bsp dead 60000
	start_all "round-$signal" 1000000 2 --think-us 1000 --stop-ms 2000
	check "SIG$signal: rounds flow" slowwait 60 rounds_at_least "round-$signal" 5
	kill -STOP "${worker_pids[1]}"
	check "SIG$signal: the round waits for a worker that stands still" slowwait 60 missing_is "round-$signal" 1
	check "SIG$signal: it ends a worker in a round that another one does not come to" ends_by "$signal" 0
	worker_reap 0
	equal "SIG$signal: the worker ends with the status of a failed all-reduce" 4 "$status"
	matches "SIG$signal: the worker says that it has not finished its round" \
		"round [0-9]+: ended by a signal before the other workers" "$(cat "$WORK/0.err")"
	check "SIG$signal: the worker has left the job" slowwait 10 has_left "round-$signal" 0
	kill -CONT "${worker_pids[1]}"
	check "SIG$signal: the other worker goes on" rounds_go_on "round-$signal" 5
	stop_workers
	check "SIG$signal: all sums of the other worker are exact" wait_all 60
	saina job del "round-$signal"
done

# 2. saina-train, likewise
# Random pictures.
python3 -c '
import os, sys
sys.path.insert(0, sys.argv[1])
from examples import write
write(sys.argv[2], 0, 64, 255, [os.urandom(64) + bytes([i % 10]) for i in range(1797)])' "$(dirname "$0")/../trainer" "$WORK/examples"
job forming-train workers 2 elements 20000 dead 60000
start_trainer 0 forming-train
check "saina-train: a worker waits for another one" slowwait 60 waits 0 forming-train
check "saina-train: SIGTERM ends a worker that waits for the job to run" ends_by TERM 0
worker_reap 0
matches "saina-train: the worker says why it ends" "ended by a signal before the job ran" "$(cat "$WORK/0.err")"
saina job del forming-train

job round-train workers 2 elements 20000 policy bsp dead 60000
start_trainer 0 round-train
start_trainer 1 round-train
check "saina-train: rounds flow" slowwait 60 rounds_at_least round-train 5
kill -STOP "${worker_pids[1]}"
check "saina-train: the round waits for a worker that stands still" slowwait 60 missing_is round-train 1
check "saina-train: SIGTERM ends a worker in a round that another one does not come to" ends_by TERM 0
worker_reap 0
matches "saina-train: the worker says in which round it has ended" "ended by a signal in round [0-9]+" "$(cat "$WORK/0.err")"
check "saina-train: the worker has left the job" slowwait 10 has_left round-train 0
kill -CONT "${worker_pids[1]}"
check "saina-train: SIGTERM ends a worker in a round that nobody else takes part in" ends_by TERM 1
worker_reap 1
finished
