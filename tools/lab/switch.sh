# shellcheck shell=bash disable=SC2015,SC2034,SC2153
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The switch of a lab: a private Open vSwitch, or a Linux bridge.  Sourced by tools/saina-lab.

# Runs a command with the environment by which OVS tools find this lab's instance.
ovs_env() { # CMD...
	OVS_RUNDIR=$LAB_DIR/ovs OVS_LOGDIR=$LAB_DIR/ovs OVS_DBDIR=$LAB_DIR/ovs \
	OVS_SYSCONFDIR=$LAB_DIR/ovs "$@"
}

ovs_vsctl() {
	ovs_env ovs-vsctl --timeout=$((60 * SLOW)) --db="unix:$LAB_DIR/db.sock" "$@"
}

switch_text() {
	case $LAB_BRIDGE in
	ovs)	echo "ovs (${LAB_DATAPATH:-netdev})" ;;
	*)	echo "$LAB_BRIDGE" ;;
	esac
}

# Checks that the kernel has what the datapath needs.
switch_need_datapath() {
	case $LAB_DATAPATH in
	netdev)	[ -c /dev/net/tun ] ||
			die "no /dev/net/tun: the userspace datapath of Open vSwitch needs it; use --bridge linux" ;;
	system)	[ -d /sys/module/openvswitch ] || modprobe -q openvswitch ||
			die "the kernel has no openvswitch module: use --datapath netdev" ;;
	esac
}

switch_up() {
	[ -r "$LAB_DIR/inside" ] || ip netns add "$LAB_SW"
	in_ns "$LAB_SW" sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1
	ip -n "$LAB_SW" link set lo up
	case $LAB_BRIDGE in
	ovs)	switch_up_ovs ;;
	linux)	# A fixed MAC address: otherwise the bridge takes that of a port, and workers lose
		# the aggregator when ports are added or removed.
		ip -n "$LAB_SW" link add br0 address 02:5a:00:00:00:01 type bridge mcast_snooping 0
		ip -n "$LAB_SW" link set br0 mtu "$LAB_MTU" ;;
	esac
	ip -n "$LAB_SW" addr add "$LAB_NET.1/24" dev br0
	ip -n "$LAB_SW" link set br0 up
}

switch_up_ovs() {
	local schema=/usr/share/openvswitch/vswitch.ovsschema
	command -v ovs-vswitchd >/dev/null && [ -r $schema ] ||
		die "Open vSwitch is not installed: install it (Debian: openvswitch-switch), or use --bridge linux"
	switch_need_datapath
	mkdir -p "$LAB_DIR/ovs"
	ovs_env ovsdb-tool create "$LAB_DIR/ovs/conf.db" $schema
	ovs_env in_ns "$LAB_SW" ovsdb-server "$LAB_DIR/ovs/conf.db" \
		--remote="punix:$LAB_DIR/db.sock" --unixctl="$LAB_DIR/ovs/db.ctl" \
		--pidfile="$LAB_DIR/ovs/db.pid" --log-file="$LAB_DIR/ovs/db.log" \
		--verbose=console:off --detach --no-chdir 2>>"$LAB_DIR/ovs/start.log"
	ovs_vsctl --no-wait init
	# Open vSwitch 3.1 started within the first seconds of a machine's uptime
	# never gets handler threads: a time namespace makes the uptime longer.
	ovs_env in_ns "$LAB_SW" unshare -T --monotonic 1000 --boottime 1000 --fork -- \
		ovs-vswitchd "unix:$LAB_DIR/db.sock" --unixctl="$LAB_DIR/ovs/vswitchd.ctl" \
		--pidfile="$LAB_DIR/ovs/vswitchd.pid" --log-file="$LAB_DIR/ovs/vswitchd.log" \
		--verbose=console:off --detach --no-chdir 2>>"$LAB_DIR/ovs/start.log"
	ovs_vsctl add-br br0 -- set bridge br0 "datapath_type=$LAB_DATAPATH" fail-mode=standalone \
		-- set interface br0 "mtu_request=$LAB_MTU"
	until_true 10 ip -n "$LAB_SW" link show br0 >/dev/null 2>&1 || {
		tail -n 5 "$LAB_DIR/ovs/vswitchd.log" >&2 || true
		die "Open vSwitch did not create br0 within $((10 * SLOW)) s: the end of its log is above"
	}
	# The userspace datapath does not complete checksums left to hardware.
	[ "$LAB_DATAPATH" = system ] || in_ns "$LAB_SW" ethtool -K br0 tx off >/dev/null 2>&1 || true
}

# Adds ports by one command, because each ovs-vsctl waits for the daemon.  The link of a
# single port may be gone (switch_port_del): then it is made again.
switch_ports_add() { # WORKER...
	local i args=()
	for i; do
		[ $# -gt 1 ] || ip -n "$LAB_SW" link show "p$i" >/dev/null 2>&1 || worker_links "$i"
		if [ "$LAB_BRIDGE" = ovs ]; then
			args+=(-- --may-exist add-port br0 "p$i" -- set interface "p$i" "mtu_request=$LAB_MTU")
		else
			args+=("link set p$i master br0")
		fi
	done
	if [ "$LAB_BRIDGE" = ovs ]; then
		ovs_vsctl "${args[@]}"
	else
		printf '%s\n' "${args[@]}" | ip -n "$LAB_SW" -batch -
	fi
}

switch_port_del() { # WORKER
	if [ "$LAB_BRIDGE" = ovs ]; then
		ovs_vsctl --if-exists del-port br0 "p$1"
	else
		ip -n "$LAB_SW" link del "p$1"
	fi
}

# A port for a VM: qemu, started in the switch's namespace, opens the tap by name.
# The tap, with its XDP program, exists before and after qemu.
switch_tap_add() { # INTERFACE
	! ip -n "$LAB_SW" link show "$1" >/dev/null 2>&1 || die "lab $LAB_NAME has an interface $1 already"
	[ -c /dev/net/tun ] || die "no /dev/net/tun, which a tap needs: modprobe tun"
	# vnet_hdr carries the mark of a checksum that is still to be computed.
	ip -n "$LAB_SW" tuntap add dev "$1" mode tap vnet_hdr || die "cannot create the tap $1"
	ip -n "$LAB_SW" link set "$1" mtu "$LAB_MTU" up
	if [ "$LAB_BRIDGE" = ovs ]; then
		ovs_vsctl add-port br0 "$1" -- set interface "$1" "mtu_request=$LAB_MTU"
	else
		ip -n "$LAB_SW" link set "$1" master br0
	fi
}

switch_tap_del() { # INTERFACE
	# With the userspace datapath br0 is a tap, too, which must stay.
	[ "$1" != br0 ] && ip -n "$LAB_SW" -d link show "$1" 2>/dev/null | grep -q ' tun type tap' ||
		die "lab $LAB_NAME has no tap $1"
	[ "$LAB_BRIDGE" = linux ] || ovs_vsctl --if-exists del-port br0 "$1"
	ip -n "$LAB_SW" link del "$1"
}

# The database is removed with the lab: the daemons need not save anything.
switch_undo() {
	local f pid
	for f in vswitchd db; do
		pid=$(cat "$LAB_DIR/ovs/$f.pid" 2>/dev/null) || continue
		[ "$(readlink "/proc/$pid/ns/net" 2>/dev/null)" = "net:[$(stat -Lc %i "/run/netns/$LAB_SW" 2>/dev/null)]" ] &&
			kill -KILL "$pid" 2>/dev/null
	done
	[ ! -r "$LAB_DIR/inside" ] || ip -n "$LAB_SW" link del br0 2>/dev/null
	return 0
}
