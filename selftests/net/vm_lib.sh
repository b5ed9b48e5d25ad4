# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# For tests with workers in VMs (vm_workers.sh, vm_workers_tc.sh): selftests/vm/saina-vm on a tap that is a port of
# the lab.  Sourced instead of lib.sh.

if [ -n "${SAINA_VM-}" ]; then
	echo "1..0 # SKIP this is a VM itself"
	exit 4
fi

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# The VMs start in the lab, from where no archive can be reached.
check "taps: the VMs' kernels are there" "$TOP/selftests/vm/saina-vm" fetch --missing 6.1 6.12 || bail "no kernels for the VMs"

declare -A vm_pids=()

# vm_start WORKER KERNEL MTU [OPTIONS OF ethtool -K]: boots a VM on tap t<WORKER>;
# vm_guest.sh runs in it.
# The VM is a process of the switch's namespace, so it ends with the lab.
vm_start() {
	local dir=$WORK/vm$1
	rm -rf "$dir"
	mkdir "$dir"
	# Its temporary files go with ours, even if it is killed.
	TMPDIR=$WORK "$LAB_TOOL" exec "$LAB" switch "$TOP/selftests/vm/saina-vm" run -k "$2" -m 512 -c 1 \
		-t 900 -o "$dir" --tap "t$1" -- "$NET_DIR/vm_guest.sh" "$AGG_NET.$((10 + $1))/24" "${@:3}" \
		>"$dir/output" 2>&1 </dev/null &
	vm_pids[$1]=$!
}

vm_up() { # WORKER: its VM is up, or has ended
	[ -e "$WORK/vm$1/up" ] || pid_gone "${vm_pids[$1]}"
}

vm_check_up() { # WORKER SECONDS
	check "VM $1 boots" slowwait "$2" vm_up "$1"
	[ -e "$WORK/vm$1/up" ] || {
		diag "$(tail -n 20 "$WORK/vm$1/output")"
		bail "VM $1 does not come up"
	}
}

# vm_worker WORKER JOB ROUNDS [saina-allreduce's options]: does in a VM what start() does in
# a namespace; the worker's log is $WORK/WORKER.log.
vm_worker() {
	local dir=$WORK/vm$1
	rm -f "$dir"/{status,log,out,err}
	: >"$dir/log"
	# shellcheck disable=SC2016 # it is the guest's
	printf '%s\n' bash -c 'exec "$@" --log "$VM_OUT/log"' worker "$B/saina-allreduce" \
		--aggregator "$AGG" --job "${job_ids[$2]}" --worker "$1" --rounds "$3" --seed "$SEED" --json \
		--join-timeout-ms 60000 "${@:4}" >"$dir/start.new"
	mv "$dir/start.new" "$dir/start"
	ln -sf "vm$1/log" "$WORK/$1.log"
	ln -sf "vm$1/out" "$WORK/$1.out"
}

vm_worker_ended() { # WORKER
	[ -e "$WORK/vm$1/status" ] || pid_gone "${vm_pids[$1]}"
}

vm_workers_stop() { # WORKER...
	local i
	for i; do
		: >"$WORK/vm$i/stop"
	done
}

# vm_wait SECONDS WORKER...: waits until these workers have ended; succeeds if all ended with
# status 0, which they do only if every sum was right.
vm_wait() {
	local deadline=$((SECONDS + $1)) i bad=0
	shift
	for i; do
		slowwait $((deadline > SECONDS ? deadline - SECONDS : 0)) vm_worker_ended "$i"
		[ "$(cat "$WORK/vm$i/status" 2>/dev/null)" = 0 ] && continue
		bad=1
		echo "worker $i: status $(cat "$WORK/vm$i/status" 2>/dev/null || echo unknown)"
		tail -n 3 "$WORK/vm$i/err" "$WORK/vm$i/output"
	done
	return $bad
}

vm_kill() { # WORKER: kills the VM's qemu, as if the machine had lost its power
	local pid
	for pid in $(ip netns pids "saina-$LAB-sw"); do
		[ "$(readlink "/proc/$pid/exe")" = "$(readlink -f "$(command -v qemu-system-x86_64)")" ] &&
			tr '\0' ' ' <"/proc/$pid/cmdline" | grep -q "ifname=t$1," && kill -KILL "$pid" && return
	done
	echo "no VM $1 runs"
	return 1
}

vm_end() { # WORKER
	: >"$WORK/vm$1/end"
	check "VM $1 ends" slowwait 120 pid_gone "${vm_pids[$1]}"
	check "VM $1: its kernel reported nothing wrong" vm_ended_well "$1"
}

vm_ended_well() { # WORKER
	wait "${vm_pids[$1]}" || {
		cat "$WORK/vm$1/output"
		return 1
	}
}

ports_are() { # NUMBER
	[ "$(saina_jq port show length)" = "$1" ]
}

all_ended() {
	local bad=0
	wait_all "$1" || bad=1
	vm_wait "$@" || bad=1
	return $bad
}

AGG_NET=${AGG%.*}
