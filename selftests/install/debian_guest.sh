#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# debian_guest.sh OLD NEW: what debian_test.sh does in the VM, as root, under systemd; the packages
# of the two versions are in old/ and new/ beside this script.
#
#     br0 10.0.0.1 (Linux bridge): sainad as a service
#      p0 |    p1 |    p2 |
#      w0 eth0 w1 eth0 w2 eth0    namespaces, 10.0.0.10 to .12: saina-allreduce
#     br1 10.0.1.1, without ports: sainad@br1
#
# 1. A Debian without us
# 2. apt installs the packages
# 3. A job
# 4. The configuration is read again, and there is a second agent
# 5. The packages are upgraded during a job
# 6. apt purges the packages

set -u
exec </dev/null
here=$(dirname "$(readlink -f "$0")")
old=$1 new=$2
workers=(0 1 2)
# shellcheck source=../tap.sh
. "$here/tap.sh"
tmp=$(mktemp -d)
export DEBIAN_FRONTEND=noninteractive LC_ALL=C PYTHONDONTWRITEBYTECODE=1
# systemd answers slowly where the processor is emulated.
export SYSTEMD_BUS_TIMEOUT=600

output_matches() { # ERE COMMAND...
	"${@:2}" >"$tmp/matched" 2>&1
	grep -qE -- "$1" "$tmp/matched" || { cat "$tmp/matched"; return 1; }
}

# state: all that packages may leave: files, units, pins, qdiscs, interfaces, modules, users, processes
state() {
	# Without what apt, dpkg and systemd write by themselves.
	(cd /run/vm/changed && find . \( -path ./tmp -o -path ./run -o -path ./var/lib/apt -o -path ./var/lib/dpkg -o -path ./var/lib/systemd \
		-o -path ./var/cache -o -path ./var/log -o -path ./var/tmp \) -prune -o ! -type c -print) | while read -r f; do
		[ -e "/run/vm/base/$f" ] || [ -L "/run/vm/base/$f" ] || echo "file ${f#.}"
	done
	find /run /var/lib/systemd -xdev -name '*saina*' ! -name 'saina-vm*' -print 2>/dev/null | sed 's/^/file /'
	find /sys/fs/bpf | sed 's/^/pin /'
	systemctl list-units --all --no-legend --plain '*saina*' | awk '$1 !~ /^saina-vm/ { print "unit", $1, $3 }'
	tc qdisc show | sed 's/^/qdisc /; s/ refcnt [0-9]*//'
	ip -o link | awk '{ print "link", $2 }'
	lsmod | awk '$1 ~ /saina/ { print "module", $1 }'
	dpkg -l | awk '$1 != "ii" && /saina/ { print "package", $1, $2 } $1 == "ii" { print "package", $2 }'
	sed 's/^/user /' /etc/passwd
	sed 's/^/group /' /etc/group
	pgrep -l saina | sed 's/^[0-9]*/process/' | grep -v saina-vm
}

network() {
	local w
	for w in 0 1; do
		ip link add "br$w" address "02:00:00:00:be:e$w" type bridge && ip link set "br$w" up && ip address add "10.0.$w.1/24" dev "br$w" || return 1
	done
	for w in "${workers[@]}"; do
		ip netns add "w$w" && ip link add "p$w" type veth peer name eth0 netns "w$w" || return 1
		ip -n "w$w" address add "10.0.0.1$w/24" dev eth0 && ip -n "w$w" link set eth0 up && ip link set "p$w" master br0 up || return 1
	done
}

no_network() {
	local w
	for w in "${workers[@]}"; do ip netns del "w$w"; done
	ip link del br0
	ip link del br1
}

pids=()
# train JOB ARGUMENT...: a worker in each namespace
train() {
	local job=$1 w
	pids=()
	for w in "${workers[@]}"; do
		rm -f "$tmp/$job.$w"
		ip netns exec "w$w" saina-allreduce --aggregator 10.0.0.1 --job "$job" --worker "$w" --token t0ken \
			--elements 20000 --join-timeout-ms -1 --timeout-ms -1 --log "$tmp/$job.$w" "${@:2}" >"$tmp/out.$w" 2>&1 </dev/null &
		pids+=($!)
	done
}

# trained: all workers ended with status 0, which means that each sum was compared
trained() {
	local p w=0 bad=0
	for p in "${pids[@]}"; do
		wait "$p" || { echo "worker $w: status $?: $(tail -n 5 "$tmp/out.$w")"; bad=1; }
		w=$((w + 1))
	done
	return $bad
}

rounds() { # JOB
	wc -l <"$tmp/$1.0" 2>/dev/null || echo 0
}

beyond() { # JOB N
	[ "$(rounds "$1")" -ge "$2" ]
}

# complete JOB: the log of each worker has each round once, from the first on, with all workers
# counted.  Only rounds that all have are compared: SIGTERM does not end workers in the same round.
complete() {
	python3 - "${#workers[@]}" "$tmp/$1".[0-9]* <<-'END'
		import json, sys
		n = int(sys.argv[1])
		logs = [[json.loads(line) for line in open(path)] for path in sys.argv[2:]]
		for i, row in enumerate(zip(*logs)):
		    if any(r["round"] != i or r["count_min"] != n for r in row) or len({r["crc"] for r in row}) != 1:
		        sys.exit(f"line {i}: {row}")
		sys.exit(not min(map(len, logs)))
	END
}

running() { # VERSION: the agent that runs has it
	local pid
	pid=$(systemctl show -P MainPID sainad.service)
	[ "$pid" != 0 ] && output_matches "$1\$" "/proc/$pid/exe" --version
}

agent_log() {
	journalctl -u sainad --no-pager -o cat
}

takeovers() {
	agent_log | grep -c 'taking it over'
}

# 1. A Debian without us
booted() {
	systemctl is-system-running --wait
	output_matches '^(running|degraded)$' systemctl is-system-running && grep -q '^VERSION_ID="12"' /etc/os-release && [ "$(cat /proc/1/comm)" = systemd ]
}
check "Debian 12 boots under systemd" booted
diag "$(systemctl list-units --failed --no-legend --plain)"
check "no network: nothing can be fetched" not ip route get 192.0.2.1
# The kernel makes interfaces when it loads this module, and they stay: load it before the first look.
modprobe ifb
network || bail "no network of the test's own"
no_network
state | sort >"$tmp/before"
network

# 2. apt installs the packages
check "apt installs the packages" apt-get install -y "$here"/old/*.deb
release=$(uname -r)
check "DKMS: the module is built for $release" output_matches "saina.*$old.*$release.*installed" dkms status
check "DKMS: modprobe loads the module" modprobe saina
check "DKMS: the module is that which DKMS installed" output_matches 'updates/dkms' modinfo -n saina
check "without a configuration the unit of sainad has not failed" not systemctl is-failed sainad

# 3. A job
mkdir -p /etc/saina && echo 'bridge = "br0";' >/etc/saina/sainad.conf
check "systemctl start sainad succeeds" systemctl start sainad || diag "$(agent_log | tail -n 30)"
# Debian's headers of 6.1 make no BTF: the agent cannot use such a module, and starts.
check "beside a module without BTF the agent has the jobs itself, and says why" output_matches 'built without BTF' agent_log
check "as soon as it has returned, the agent answers and has the ports" output_matches ' p2: mode tc' saina port show
check "systemctl status: active, by notification" output_matches 'Type=notify' systemctl show -p Type sainad
check "the agent is active" systemctl is-active sainad
check "a job is added" saina job add try elements 20000 workers ${#workers[@]} token t0ken
train try --rounds 20 --bsp-check
check "the job trains: each worker has compared each sum" trained
check "the job trains: no round is missing, all workers are in each sum" complete try
saina job delete try >/dev/null 2>&1

# 4. The configuration is read again, and there is a second agent
pid=$(systemctl show -P MainPID sainad)
echo 'jobs = ( { name = "more"; elements = 1000; workers = 1; } );' >>/etc/saina/sainad.conf
check "systemctl reload sainad succeeds" systemctl reload sainad
check "reload: the agent has what the configuration has now" slowwait 300 output_matches ': more: forming' saina job show more ||
	diag "$(agent_log | tail -n 30)"
check "reload: the unit is active, by the same process" [ "$(systemctl is-active sainad) $(systemctl show -P MainPID sainad)" = "active $pid" ]
echo 'bridge = "br0";' >/etc/saina/sainad.conf
saina job delete more >/dev/null 2>&1
second=(saina -s /run/sainad-br1/control)
echo 'control_plane = "agent";' >/etc/saina/br1.conf
check "systemctl start sainad@br1 succeeds" systemctl start sainad@br1 || diag "$(journalctl -u sainad@br1 --no-pager -o cat | tail -n 30)"
check "sainad@br1: it has jobs of its own" "${second[@]}" job add own elements 1000 workers 1
check "sainad@br1: the other agent does not know them" not saina job show own
check "sainad@br1: systemctl stops it" systemctl stop sainad@br1
check "sainad@br1: the first agent is active" systemctl is-active sainad

# 5. The packages are upgraded during a job
check "a job is added before the upgrade" saina job add long elements 20000 workers ${#workers[@]} token t0ken
# Few rounds a second: the upgrade needs the processors.
train long --rounds 0 --think-us 500000
check "upgrade: the job runs before" slowwait 300 beyond long 5
at=$(rounds long) taken=$(takeovers)
check "upgrade: apt installs the packages of a higher version" apt-get install -y "$here"/new/*.deb
diag "rounds: $at before, $(rounds long) after it"
check "upgrade: rounds were done during it" beyond long $((at + 1))
check "upgrade: the agent that runs is the new one" slowwait 60 running "${new//+/\\+}" || diag "$(agent_log | tail -n 30)"
at=$(rounds long)
check "upgrade: the job goes on after it" slowwait 300 beyond long $((at + 5))
kill -TERM "${pids[@]}"
check "upgrade: the workers end well, each has compared each sum" trained
check "upgrade: no round is lost, all workers are in each sum" complete long
check "upgrade: the agent took the data path over" [ "$(takeovers)" -gt "$taken" ]
check "upgrade: DKMS has built the module of the new version" output_matches "saina.*${new//+/\\+}.*$release.*installed" dkms status
check "upgrade: DKMS has none of the old one" not output_matches "saina.*$old,.*installed" dkms status

# 6. apt purges the packages
mapfile -t packages < <(dpkg-query -W -f '${Package} ${db:Status-Status}\n' '*saina*' | awk '$2 == "installed" { print $1 }')
check "purge: apt purges the packages" apt-get purge -y "${packages[@]}"
# bash suggests what ours recommend, so apt keeps it.
check "purge: apt removes what came with them" apt-get autoremove --purge -y bash-completion
# Written by us, not by a package.
rm -f /etc/saina/sainad.conf /etc/saina/br1.conf
rmdir /etc/saina 2>/dev/null
# systemd's own, of all sainad@.
systemctl stop system-sainad.slice 2>/dev/null
no_network
state | sort >"$tmp/after"
check "purge: no file, unit, pin, qdisc, interface, module, user or process is left" diff "$tmp/before" "$tmp/after"
cp "$tmp/before" "$tmp/after" "$here"
journalctl --no-pager >"$here/journal"
plan
