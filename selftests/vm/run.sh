# SPDX-License-Identifier: GPL-2.0-or-later
# shellcheck shell=bash disable=SC2154 # saina-vm sets what looks unset
#
# Starts one VM and judges how it ended.  Sourced by selftests/vm/saina-vm.
#
# $run/			a temporary directory, one per VM
#	ctl/		shared with the guest: what to run; status, logs
#	console.log	the kernel's console
#	stdout, stderr	FIFOs: the script's output

run=
qemu=

# stop_vm: ends the VM and the other processes started here, and removes $run; also the EXIT trap.
stop_vm() {
	if [ -n "$qemu" ]; then
		kill -TERM "$qemu" 2>/dev/null
		wait "$qemu" 2>/dev/null
	fi
	# shellcheck disable=SC2046
	kill $(jobs -p) 2>/dev/null
	[ -z "$run" ] || rm -rf "$run"
	qemu=
	run=
}

# keep_path PATH: makes a path of the host below /tmp or /run visible in the guest,
# which has a /tmp and a /run of its own.
keep_path() {
	case $1/ in
	/tmp/?*/* | /run/?*/*) grep -qxF "$1" "$run/ctl/keep" || echo "$1" >>"$run/ctl/keep" ;;
	esac
}

# prepare_run OUT COMMAND...: makes $run, fills the control share, and sets share to the
# directory of the results, OUT or one in $run.
prepare_run() {
	local m
	share=$1
	shift

	run=$(mktemp -d "${TMPDIR:-/tmp}/saina-vm.XXXXXX") || die "cannot create a temporary directory"
	mkdir "$run/ctl" "$run/out"
	[ "$share" ] || share=$run/out
	install -m 755 "$here/guest" "$run/ctl/guest"
	touch "$run/console.log" "$run/ctl/keep" "$run/ctl/modules"
	if [ "$debian" ]; then
		echo / >"$run/ctl/cwd"
		touch "$run/ctl/systemd"
	else
		pwd >"$run/ctl/cwd"
		keep_path "$(realpath "$here/../..")"
		keep_path "$(pwd)"
	fi
	for m in "$@"; do
		[ -z "$debian" ] || break
		[[ $m != */* || ! -e $m ]] || keep_path "$(dirname "$(realpath "$m")")"
	done
	for m in "${modules[@]}"; do
		echo "$m" >>"$run/ctl/modules"
		keep_path "$(dirname "$m")"
	done
	{
		echo "export SAINA_VM=$kernel"
		[ ${#envs[@]} -eq 0 ] || printf 'export %q\n' "${envs[@]}"
		printf 'exec'
		printf ' %q' "$@"
		echo
	} >"$run/ctl/command"
}

# start_qemu LIMIT [ARGUMENT...]: starts the VM, sets qemu to its process.  It is ended after
# LIMIT seconds (0: never), and when this process dies, even by KILL.
start_qemu() {
	local limit=$1 tree=$cache/$kernel n=0 tap image stall=60 root=/
	local fs=local,security_model=none
	shift
	image=$tree/vmlinux
	[ -z "$debian" ] || root=$tree/debian
	if [ "$kernel" = debug ]; then
		image=$tree/bzImage
		stall=300
	fi
	# shellcheck disable=SC2054 # qemu's commas
	local -a arg=(
		-machine q35 -accel tcg,thread=multi -cpu max -smp "$cpus" -m "$mem"
		-nodefaults -no-user-config -display none -no-reboot
		-kernel "$image" -initrd "$tree/initramfs"
		-append "console=ttyS0 loglevel=5 rdinit=/init panic=-1 oops=panic no_timer_check log_buf_len=4M random.trust_cpu=on mitigations=off rcupdate.rcu_cpu_stall_timeout=$stall $append"
		-chardev "file,id=console,path=$run/console.log" -serial chardev:console
		-device isa-debug-exit,iobase=0xf4,iosize=0x04
		-fsdev "$fs,id=host,path=$root,readonly=on,multidevs=remap"
		-device virtio-9p-pci,fsdev=host,mount_tag=host
		-fsdev "$fs,id=mods,path=$tree/root/lib/modules/$(cat "$tree/release"),readonly=on"
		-device virtio-9p-pci,fsdev=mods,mount_tag=mods
		-fsdev "$fs,id=ctl,path=$run/ctl" -device virtio-9p-pci,fsdev=ctl,mount_tag=ctl
		-fsdev "$fs,id=out,path=$share" -device virtio-9p-pci,fsdev=out,mount_tag=out
		-device virtio-serial-pci
	)
	for tap in "${taps[@]}"; do
		arg+=(-netdev "tap,id=net$n,ifname=${tap%%,*},script=no,downscript=no"
			-device "virtio-net-pci,netdev=net$n,mac=$(random_mac)${tap#"${tap%%,*}"}")
		n=$((n + 1))
	done
	if [ "$limit" -gt 0 ]; then
		setpriv --pdeathsig TERM timeout -k 3 "$limit" \
			setpriv --pdeathsig KILL qemu-system-x86_64 "${arg[@]}" "$@" </dev/null 2>"$run/qemu.log" &
	else
		setpriv --pdeathsig KILL qemu-system-x86_64 "${arg[@]}" "$@" <&3 3<&- 2>"$run/qemu.log" &
	fi
	qemu=$!
}

# random_mac: prints a MAC address, locally administered, unicast.
random_mac() {
	printf '52:54:00:%02x:%02x:%02x' $((RANDOM % 256)) $((RANDOM % 256)) $((RANDOM % 256))
}

# run_script COMMAND...: runs it in a VM of its own; returns the status that saina-vm exits
# with.  A kernel that fails before the second stage runs is started again: emulated
# processors sometimes execute code that the kernel is just patching (int3 oops).
run_script() {
	local rc try

	for try in 1 2 3; do
		run_once "$@"
		rc=$?
		# Tried again only if the second stage has not begun, which writes boot-s.
		if [ -s "$run/ctl/boot-s" ] || [ $rc = 124 ] || [ $rc = 137 ] || [ $try = 3 ]; then
			break
		fi
		note "the $kernel kernel did not boot: trying again"
		tail -n 5 "$run/console.log" >&2
		stop_vm
	done
	judge "$rc"
}

# run_once COMMAND...: returns qemu's status.
run_once() {
	local rc co ce

	prepare_run "$out" "$@"
	# Shortly before the host ends the VM, the guest logs which processes are left.
	echo $((timeout > 20 ? timeout - 10 : (timeout + 1) / 2)) >"$run/ctl/limit"
	mkfifo "$run/stdout" "$run/stderr"
	cat "$run/stdout" &
	co=$!
	cat "$run/stderr" >&2 &
	ce=$!
	start_qemu "$timeout" \
		-chardev "file,id=out,path=$run/stdout" -device virtserialport,chardev=out,name=saina.out \
		-chardev "file,id=err,path=$run/stderr" -device virtserialport,chardev=err,name=saina.err
	wait "$qemu"
	rc=$?
	qemu=
	# If qemu has never opened the FIFOs, the readers still wait: open and close them.
	: 7<>"$run/stdout" 8<>"$run/stderr"
	wait "$co" "$ce"
	return $rc
}

# judge QEMU-STATUS: prints what went wrong, returns the status to exit with.
judge() {
	local qrc=$1 bad=0 tainted=0 rc

	scan_log || bad=1
	if [ -s "$run/ctl/tainted" ]; then
		tainted=$(cat "$run/ctl/tainted")
		# 32: bad page, 128: oops, 512: warning, 16384: soft lockup.  An allowed
		# line may be the reason; otherwise selftests/vm/splat lacks a pattern.
		if [ "$bad" = 0 ] && [ "$allowed" = 0 ] && [ $((tainted & (32 | 128 | 512 | 16384))) -ne 0 ]; then
			note "the kernel is tainted ($tainted) by a warning or an oops"
			bad=1
		fi
	fi

	if [ "$bad" = 1 ] && stale_breakpoint; then
		rc=$EX_EMULATOR
		note "FAILED: an emulated processor stopped at a breakpoint that the kernel had removed: try again"
	elif [ "$bad" = 1 ]; then
		rc=$EX_KERNEL
		note "FAILED: trouble in the log of the $kernel kernel"
	elif [ -s "$run/ctl/status" ]; then
		rc=$(cat "$run/ctl/status")
		# An incomplete log cannot be called clean.
		if ! tail -n 5 "$run/ctl/dmesg.log" | grep -q 'saina-vm: end of the log'; then
			rc=$EX_KERNEL
			note "FAILED: the log of the $kernel kernel is incomplete"
		fi
	elif [ "$qrc" = 124 ] || [ "$qrc" = 137 ]; then
		rc=$EX_HANG
		note "FAILED: the VM did not end within $timeout s (--timeout)"
		tail -n 15 "$run/console.log" >&2
		[ ! -s "$run/ctl/ps.log" ] || grep -v '\[.*\]$' "$run/ctl/ps.log" >&2
	elif [ -s "$run/ctl/error" ]; then
		rc=$EX_SETUP
		note "FAILED: $(cat "$run/ctl/error")"
	else
		rc=$EX_SETUP
		note "FAILED: the VM ended before the script did (exit status of qemu: $qrc)"
		cat "$run/qemu.log" >&2
		tail -n 15 "$run/console.log" >&2
	fi
	[ -z "$timing" ] || [ ! -s "$run/ctl/boot-s" ] ||
		note "boot took $(cat "$run/ctl/boot-s") s of the guest's time"
	save_logs "$rc"
	return "$rc"
}

# scan_log: prints the first trouble in the kernel log, and fails if there is any.  Sets allowed
# to the number of lines that selftests/vm/allow excuses.
scan_log() {
	local log=$run/kernel.log first

	# dmesg.log has all messages while the guest follows the log; later ones, such as a
	# panic, are only on the console.
	cat "$run/ctl/dmesg.log" "$run/console.log" 2>/dev/null | tr -d '\r' >"$log"
	grep -v '^#' "$here/splat" >"$run/splat"
	grep -v '^#' "$here/allow" >"$run/allow"
	grep -anE -f "$run/splat" "$log" >"$run/hits"
	allowed=$(grep -acE -f "$run/allow" "$run/hits")
	grep -avE -f "$run/allow" "$run/hits" >"$run/trouble"
	first=$(head -n 1 "$run/trouble")
	[ -n "$first" ] || return 0
	note "kernel: ${first#*:}"
	tail -n "+$((${first%%:*} + 1))" "$log" | head -n 40 >&2
	return 1
}

# stale_breakpoint: is the first trouble a breakpoint (int3) that is not in memory?  While
# the kernel changes an instruction, a breakpoint is in its place.  qemu before 8.1 may keep
# its translation of the breakpoint after the kernel has removed it; no real processor does.
# The kernel then dies (int3: 0000), or returns to the instruction again and again, so that it
# reports a stall while in asm_exc_int3.  The line "Code:" of the interrupted code shows memory,
# with <> around the byte behind the breakpoint, cc.
stale_breakpoint() {
	awk '!seen && FNR == NR { first = $0 + 0; seen = 1; next }
		FNR == NR { next }
		/int3: 0000 \[#1\]/ && FNR <= first { at = FNR }
		/detected stalls|soft lockup/ && FNR == first { stall = 1 }
		stall && /asm_exc_int3/ { trap = 1; next }
		trap && /RIP: / { at = FNR }
		at && /Code: .* <[0-9a-f][0-9a-f]>/ { sub(/ <.*/, ""); stale = $NF != "cc"; exit }
		END { exit !stale }' "$run/trouble" "$run/kernel.log"
}

# save_logs STATUS: copies the logs to the results (--out), or, if there is no --out and the
# run failed, to $cache/log, where the newest ten are kept.
save_logs() {
	local dir=$out old

	if [ -z "$dir" ]; then
		[ "$1" -ge "$EX_KERNEL" ] && [ "$1" -le "$EX_SETUP" ] || return
		dir=$cache/log/$(date +%Y%m%d-%H%M%S)-$kernel-$$
		mkdir -p "$dir"
		# shellcheck disable=SC2012
		ls -1d "$cache"/log/*/ | head -n -10 | while read -r old; do rm -rf "$old"; done
		note "logs: $dir"
	fi
	cp "$run/console.log" "$dir/console.log"
	for old in dmesg.log ps.log; do
		[ ! -e "$run/ctl/$old" ] || cp "$run/ctl/$old" "$dir/$old"
	done
}

# run_interactive: runs a shell in a VM on this terminal; returns the exit status.
run_interactive() {
	local rc

	if [ ! -t 0 ] || [ ! -t 1 ]; then
		usage_error "shell needs a terminal; use run for scripts"
	fi
	prepare_run "$out" bash -l
	echo 0 >"$run/ctl/limit"
	stty size | awk '{ print "rows", $1, "cols", $2 }' >"$run/ctl/tty-size"
	echo "export TERM=$(printf %q "${TERM:-vt100}") PS1='vm-$kernel:\\w# '" |
		cat - "$run/ctl/command" >"$run/ctl/command.new"
	mv "$run/ctl/command.new" "$run/ctl/command"
	sed -i 's/^exec bash -l$/exec bash --norc -i/' "$run/ctl/command"
	note "exit ends the VM, Ctrl-A x kills it"
	tty_state=$(stty -g)
	exec 3<&0
	start_qemu 0 -chardev stdio,id=tty,mux=on,signal=off -device virtconsole,chardev=tty -mon chardev=tty
	wait "$qemu"
	rc=$?
	qemu=
	stty "$tty_state"
	judge "$rc"
}
