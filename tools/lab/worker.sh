# shellcheck shell=bash disable=SC2015,SC2034,SC2153
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A worker's namespace, its link to the switch, its rate and its faults.

worker_check() {
	[[ $1 =~ ^[0-9]{1,3}$ ]] && ((10#$1 < LAB_WORKERS)) ||
		usage_error "\"$1\" is not a worker of this lab: 0 to $((LAB_WORKERS - 1)), or \`switch'"
}

worker_up() { # WORKER
	local ns=saina-$LAB_NAME-w$1
	ip netns add "$ns"
	in_ns "$ns" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
	ip -n "$ns" link set lo up
	worker_link "$1"
}

worker_link() { # WORKER
	local i=$1 ns=saina-$LAB_NAME-w$1
	# Addresses told by the worker's number make captures readable.
	ip -n "$LAB_SW" link add "p$i" mtu "$LAB_MTU" type veth peer name eth0 mtu "$LAB_MTU" \
		address "$(printf '02:5a:00:00:00:%02x' $((10 + i)))" netns "$ns"
	# A veth takes redirected frames only with NAPI, which GRO turns on.
	in_ns "$ns" ethtool -K eth0 gro "$LAB_GRO" tx "$LAB_CSUM" >/dev/null
	ip -n "$ns" addr add "$LAB_NET.$((10 + i))/24" dev eth0
	ip -n "$ns" link set eth0 up
	ip -n "$LAB_SW" link set "p$i" up
	[ -z "$LAB_RATE" ] || worker_rate "$i" "$LAB_RATE"
}

# Both ways inside the worker's namespace: out by a shaper on eth0, in by one on
# an ifb that all that arrives is led through.
worker_rate() { # WORKER RATE|none
	local ns=saina-$LAB_NAME-w$1 shaper
	{
		tc -n "$ns" qdisc del dev eth0 root
		tc -n "$ns" qdisc del dev eth0 ingress
		ip -n "$ns" link del ifb0
	} 2>/dev/null || true
	[ "$2" != none ] || return 0
	shaper="tbf rate $2 burst 64kb limit 8mb"
	# shellcheck disable=SC2086
	tc -n "$ns" qdisc add dev eth0 root $shaper ||
		die "tc does not take the rate \"$2\": write it like 1gbit or 100mbit"
	ip -n "$ns" link add ifb0 mtu "$LAB_MTU" type ifb
	ip -n "$ns" link set ifb0 up
	# shellcheck disable=SC2086
	tc -n "$ns" qdisc add dev ifb0 root $shaper
	tc -n "$ns" qdisc add dev eth0 ingress
	tc -n "$ns" filter add dev eth0 ingress protocol all u32 match u32 0 0 \
		action mirred egress redirect dev ifb0
}

worker_show() { # WORKER
	local ns=saina-$LAB_NAME-w$1 gro rate plugged procs
	gro=$(in_ns "$ns" ethtool -k eth0 2>/dev/null | sed -n 's/^generic-receive-offload: //p')
	rate=$(tc -n "$ns" qdisc show dev eth0 2>/dev/null | sed -n 's/.*tbf.* rate \([^ ]*\).*/\1/p')
	ip -n "$LAB_SW" link show "p$1" >/dev/null 2>&1 && plugged=p$1 || plugged=none
	procs=$(ip netns pids "$ns" | wc -l)
	echo "worker $1: $LAB_NET.$((10 + $1)) in $ns, port $plugged, gro ${gro:-?}, rate ${rate:-unlimited}, $procs processes"
}

# lab_faults [WORKER] FAULTS: what the XDP program does to a port's frames.
lab_faults() {
	local first=0 last=$((LAB_WORKERS - 1)) i value args=() seed=
	if [[ ${1-} =~ ^[0-9]+$ ]]; then
		worker_check "$1"
		first=$1 last=$1
		shift
	fi
	[ $# -gt 0 ] || usage_error "set: say what: loss-in 5 ..."
	while [ $# -gt 0 ]; do
		[ $# -ge 2 ] || usage_error "set: $1 needs a value"
		value=$2
		case $1 in
		loss|loss-in|loss-out) percent "$1" "$2"; value=${2%\%}% ;;
		delay|delay-in|delay-out) decimal "$1" "${2%ms}"; value=${2%ms} ;;
		seed) number "$1" "$2" 0 9223372036854775807 ;;
		*) usage_error "set: \"$1\" is none of: loss loss-in loss-out delay delay-in delay-out seed" ;;
		esac
		case $1 in
		loss|delay) args+=("$1-in" "$value" "$1-out" "$value") ;;
		seed) seed=$2 ;;
		*) args+=("$1" "$value") ;;
		esac
		shift 2
	done
	for ((i = first; i <= last; i++)); do
		# A seed of its own for every port, else they would lose in step.
		SAINA_CONTROL=$LAB_DIR/control "$LAB_BIN/saina" port set "p$i" "${args[@]}" \
			${seed:+seed "$((seed + i))"} || return 1
	done
}

lab_faults_initial() {
	[ -n "$LAB_LOSS$LAB_DELAY" ] || return 0
	# shellcheck disable=SC2086
	lab_faults seed "$LAB_SEED" ${LAB_LOSS:+loss $LAB_LOSS} ${LAB_DELAY:+delay $LAB_DELAY}
}
