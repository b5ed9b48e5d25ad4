# shellcheck shell=bash disable=SC2015,SC2034,SC2153
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A worker's namespace, its link to the switch, its rate and its faults.  Sourced by tools/saina-lab.

worker_check() { # WORKER [WHAT ELSE IS ALLOWED]
	[[ $1 =~ ^(0|[1-9][0-9]{0,2})$ ]] && (($1 < LAB_WORKERS)) ||
		usage_error "\"$1\" is not a worker of this lab: 0 to $((LAB_WORKERS - 1))${2-}"
}

# Makes all namespaces by one command, because starting a program takes longer than its work.
workers_up() { # WORKER...
	local i
	for i; do
		echo "netns add saina-$LAB_NAME-w$i"
	done | ip -batch -
	worker_links "$@"
}

worker_links() { # WORKER...
	local i
	for i; do
		# MAC addresses with the worker's number make captures readable.
		printf 'link add p%d mtu %d type veth peer name eth0 mtu %d address 02:5a:00:00:00:%02x netns %s\n' \
			"$i" "$LAB_MTU" "$LAB_MTU" $((10 + i)) "saina-$LAB_NAME-w$i"
	done | ip -n "$LAB_SW" -batch -
	for i; do
		worker_end "$i"
	done
	# After worker_end: a port accepts redirected frames only if its other end has GRO
	# when the port is set up.
	for i; do
		echo "link set p$i up"
	done | ip -n "$LAB_SW" -batch -
}

# Configures the worker's end of its link.
worker_end() { # WORKER
	# A veth accepts redirected frames only with NAPI, which GRO turns on.
	# shellcheck disable=SC2016
	in_ns "saina-$LAB_NAME-w$1" sh -ec '
		for d in all default eth0; do
			echo 1 >/proc/sys/net/ipv6/conf/$d/disable_ipv6
		done
		ethtool -K eth0 gro "$1" tx "$2" >/dev/null
		exec ip -batch -' worker "$LAB_GRO" "$LAB_CSUM" <<-TXT
		link set lo up
		addr add $LAB_NET.$((10 + $1))/24 dev eth0
		link set eth0 up
	TXT
	[ -z "$LAB_RATE$LAB_DELAY" ] && [ ! -e "$LAB_DIR/shape.$1" ] || worker_shape "$1"
}

# worker_shape WORKER [rate=RATE] [burst=SIZE] [delay_in=MS] [delay_out=MS]: limits and delays both
# directions inside the worker's namespace: egress by qdiscs of eth0, ingress by those of an ifb to
# which everything received is redirected.  What is not given stays as it is.
worker_shape() {
	local ns=saina-$LAB_NAME-w$1 file=$LAB_DIR/shape.$1 rate=$LAB_RATE burst=64kb
	local delay_in=${LAB_DELAY:-0} delay_out=${LAB_DELAY:-0}
	shift
	# shellcheck source=/dev/null
	[ ! -e "$file" ] || . "$file"
	[ $# = 0 ] || local "$@"
	{
		tc -n "$ns" qdisc del dev eth0 root
		tc -n "$ns" qdisc del dev eth0 ingress
		ip -n "$ns" link del ifb0
	} 2>/dev/null || true
	if [ "$rate$delay_in$delay_out" != 00 ]; then
		worker_qdiscs eth0 "$delay_in"
		ip -n "$ns" link add ifb0 mtu "$LAB_MTU" type ifb
		ip -n "$ns" link set ifb0 up
		worker_qdiscs ifb0 "$delay_out"
		tc -n "$ns" qdisc add dev eth0 ingress
		tc -n "$ns" filter add dev eth0 ingress protocol all u32 match u32 0 0 \
			action mirred egress redirect dev ifb0
	fi
	declare -p rate burst delay_in delay_out >"$file"
}

# Of worker_shape(): a delay, if there is one, and behind it a limit, if there is one.
worker_qdiscs() { # DEVICE DELAY
	local parent=root
	if [ "$2" != 0 ]; then
		tc -n "$ns" qdisc add dev "$1" root handle 1: netem delay "$2ms" limit 100000 ||
			die "tc refuses a delay of $2 ms: this kernel may lack netem (CONFIG_NET_SCH_NETEM, the module sch_netem)"
		parent="parent 1:1"
	fi
	# shellcheck disable=SC2086
	[ -z "$rate" ] || tc -n "$ns" qdisc add dev "$1" $parent tbf rate "$rate" burst "$burst" limit 8mb ||
		die "tc refuses rate \"$rate\" with burst \"$burst\": write them like 100mbit and 64kb"
}

worker_show() { # WORKER
	local ns=saina-$LAB_NAME-w$1 gro rate plugged procs
	gro=$(in_ns "$ns" ethtool -k eth0 2>/dev/null | sed -n 's/^generic-receive-offload: //p')
	rate=$(tc -n "$ns" qdisc show dev eth0 2>/dev/null | sed -n 's/.*tbf.* rate \([^ ]*\).*/\1/p')
	ip -n "$LAB_SW" link show "p$1" >/dev/null 2>&1 && plugged=p$1 || plugged=none
	procs=$(ip netns pids "$ns" | wc -l)
	echo "worker $1: $LAB_NET.$((10 + $1)) in $ns, port $plugged, gro ${gro:-?}, rate ${rate:-unlimited}, $procs processes"
}

# lab_faults [WORKER] FAULTS: sets losses, which SAINA's program injects at ports, and delays of links.
lab_faults() {
	local first=0 last=$((LAB_WORKERS - 1)) i value args=() shape=() seed=
	if [[ ${1-} =~ ^[0-9]+$ ]]; then
		worker_check "$1"
		first=$1 last=$1
		shift
	fi
	[ $# -gt 0 ] || usage_error "set: no faults given, such as loss-in 5"
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
		loss) args+=(loss-in "$value" loss-out "$value") ;;
		delay) shape+=("delay_in=$value" "delay_out=$value") ;;
		delay-*) shape+=("${1/-/_}=$value") ;;
		seed) seed=$2 ;;
		*) args+=("$1" "$value") ;;
		esac
		shift 2
	done
	for ((i = first; i <= last; i++)); do
		[ ${#shape[@]} = 0 ] || worker_shape "$i" "${shape[@]}"
		[ -n "${args[*]}$seed" ] || continue
		# A different seed for each port: with the same one all would lose the same frames.
		SAINA_CONTROL=$LAB_DIR/control "$LAB_BIN/saina" port set "p$i" "${args[@]}" \
			${seed:+seed "$((seed + i))"} || return 1
	done
}

lab_faults_initial() {
	[ -z "$LAB_LOSS" ] || lab_faults seed "$LAB_SEED" loss "$LAB_LOSS"
}
