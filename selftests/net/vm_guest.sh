#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# What a VM of vm_workers.sh does: takes the address and the MTU given, then runs one
# worker after the other as the files in $VM_OUT say, which is a directory of the
# test's:
#
#	up		written here: the network is up
#	start		read here: a command, one word a line; its output goes to out and err
#	stop		read here: send SIGTERM to the command
#	status		written here: the command's exit status
#	end		read here: end the VM
#
#	vm_guest.sh ADDRESS/BITS MTU [OPTIONS OF ethtool -K]

set -u
dir=$VM_OUT pid=

ip link set eth0 mtu "$2" || exit 1
[ $# -le 2 ] || ethtool -K eth0 "${@:3}" >/dev/null || exit 1
ip addr add "$1" dev eth0
ip link set eth0 up
: >"$dir/up"

# A pause without a process: starting one is slow in here.
mkfifo /run/pause
exec 9<>/run/pause
while [ ! -e "$dir/end" ]; do
	if [ -e "$dir/start" ]; then
		mapfile -t words <"$dir/start"
		rm "$dir/start"
		"${words[@]}" >"$dir/out" 2>"$dir/err" &
		pid=$!
	fi
	if [ -e "$dir/stop" ]; then
		rm "$dir/stop"
		[ -z "$pid" ] || kill -TERM "$pid"
	fi
	if [ -n "$pid" ] && ! kill -0 "$pid" 2>/dev/null; then
		wait "$pid"
		echo $? >"$dir/status.new"
		mv "$dir/status.new" "$dir/status"
		pid=
	fi
	read -r -t 0.1 -u 9
done
# Not the status of the last pause.
exit 0
