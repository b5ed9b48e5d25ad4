#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The metrics of sainad, and clients that do not read them.  Prometheus itself:
# prometheus.sh.
#
#     w0 .. w2 reduce, w2 is a straggler; sainad: http://127.0.0.1:9496/metrics in the switch
#
# 1. Addresses that sainad takes or refuses
# 2. Without jobs
# 3. A job with a straggler
# 4. A histogram of lateness
# 5. A worker that a round waits for
# 6. Drops, and what is injected at ports
# 7. Many jobs, and clients that do not read
# 8. A unix socket instead of a port

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

CLIENT=$NET_DIR/metrics.py

scrape() { # into $WORK/text
	in_switch "$CLIENT" get 9496 >"$WORK/answer" || return 1
	tail -n +2 "$WORK/answer" >"$WORK/text"
	[ "$(head -n 1 "$WORK/answer")" = "200 OK" ]
}

value() { # NAME [LABEL=VALUE...]: in the last scrape
	"$CLIENT" value "$@" <"$WORK/text"
}

sum_at_least() { # LEAST NAME [LABEL=VALUE...]: in a new scrape
	local got
	scrape || return 1
	got=$(value "${@:2}")
	[ "$got" != none ] && awk -v a="$got" -v b="$1" 'BEGIN { exit !(a >= b) }'
}

refused_address() {
	"$B/sainad" --check-config --metrics "$1" 2>&1
}

# 1. Addresses that sainad takes or refuses
matches "an address without a port is refused, with what is allowed" "metrics: '127.0.0.1' is not ADDRESS:PORT" \
	"$(refused_address 127.0.0.1)"
matches "a name is refused" "is not ADDRESS:PORT" "$(refused_address localhost:9496)"
matches "a port that cannot be is refused" "is not ADDRESS:PORT" "$(refused_address 127.0.0.1:70000)"
matches "an IPv6 address is taken" "valid" "$(refused_address '[::1]:9496')"
matches "a unix socket is accepted" "valid" "$(refused_address unix:/run/saina/metrics)"

# 2. Without jobs
echo 'metrics = "127.0.0.1:9496";' >"$WORK/lines"
lab_up --workers 3 --bridge linux --config "$WORK/lines"
ip -n "saina-$LAB-sw" link set lo up
check "without jobs: there is an answer" scrape
check "without jobs: it is Prometheus's text format" "$CLIENT" check 15 <"$WORK/text"
equal "without jobs: saina_jobs is 0" 0 "$(value saina_jobs)"
equal "the version is that of sainad" 1 "$(value saina_build_info "version=$(cat "$TOP/VERSION")")"
equal "another path: 404" "404 Not Found" "$(in_switch "$CLIENT" get 9496 / | head -n 1)"
equal "another method: 405" "405 Method Not Allowed" "$(in_switch "$CLIENT" get 9496 /metrics DELETE | head -n 1)"
equal "HEAD: 200 and nothing else" "200 OK" "$(in_switch "$CLIENT" get 9496 /metrics HEAD)"

# 3. A job with a straggler
job steady workers 3 elements 20000 payload 352 ring 64 policy fastest:k=2
start 0 steady 1000000 --elements 20000 --think-us 4000 --name 'quote"back\slash'
start 1 steady 1000000 --elements 20000 --think-us 4000
start 2 steady 1000000 --elements 20000 --think-us 60000 --cancel
check "a job: its rounds are counted" slowwait 30 sum_at_least 50 saina_job_rounds_total saina_job=steady
check "a job: the text is right" "$CLIENT" check <"$WORK/text"
equal "a job: k" 2 "$(value saina_job_k saina_job=steady)"
equal "a job: its state, and no other" "1 0 0" "$(value saina_job_state saina_job=steady state=running) $(value \
	saina_job_state saina_job=steady state=forming) $(value saina_job_state saina_job=steady state=stopped)"
equal "a job: its workers" "3 3" "$(value saina_job_workers saina_job=steady) $(value saina_job_alive_workers saina_job=steady)"
equal "a job: the policy in force" 1 "$(value saina_job_info saina_job=steady policy=fastest:k=2)"
equal "a job: the bytes of its results" "$(awk -v n="$(value saina_job_results_total)" 'BEGIN { printf "%g", n * 352 * 4 }')" \
	"$(value saina_job_result_bytes_total)"
equal "a job: results are its workers'" "$(value saina_job_results_total)" "$(value saina_worker_completed_total)"
check "the straggler is late, with what it did not send any more" slowwait 30 sum_at_least 100 saina_worker_late_total worker=2
check "the straggler is late more often than in time" awk -v late="$(value saina_worker_late_total worker=2)" \
	-v in_time="$(value saina_worker_in_time_total worker=2)" 'BEGIN { exit !(late > in_time) }'
check "a worker reports what it has sent" slowwait 30 sum_at_least 1000 saina_worker_gradients_sent_total worker=0
check "a worker reports its window" sum_at_least 44 saina_worker_window_messages worker=0
check "a worker reports its round-trip time" slowwait 30 sum_at_least 0.000001 saina_worker_rtt_seconds worker=2
equal "worker show has the same figures as the metrics" "true true" "$(saina -j worker show steady 0 | jq -r \
	'.[0]|"\(.sent >= 1000 and .window >= 44) \(.resent_share == .resent / .sent)"')"

# 4. A histogram of lateness
# bsp waits for both workers, so each round has a sample of each.
# The job is larger than the tensor: nobody misses what nobody sends.
job all workers 2 elements 200000 policy bsp
start_as all0 0 0 all 1000000 --elements 20000 --think-us 4000
start_as all1 1 1 all 1000000 --elements 20000 --think-us 60000
check "lateness: the rounds of a straggler are samples" slowwait 30 sum_at_least 20 saina_worker_lateness_seconds_count \
	saina_job=all worker=1
check "lateness: the text of histograms is right" "$CLIENT" check <"$WORK/text"
above() { # WORKER LE: samples that are not in the bucket
	echo $(($(value saina_worker_lateness_seconds_count saina_job=all "worker=$1") - \
		$(value saina_worker_lateness_seconds_bucket saina_job=all "worker=$1" "le=$2")))
}
check "lateness: the straggler's is above 16 ms in most rounds" [ $((2 * $(above 1 0.016384))) -gt \
	"$(value saina_worker_lateness_seconds_count saina_job=all worker=1)" ]
check "lateness: that of the worker before it is not" [ $((2 * $(above 0 0.016384))) -lt \
	"$(value saina_worker_lateness_seconds_count saina_job=all worker=0)" ]
check "lateness: the sum is that of the samples" awk -v sum="$(value saina_worker_lateness_seconds_sum saina_job=all worker=1)" \
	-v late="$(above 1 0.016384)" 'BEGIN { exit !(sum >= late * 0.016384) }'
matches "lateness: limits are powers of two of microseconds" 'le="0.001024"' "$(grep lateness_seconds_bucket "$WORK/text")"
# The mean is read in three places, so no round may come in between.
kill -STOP "${worker_pids[all0]}" "${worker_pids[all1]}"
same_lateness() {
	local shown named
	scrape || return 1
	shown=$(saina -j worker show all 1 | jq '.[0].arrivals.mean_ms')
	named=$(saina -j job show all | jq -r '.[0].slow // ""' | sed -n 's/^worker 1 is late in each round: \([0-9.]*\) ms after the first.*/\1/p')
	[ -n "$named" ] || named=$shown	# while a sum waits, job show says that instead
	awk -v a="$(value saina_worker_lateness_mean_seconds saina_job=all worker=1)" -v b="$shown" -v c="$named" \
		'BEGIN { a *= 1000; exit !(a > 16 && (a - b) ^ 2 < 1e-4 && (a - c) ^ 2 < 0.01) }'
}
check "lateness: metrics, worker show and job show have the same mean" slowwait 30 same_lateness
kill -CONT "${worker_pids[all0]}" "${worker_pids[all1]}"
equal "no worker shares memory" 0 "$(value saina_worker_shared_memory)"
equal "lateness: the straggler, for which all wait, has missed nothing, the other worker neither" "0 0" \
	"$(value saina_worker_late_total saina_job=all worker=0) $(value saina_worker_late_total saina_job=all worker=1)"
equal "lateness: no worker of that job is slow" "alive alive" "$(saina_jq worker show all '[.[].state]|join(" ")')"
check "lateness: gradients of the other workers are in time" sum_at_least 1000 saina_worker_in_time_total worker=0
equal "a worker's name may have quotes" 1 "$(grep -cF 'name="quote\"back\\slash"' "$WORK/text")"

# 5. A worker that a round waits for
job held workers 3 elements 8192 payload 256 ring 8 policy fastest:k=2,lead=4 dead 60000
for i in 0 1 2; do
	start_as "held$i" "$i" "$i" held 1000000 --elements 8192 --think-us 2000
done
behind_is() { # ROUNDS WORKER
	scrape && [ "$(value saina_worker_rounds_behind saina_job=held "worker=$2")" = "$1" ]
}
check "lead: rounds flow" slowwait 60 rounds_at_least held 10
kill -STOP "${worker_pids[held2]}"
check "lead: a worker that the next round waits for is more rounds behind than the lead" slowwait 60 behind_is 5 2
check "lead: a worker that waits in that round is not behind" slowwait 60 behind_is 0 0
check "lead: another worker that waits in that round is not behind" slowwait 60 behind_is 0 1
equal "lead: a policy that waits for all has none" none "$(value saina_worker_rounds_behind saina_job=all)"
saina worker set held 2 state dead
check "lead: a dead worker has none" slowwait 10 behind_is none 2
check "lead: without it the others go on" rounds_go_on held 20
for i in 0 1 2; do
	worker_kill "held$i"
done

# 6. Drops, and what is injected at ports
SWITCH_MAC=$(mac_of switch)
send_raw 0 type=77 repeat=5
send_raw 0 count=352 worker=1 repeat=3
check "drops that belong to no worker, by reason" slowwait 10 sum_at_least 5 saina_data_path_drops_total reason=type
check "drops of a worker, by reason" slowwait 10 sum_at_least 3 saina_worker_drops_total worker=1 reason=wrong-port
equal "a port: the hook, by which its frames go" 1 "$(value saina_port_info port=p0 mode=tc hook=auto)"
saina port set p1 loss-in 0.125
check "a port: injected loss" slowwait 10 sum_at_least 0.125 saina_port_injected_loss_ratio port=p1 direction=in
saina port set p1 loss-in 0

# 7. Many jobs, and clients that do not read
# With so many jobs an answer does not fit the buffers of a connection.
for i in $(seq 1 40); do
	saina job add "other$i" elements 1000 workers 2 >/dev/null
done
# Neither dealt nor in ranges: nearly the longest text that a policy can have.
groups=1+$(seq -s + 4 2 62)/0+2+3+$(seq -s + 5 2 63)
check "a job with a long list of groups is added" saina job add long elements 1000 workers 64 policy "grouped:groups=$groups"
check "forty more jobs: all are there" sum_at_least 42 saina_jobs
policy=$(saina_jq job show long '.[0].policy')
equal "a long list of groups: the metrics have the policy" "1 yes" \
	"$(value saina_job_info "policy=$policy") $([ ${#policy} -gt 150 ] && echo yes)"
check "forty more jobs: the text is right" "$CLIENT" check <"$WORK/text"

in_switch "$CLIENT" stall 9496 20 >"$WORK/stall" 2>&1 &
stalled=$!
check "clients that never read, or never ask: forty connect" slowwait 60 grep -q connected "$WORK/stall"
check "clients that never read: rounds go on" rounds_go_on steady 20
check "clients that never read: the agent takes changes" saina job set steady policy bsp
check "clients that never read: the agent deletes a job" saina job del other1
check "clients that never read: another client gets its answer" slowwait 60 scrape
equal "clients that never read: no worker was lost" 3 "$(members steady)"
kill -KILL "$stalled"
wait "$stalled" 2>/dev/null

# 32 places, and 120 clients that keep theirs for as long as they can
in_switch "$CLIENT" hold 9496 40 >"$WORK/hold" 2>&1 &
stalled=$!
check "clients that send or read a byte a second: they are connected" slowwait 60 grep -q connected "$WORK/hold"
for i in 1 2 3; do
	check "clients that send or read a byte a second: another client gets its answer, scrape $i" slowwait 60 scrape
done
check "clients that send or read a byte a second: the answer is right" "$CLIENT" check <"$WORK/text"
kill -KILL "$stalled"
wait "$stalled" 2>/dev/null

# 8. A unix socket instead of a port
stop_workers
check "all sums are exact" wait_all 60
path=$WORK/metrics.sock
check "the agent ends" lab agent stop
check "the agent starts, with a unix socket" lab agent start --metrics "unix:$path"
check "the agent is killed" lab agent kill
check "the agent starts where the socket of the last one is left" lab agent start --metrics "unix:$path"
equal "unix socket: the agent answers" "200 OK" "$("$CLIENT" get "$path" | head -n 1)"
expected_log="cannot listen at unix:$path: Address already in use"
matches "unix socket: that of another agent is left alone" \
	"cannot listen at unix:$path: Address already in use: another process has it; choose another one" \
	"$(in_switch "$B/sainad" --bridge br0 --runtime-dir "$WORK/run2" --bpffs "$WORK/run2/bpf" --control "$WORK/c2" \
		--address 127.0.0.1 --metrics "unix:$path" 2>&1)"
check "the agent ends again" lab agent stop
check "unix socket: the agent removes it at its end" [ ! -e "$path" ]
finished
