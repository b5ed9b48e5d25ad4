#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# tools/quickstart/podman: workers in stock containers, on a network of Podman's own.
#
#	podman.sh [all]		all: also sections 3 to 7
#
#     namespaces of this test's own: sainad, podman, bridge podman1
#         veth0 |       veth1 |       veth2 |      veth3 |        <- tc
#     containers 0           1             2            3         saina-allreduce
#
# 1. Four workers in containers
# 2. Ctrl-C, and what is refused at once
# 3. A network that is there
# 4. PyTorch: a script for torchrun, unchanged
# 5. An image with programs of its own
# 6. A host that refuses the first starts
# 7. Failures

for p in podman runc iptables busybox; do
	command -v $p >/dev/null && continue
	echo "1..0 # SKIP $p is not installed"
	exit 4
done

# shellcheck source=quickstart_lib.sh
. "$(dirname "$0")/quickstart_lib.sh"

DIR=$WORK/podman
CGROUP=saina-$LAB
# How Podman runs within namespaces, without systemd and with its state in a directory.
export ENGINE_OPTIONS="--runtime runc --cgroup-manager=cgroupfs --root $DIR/root --runroot $DIR/run --storage-driver vfs
	--network-config-dir $DIR/conf --tmpdir $DIR/tmp --events-backend none"
ENGINE_OPTIONS=$(xargs <<<"$ENGINE_OPTIONS")
export RUN_OPTIONS="--cgroup-parent /$CGROUP --ulimit nofile=1024:1024 --ulimit nproc=1024:1024"

mkdir -p "$DIR"/{root,run,conf,tmp}

finish_podman() {
	local status=$? dirs
	trap '' INT TERM HUP
	pod rm -fa >/dev/null 2>&1
	quickstart_end
	for dirs in /sys/fs/cgroup/*/"$CGROUP" /sys/fs/cgroup/"$CGROUP"; do
		[ ! -d "$dirs" ] || find "$dirs" -depth -type d -exec rmdir {} + 2>/dev/null
	done
	(exit $status)
	finish
}
trap finish_podman EXIT

pod() {
	# shellcheck disable=SC2086 # words
	in_ns podman $ENGINE_OPTIONS "$@"
}

leftovers() {
	pod ps -aq
	pod network ls -q | grep quickstart
	pod images -q
	leftovers_of_any
}

# 1. Four workers in containers
rounds=$(shrink 300)
quickstart four --subnet 10.191.0.0/24 -- sh -c "
	grep CapEff /proc/self/status
	exec /opt/saina-allreduce --worker \$SAINA_RANK --rounds $rounds --elements 100000 --seed $SEED --json \
		--join-timeout-ms $((20000 * SLOW)) --think-us 20000"
control four
check "containers: the job runs" slowwait 60 job_runs
shown_live() {
	[ -n "$(pod ps -q --filter "name=$id-0")" ] && grep -q 'worker 0: CapEff' "$WORK/four.out"
}
check "quickstart: shows the lines of a worker while it runs" slowwait 30 shown_live
equal "containers: every port has tc by itself" "tc auto" "$(saina_jq port show '[.[]|"\(.mode) \(.hook)"]|unique|join(", ")')"
equal "containers: GRO is off at their end, as Podman left it" "generic-receive-offload: off" \
	"$(in_ns nsenter -t "$(pod inspect -f '{{.State.Pid}}' "$id-0")" --net -- ethtool -k eth0 | grep '^generic-receive-offload')"
in_ns "$B/saina" -s "$SAINA_CONTROL" -j doctor host bridge podman1 >"$WORK/doctor"
equal "doctor: a port with hook tc is ok, the stock container behind it is named" "ok stock container" \
	"$(jq -r '.[]|select(.check=="port-redirect")|.status+" "+(.found|match("stock container").string)' "$WORK/doctor" | sort -u)"
equal "doctor: nothing is relayed to stock containers" "" "$(jq -r '.[]|select(.check=="relayed").found' "$WORK/doctor")"
matches "doctor worker: is ok in a stock container, names it, and says what its port needs" \
	'ok +napi +eth0: stock container \(GRO is off, no CAP_NET_ADMIN\).* -> .*saina port set PORT hook auto' \
	"$(pod exec "$id-0" /opt/saina doctor worker to 10.191.0.1 | tr '\n' ' ')"
equal "containers: no result is relayed" 0 "$(counter quickstart all relayed)"
equal "the agent complained of nothing" "" "$(grep -aE '(error|warn(ing)?)[]:> ]' "$(dirname "$SAINA_CONTROL")/log")"
ended four
equal "quickstart: ends with status 0 when all workers ended well" "0: " "$output"
equal "quickstart: shows what each worker said: all sums of all four are exact" "$(for i in 0 1 2 3; do echo "$i $rounds 0 0"; done)" \
	"$(sed -n 's/^  worker [0-9]: {/{/p' "$WORK/four.out" | jq -r '"\(.worker) \(.rounds) \(.wrong + .unverified) \(.relayed)"' | sort)"
equal "containers: all four have the same results" 1 \
	"$(sed -n 's/^  worker [0-9]: {/{/p' "$WORK/four.out" | jq -r .crc | sort -u | wc -l)"
equal "containers: none has CAP_NET_ADMIN" "0 0 0 0" "$(sed -n 's/.*CapEff:\t//p' "$WORK/four.out" | while read -r c; do
	echo $((0x$c >> 12 & 1))
done | xargs)"
equal "quickstart: leaves nothing behind" "" "$(leftovers)"

# 2. Ctrl-C, and what is refused at once
ctrl_c 'the containers run' 0 --workers 2 -- sleep 1000

mkdir "$WORK/bin"
for p in bash dirname readlink id; do
	ln -s "$(command -v $p)" "$WORK/bin/$p"
done
PATH=$WORK/bin bash "$TOP/tools/quickstart/podman" >"$WORK/output" 2>&1
matches "quickstart: without podman: says how to install it" '^1: quickstart: podman is not installed: apt install podman$' "$?: $(cat "$WORK/output")"
"$TOP/tools/quickstart/podman" --workers 65 >"$WORK/output" 2>&1
matches "quickstart: refuses a number of workers that cannot be" '^2: .*"65" is not a whole number from 1 to 64' "$?: $(cat "$WORK/output")"
[ "${1-}" = all ] || { finished; exit; }
# At any moment while Podman makes veths and bridge.
for seconds in 0 0.1 0.2 0.3 0.4 0.5; do
	ctrl_c 'starting container 0' $seconds --workers 2 -- sleep 1000
done

# 3. A network that is there
check "podman: a network is made" pod network create --disable-dns own
quickstart own --network own --workers 2 --rounds "$(shrink 50)" --elements 1000
ended own
equal "quickstart: runs on a network that is there" "0: " "$output"
equal "quickstart: says in words that every sum was right" "2 2" \
	"$(grep -cE "^  worker [01]: $(shrink 50) rounds, segments exact [1-9][0-9]*, wrong 0, unverified 0;.* relayed 0;" "$WORK/own.out") $(
	grep -oE 'all [0-9]+ workers ended well' "$WORK/own.out" | tr -dc 0-9)"
equal "quickstart: leaves the network that was there, and nothing else" "own " "$(pod network ls --format '{{.Name}}' | grep own) $(leftovers)"

check "make install: to a prefix of one's own" make -s -C "$TOP" install B="$B" PREFIX="$WORK/prefix"
quickstart_script=$WORK/prefix/share/saina/quickstart/podman SAINA_BUILD=$WORK/none quickstart prefix --workers 2 --elements 1000
ended prefix
equal "quickstart: runs from a prefix of one's own, which containers do not have" "0: " "$output"

# 4. PyTorch: a script for torchrun, unchanged
if /usr/bin/python3 -c 'import torch' 2>/dev/null; then
	quickstart torch --workers 2 --elements auto --lend "$TOP/userland/examples" -- python3 "$TOP/userland/examples/ddp.py"
	ended torch
	equal "quickstart: a script with DistributedDataParallel runs in two containers" "0: " "$output"
	equal "quickstart: DistributedDataParallel: both ranks end, with the same model" "2 1" \
		"$(grep -cE 'worker [01]: rank [01]: 2 ranks, model [0-9a-f]{16}$' "$WORK/torch.out") $(
		sed -n 's/.*2 ranks, model //p' "$WORK/torch.out" | sort -u | wc -l)"
	# shellcheck disable=SC2016 # awk's
	check "quickstart: DistributedDataParallel: it learns" awk '/rank 0: step 0,/ { first = $NF } /rank 0: step 199,/ { last = $NF }
		END { exit !(last < first / 2) }' "$WORK/torch.out"
else
	point 0 "quickstart: a script with DistributedDataParallel runs in two containers # SKIP PyTorch is not installed"
fi

# 5. An image with programs of its own
mkdir -p "$DIR"/image/{bin,proc,sys,dev,etc}
cp "$(command -v busybox)" "$DIR/image/bin/busybox"
for p in sh sleep grep; do
	ln -s busybox "$DIR/image/bin/$p"
done
import() {
	tar -C "$DIR/image" -c . | pod import - localhost/own:1
}
check "podman: an image is made" import
# shellcheck disable=SC2016 # the container's
quickstart image --image localhost/own:1 --own-programs --workers 1 -- sh -c \
	'echo "$SAINA_AGGREGATOR $SAINA_JOB $SAINA_RANK, mounted: $(grep -cE " /(usr|lib|opt) " /proc/mounts)"'
ended image
matches "quickstart: an image with programs of its own has the job in its environment, and nothing of the host" \
	"worker 0: 10\.[0-9.]+ quickstart 0, mounted: 0" "$output $(cat "$WORK/image.out")"
check "quickstart: leaves the image that was there" pod rmi localhost/own:1

# 6. A host that refuses the first starts
mkdir "$WORK/strict"
cat >"$WORK/strict/podman" <<END
#!/bin/bash
# As on a host without systemd, where containers start with runc, its own cgroups and these limits only.
words=()
for word in "\$@"; do
	words+=("\$word")
	[ "\$word" != run ] || words+=(--cgroup-parent "/$CGROUP")
done
if [[ " \$* " = *" run "* && \$* != "--runtime runc --cgroup-manager=cgroupfs run "*"--ulimit nofile=1024:1024 --ulimit nproc=1024:1024"* ]]; then
	echo "Error: runc: error setting rlimit type 7: operation not permitted" >&2
	exit 126
fi
exec "$(command -v podman)" ${ENGINE_OPTIONS#*cgroupfs } "\${words[@]}"
END
chmod +x "$WORK/strict/podman"
PATH=$WORK/strict:$PATH ENGINE_OPTIONS='' RUN_OPTIONS='' quickstart retry --workers 2 --elements 1000
ended retry
equal "quickstart: where the first starts are refused it finds the options that the host needs" "0: " "$output"
tries="ENGINE_OPTIONS='--runtime runc --cgroup-manager=cgroupfs' RUN_OPTIONS='--ulimit nofile=1024:1024 --ulimit nproc=1024:1024'"
matches "quickstart: says what it tries, and why" "^3 .*setting rlimit type 7: .*; trying again with $tries\$" \
	"$(grep -c 'trying again' "$WORK/retry.out") $(grep 'trying again' "$WORK/retry.out" | tail -n 1)"
equal "quickstart: leaves nothing behind after starts that were refused" "" "$(leftovers)"

# 7. Failures
fails "a worker that fails is shown, with its status" 1 'ended with status 7' --workers 1 -- sh -c 'echo out of paper; exit 7'
matches "quickstart: shows what a worker that failed said" 'worker 0: out of paper' "$(cat "$WORK/bad.out")"
fails "an image that is not there: says how to get it" 1 'there is no image nosuch: podman pull nosuch' --image nosuch
fails "a network that is not there: says how to see those that are" 1 'no network nosuch: podman network ls' --network nosuch
pod network create --disable-dns --internal inner >/dev/null
fails "a bridge without an IPv4 address: says how to give it one" 1 'has no IPv4 address .*: ip addr add .* dev podman[0-9]' --network inner
fails "a job that is refused: says what sainad said" 1 'the job is refused: .*nosuch' --policy nosuch
equal "quickstart: leaves nothing behind when it fails" "" "$(leftovers)"
finished
