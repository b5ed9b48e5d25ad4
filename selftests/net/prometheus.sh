#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Debian's Prometheus scrapes sainad, promtool checks what it gets, and the expressions of the
# Grafana dashboard have values.
#
#     switch's namespace: sainad 127.0.0.1:9496 <- prometheus 127.0.0.1:9497      w0, w1 reduce
#
# 1. Two workers train; promtool reads what sainad says
# 2. Prometheus scrapes it
# 3. The expressions of the dashboard have values

for p in prometheus promtool; do
	command -v $p >/dev/null && continue
	echo "1..0 # SKIP $p is not installed"
	exit 4
done

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

CLIENT=$NET_DIR/metrics.py
query() { # EXPRESSION: "labels => value" a line
	in_switch promtool query instant http://127.0.0.1:9497 "$1" 2>&1 </dev/null
}

has_value() { # EXPRESSION
	local output
	output=$(query "$1")
	[[ $output == *"=>"* && $output != *error* ]]
}

value_at_least() { # LEAST EXPRESSION
	query "$2" | awk -v least="$1" '/=>/ { for (i = 1; i < NF; i++) if ($i == "=>" && $(i + 1) >= least) good = 1 } END { exit !good }'
}

# 1. Two workers train; promtool reads what sainad says
echo 'metrics = "127.0.0.1:9496";' >"$WORK/lines"
lab_up --workers 2 --bridge linux --config "$WORK/lines"
ip -n "saina-$LAB-sw" link set lo up
job steady workers 2 elements 20000 policy sfcd:k0=1
start_all steady 1000000 2 --elements 20000 --think-us 4000 --cancel
check "rounds flow" slowwait 30 rounds_at_least steady 20

in_switch "$CLIENT" get 9496 | tail -n +2 >"$WORK/text"
check "the text has the histogram of a worker's lateness" \
	grep -q '^saina_worker_lateness_seconds_bucket{.*le="+Inf".*} [1-9]' "$WORK/text"
check "promtool finds nothing wrong with the text" promtool check metrics <"$WORK/text"

# 2. Prometheus scrapes it
cat >"$WORK/prometheus.yml" <<'YML'
global: { scrape_interval: 1s, evaluation_interval: 1s }
scrape_configs:
  - job_name: saina
    static_configs: [ { targets: [ "127.0.0.1:9496" ] } ]
YML
check "promtool takes the configuration" promtool check config "$WORK/prometheus.yml"
nsenter --net="/run/netns/saina-$LAB-sw" -- prometheus --config.file="$WORK/prometheus.yml" \
	--storage.tsdb.path="$WORK/tsdb" --web.listen-address=127.0.0.1:9497 >"$WORK/prometheus.log" 2>&1 </dev/null &
check "Prometheus scrapes sainad" slowwait 60 value_at_least 1 'up{job="saina"}' ||
	diag "$(tail -n 5 "$WORK/prometheus.log")"
check "Prometheus has the rounds of the job" slowwait 30 value_at_least 20 'saina_job_rounds_total{saina_job="steady"}'
# Prometheus renames a label that is in conflict with its own to exported_*: none was renamed.
labels=$(query '{__name__=~"saina_.+"}')
equal "no label is in conflict with Prometheus's" "there are metrics: " \
	"$(grep -q '^saina_job_rounds_total{' <<<"$labels" && echo there are metrics): $(grep exported_ <<<"$labels" | head -n 3)"
check "Prometheus has a rate of rounds" slowwait 60 value_at_least 0.1 'rate(saina_job_rounds_total[30s])'

# 3. The expressions of the dashboard have values
saina port set p1 loss-in 0.05
# Expressions about drops may have no value, as nothing was dropped; they must not be errors.
"$CLIENT" dashboard "$B/grafana.json" "$TOP/userland/agent/metrics/families.c" >"$WORK/exprs"
check "the dashboard's expressions are about metrics that there are" [ "$(wc -l <"$WORK/exprs")" -ge 10 ]
while IFS= read -r expr; do
	expr=${expr//\$job/.*}
	expr=${expr//\$__rate_interval/30s}
	case $expr in
	*drops*) check "dashboard: no error: $expr" query "$expr" ;;
	*) check "dashboard: a value: $expr" slowwait 60 has_value "$expr" ;;
	esac
done <"$WORK/exprs"
saina port set p1 loss-in 0
stop_workers
check "all sums are exact" wait_all 60
finished
