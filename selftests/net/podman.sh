#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Workers in stock containers, on a network that Podman made: no privileges, no setting of
# GRO, no program at their end.  Their ports have the tc hook.
#
#     namespaces of this test's own: sainad, podman, bridge podman1 10.191.0.1
#         veth0 |       veth1 |       veth2 |      veth3 |        <- tc
#     containers w0          w1            w2           w3        saina-allreduce

for p in podman runc iptables busybox; do
	command -v $p >/dev/null && continue
	echo "1..0 # SKIP $p is not installed"
	exit 4
done

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

AGG=10.191.0.1
DIR=$WORK/podman
export SAINA_CONTROL=$DIR/control
CGROUP=saina-$LAB

# Containers, mounts, bridge and agent end with the first process of the namespaces.
mkdir -p "$DIR"/{root,run,conf,tmp,state,image/{bin,usr,lib,lib64,etc,tmp,proc,sys,dev,build}}
unshare --net --mount --pid --fork --kill-child --mount-proc sleep infinity &
holder=$!

finish_podman() {
	local status=$? dirs
	trap '' INT TERM HUP
	[ -z "${inner-}" ] || pod rm -fa >/dev/null 2>&1
	kill -KILL "$holder" 2>/dev/null
	wait "$holder" 2>/dev/null
	for dirs in /sys/fs/cgroup/*/"$CGROUP" /sys/fs/cgroup/"$CGROUP"; do
		[ ! -d "$dirs" ] || find "$dirs" -depth -type d -exec rmdir {} + 2>/dev/null
	done
	(exit $status)
	finish
}
trap finish_podman EXIT

inside() {
	nsenter -t "$inner" --net --mount --pid -- "$@"
}

pod() {
	inside podman --runtime runc --cgroup-manager=cgroupfs --root "$DIR/root" --runroot "$DIR/run" \
		--storage-driver vfs --network-config-dir "$DIR/conf" --tmpdir "$DIR/tmp" --events-backend none "$@"
}

has_inner() {
	inner=$(pgrep -P "$holder" -x sleep)
}

until_true 10 has_inner || bail "no namespaces"
[ "$(inside readlink /proc/self/ns/net)" != "$(readlink /proc/self/ns/net)" ] || bail "no namespace of its own"
inside mount -t tmpfs tmpfs /run
cp "$(command -v busybox)" "$DIR/image/bin/busybox"

image() {
	tar -C "$DIR/image" -c . | pod import - stock:1
}

# container NAME COMMAND...: as people start them; the host lends its libraries and our programs.
container() {
	pod run -d --name "$1" --network net1 --cgroup-parent "/$CGROUP" --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
		-v /usr:/usr:ro -v /lib:/lib:ro -v /lib64:/lib64:ro -v "$B:/build:ro" localhost/stock:1 "${@:2}"
}

check "podman: an image is made" image || bail "no image"
check "podman: a network is made" pod network create --disable-dns --subnet 10.191.0.0/24 net1
# The bridge comes with the first container.
check "podman: a container starts" container idle /bin/busybox sleep 1000 || bail "no container"
equal "podman: the network is a bridge" 1 "$(inside ip -o link show type bridge | grep -c podman1)"

cat >"$DIR/sainad.conf" <<-TXT
	bridge = "podman1";
	address = "$AGG";
	control = "$DIR/control";
	runtime_dir = "$DIR/state";
	bpffs = "$DIR/state/bpf";
	object = "$B/saina_xdp.bpf.o";
	control_plane = "agent";
TXT
inside "$B/sainad" -c "$DIR/sainad.conf" >"$DIR/log" 2>&1 &
check "sainad starts" until_true 20 "$B/saina" port show || bail "$(cat "$DIR/log")"

job_runs() {
	[ "$(job_field boxes state)" = running ]
}

rounds=$(less 100)
job boxes workers 4 elements 100003 policy bsp
for i in 0 1 2 3; do
	check "container w$i starts" container "w$i" /bin/busybox sh -c "
		/bin/busybox grep CapEff /proc/self/status
		exec /build/saina-allreduce --aggregator $AGG --job ${job_ids[boxes]} --worker $i --rounds $rounds \
			--elements 100003 --seed $SEED --json --join-timeout-ms $((20000 * SLOW)) --think-us 10000"
done
check "containers: the job runs" until_true 30 job_runs
equal "containers: every port has tc by itself" "tc auto" "$(sj port show '[.[]|"\(.mode) \(.hook)"]|unique|join(", ")')"
equal "containers: GRO is off at their end, as Podman left it" "generic-receive-offload: off" \
	"$(inside nsenter -t "$(pod inspect -f '{{.State.Pid}}' w0)" --net -- ethtool -k eth0 | grep '^generic-receive-offload')"
equal "containers: all four end well" "0 0 0 0" "$(pod wait w0 w1 w2 w3 | xargs)"
for i in 0 1 2 3; do
	pod logs "w$i" >"$DIR/said.$i" 2>&1
done
equal "containers: none has CAP_NET_ADMIN" 0 "$((0x$(sed -n 's/^CapEff:\t//p' "$DIR/said.0") >> 12 & 1))"
equal "containers: all sums of all four are exact" "$(for i in 0 1 2 3; do echo "$rounds 0"; done)" \
	"$(for i in 0 1 2 3; do grep '^{' "$DIR/said.$i" | jq -r '"\(.rounds) \(.wrong + .unverified)"'; done)"
equal "containers: all four have the same results" 1 "$(grep -h '^{' "$DIR"/said.? | jq -r .crc | sort -u | wc -l)"
equal "containers: no result is relayed" 0 "$(counter boxes all relayed)"
equal "containers: they say that they are on the fast path" "0 0 0 0" \
	"$(for i in 0 1 2 3; do grep '^{' "$DIR/said.$i" | jq -r .relayed; done | xargs)"
complaints=$(grep -aE '(error|warn(ing)?)[]:> ]' "$DIR/log")
equal "the agent complained of nothing" "" "$complaints"
finished
