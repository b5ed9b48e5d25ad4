#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Can the data path tests fail?  Breaks one rule of the BPF program at a time, in a copy,
# and expects a test to fail.  A developer's tool: some 260 mutants take more than 3 minutes on
# 16 processors.
#
#	make all check-programs && selftests/datapath/mutants.sh [-j JOBS] [PATTERN]
#
# JOBS at once, by default as many as there are processors.
#
# Mutants of what is only in the variant for saina.ko (floats), and all others in that
# variant, need a test VM:
#
#	selftests/in-vm 6.12 3600 selftests/datapath/mutants.sh -k [PATTERN]
#	selftests/in-vm 6.12 3600 selftests/datapath/mutants.sh -K [PATTERN]
#
# Whether each edit applies, and no more (selftests/lint/mutants.sh): -n, before -k.
#
# What the tests beside trace_test and ps_test are for: -t prints, in the place of a verdict, the first
# two tests that kill a mutant, or one of these two (mutants.alone).
#
# Each mutant is one line: its name, the file, and the edit, which replaces a string that must
# be in the file exactly once.  Prints at the end which mutants survived and which are stale,
# because their edit does not apply; exit 1 if there is any, 2 if no name has PATTERN.

set -u
cd "$(dirname "$0")/../.." || exit 1
B=${B:-${SAINA_BUILD:-build}}
variant=map only_edits="" floats="" table="" at_once=$(nproc)
while getopts ntkKj: option; do
	case $option in
	n) only_edits=1 ;;
	t) table=1 ;;
	k) variant=kmod floats=1 at_once=1 ;;
	K) variant=kmod at_once=1 ;;
	j) at_once=$OPTARG ;;
	*) exit 2 ;;
	esac
done
shift $((OPTIND - 1))
[[ $at_once =~ ^[1-9][0-9]*$ ]] || { echo "mutants: -j $at_once is not a number of jobs" >&2; exit 2; }
pattern=${1:-}
work=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# Each test ends with the first point that fails.
export SAINA_TEST_STOP=1

# kmod_tests [t]: the tests with the jobs in saina.ko; t: by the tc hook.
kmod_tests() {
	local hook=${1:+ --tc} objects="$work/saina_xdp.bpf.o $B/selftests/kfunc_test.bpf.o"
	if [ -z "$floats" ]; then
		printf '%s\n' "trace_test --module --packets 20000 --episode 2000$hook" "ps_test --module --packets 20000 --episode 2000$hook"
		return
	fi
	echo "xdp_trace_test${1:+ -t} -n 500 $objects"
	[ -n "$1" ] || echo "xdp_float_test $objects"
}

# tests_of HOOK NAME FILE: the tests of a program with that mutant, a line each.  The first of them kills
# most mutants, and soon.
tests_of() {
	local first='trace_test --packets 300000' second='ps_test --packets 60000' t
	[[ $3 != ps* && ! $2 =~ ^(ps|fence|view|group)- ]] || { t=$first first=$second second=$t; }
	case $variant:$1 in
	*:window) echo race_window_test ;;
	kmod:tc) kmod_tests t ;;
	kmod:*) kmod_tests ;;
	*:tc) printf '%s\n' 'trace_test --tc --packets 300000' tc_test 'numbers_test --tc' 'hostile_test --tc' \
		'ps_test --tc --packets 60000' meta_test ;;
	*) printf '%s\n' "$first" "$second" numbers_test 'switch_lib_numbers_test 20' 'switch_flow_test 1' hostile_test race_test \
		away_test race_ps_test race_shm_test shm_ring_test groups_test sfcd_parity_test defects_test 'trace_test --packets 600000 --policy timeout' ;;
	esac
}

# is_sound TEST [ARGUMENT...]: it passes with the program as it is; else it cannot tell
is_sound() {
	local said=$all/sound.${*//[ \/]/_}
	if [ ! -e "$said" ]; then
		SAINA_BPF_OBJECT=$B/saina_xdp.bpf.o "$B/selftests/$1" "${@:2}" >/dev/null 2>&1 </dev/null
		echo "$? $*" >"$said"
	fi
	[[ $(<"$said") == "0 "* ]]
}

# killers HOOK NAME FILE: the names of tests that fail with $work/saina_HOOK.bpf.o: the first, with -t two.
killers() {
	local t object=$work/saina_xdp.bpf.o found=""
	if [ "$1" = tc ]; then
		# The XDP program beside it is the unchanged one.
		cp "$B/saina_xdp$([ $variant = map ] || echo _kmod).bpf.o" "$object" || return 1
	elif [ "$1" = window ]; then
		object=$work/saina_window.bpf.o
	fi
	while read -r t; do
		# shellcheck disable=SC2086
		SAINA_BPF_OBJECT=$object "$B"/selftests/$t >"$work/log" 2>&1 </dev/null && continue
		# shellcheck disable=SC2086
		[ $variant = kmod ] || [ "$1" = window ] || is_sound $t || continue
		echo "${t%% *}"
		[ -n "$found" ] || cp "$work/log" "$work/first"
		[[ -n $table && -z $found && $t != trace_test* && $t != ps_test* ]] || return 0
		found=1
	done < <(tests_of "$@")
}

compile() { # HOOK FILE TEXT
	local flags=() source=kmod/bpf/saina_$1.bpf.c
	[ $variant = map ] || flags+=(-DSAINA_KMOD)
	[ "$1" != tc ] || flags+=(-DSAINA_HOOK_TC)
	[ "$1" != window ] || source=selftests/datapath/window.bpf.c
	rm -rf "$work/src" "$work"/*.o
	mkdir "$work/src"
	cp -r uapi kmod "$work/src/"
	mkdir -p "$work/src/selftests/datapath"
	cp selftests/datapath/window.* "$work/src/selftests/datapath/"
	printf '%s\n' "$3" >"$work/src/kmod/bpf/$2"
	(cd "$work/src" && ${CLANG:-clang} -target bpf -O2 -g -mcpu=v3 -Iuapi -Ikmod/bpf "${flags[@]}" \
		-idirafter "/usr/include/$(${CC:-gcc} -print-multiarch)" \
		-c -o "$work/saina_$1.bpf.o" "$source") 2>"$work/log"
}

# say VERDICT NAME WHY
say() {
	echo "$1 $2" >>"$work/verdicts"
	printf '%-9s %s: %s\n' "$1" "$2" "${3:-}"
}

# try NAME HOOK FILE TEXT: builds and tests the mutant of that name, whose FILE is TEXT; runs in a subshell
try() {
	local all=$work work=$work/$1 verdict=killed why="" by
	mkdir "$work"
	if ! compile "$2" "$3" "$4"; then
		verdict=STALE why="does not compile: $(head -n 1 "$work/log")"
	else
		by=$(killers "$2" "$1" "$3" | paste -sd' ')
		if [ -z "$by" ]; then
			verdict=SURVIVED
		elif why=$(grep -m 1 '^Bail out' "$work/first"); then
			verdict=STALE
		elif [ -n "$table" ]; then
			why=$by
		else
			why="$(grep -m 1 '^not ok' "$work/first"), by $by"
		fi
	fi
	rm -rf "$work"
	work=$all
	say $verdict "$1" "$why"
}

# mutant NAME FILE FROM TO: FROM becomes TO, which may be empty.
mutant() {
	local hook=xdp text rest
	[[ $1 == *$pattern* ]] || return 0
	# The tc program: what only it has, or only its tests see.  The window program: what happens
	# between two locks.  All else is tried in the XDP program.
	case $2:$1 in gso.bpf.h:*|saina_tc.bpf.c:*|check_skb.bpf.h:*|*:ask-without-end) hook=tc ;; *:between-locks-*|*:short-no-exponent) hook=window ;; esac
	text=$(<"kmod/bpf/$2") rest=${text//"$3"/}
	if [ $((${#text} - ${#rest})) != ${#3} ]; then
		say STALE "$1" "\"$3\" is not once in $2"
	elif [ -n "$only_edits" ]; then
		say could "$1" >/dev/null
	else
		while [ "$(jobs -rp | wc -l)" -ge "$at_once" ]; do wait -n; done
		try "$1" $hook "$2" "${text/"$3"/"$4"}" &
	fi
}

# Without its test programs every mutant would count as killed.
[ -n "$only_edits" ] || [ -x "$B/selftests/trace_test" ] || { echo "mutants: no $B/selftests/trace_test: run \`make all check-programs'" >&2; exit 2; }
[ $variant = map ] || [ -n "$only_edits" ] || lsmod | grep -q '^saina ' || insmod "$SAINA_TEST_MODULE" || exit 1
if [ -n "$floats" ]; then
	# claim, apply, settle
	mutant claim-not-counted slot.bpf.h '		c->latch.claimed = 1;' '		c->latch.claimed = 0;'
	mutant done-before-applied slot.bpf.h 'return h->count && h->applied == h->count &&' 'return h->count &&'
	mutant pull-of-unapplied slot.bpf.h 'applied = !deferred || h->applied == h->count' 'applied = true'
	mutant applied-not-reset slot.bpf.h '	h->applied = 0;' ''
	mutant never-settled slot.bpf.h '		h->applied++;' ''
	mutant ints-in-float-jobs slot.bpf.h 'return !elem_is_int(in->elem);' 'return 0;'
	# what is in the sums, and what leaves
	mutant tag-without-round float.bpf.h '(__u64)(in->round + 1) << 32 | in->segment' '1ull << 32 | in->segment'
	mutant tag-without-segment float.bpf.h ' << 32 | in->segment' ' << 32'
	mutant truncated-not-rounded float.bpf.h '0x00007fff00007fffull +' '0 *'
	mutant half-up float.bpf.h '0x00007fff00007fffull + (x >> 16 & ones)' '0x0000800000008000ull'
	mutant nan-becomes-infinite float.bpf.h ' | (__u32)(nan << 6 | nan >> 10)' ''
	mutant nan-rounds-over float.bpf.h ' & ~((nan << 16) - nan)' ''
	mutant halves-swapped float.bpf.h '(x >> 16 & 0xffff) | (x >> 32 & 0xffff0000)' '(x >> 48) | (x & 0xffff0000)'
	mutant half-checksum slot_sum.bpf.h $'		__u32 v = WORD(sum, i);\n\n		ring[i] = v;\n		out[i] = v;\n		csum += v;' \
		$'		__u32 v = WORD(sum, i);\n\n		ring[i] = v;\n		out[i] = v;\n		csum += v & 0xffff;'
	# lengths and signs
	mutant bfloat16-of-four-bytes config.bpf.h 'SAINA_ELEM_BFLOAT16 ? 1 : 2' 'SAINA_ELEM_BFLOAT16 ? 2 : 2'
	mutant minus-zero-is-negative sfcd.bpf.h 'SAINA_ELEM_FLOAT32 ? 0x80000000' 'SAINA_ELEM_FLOAT32 ? 0x7fffffff'
	mutant half-minus-zero sfcd.bpf.h '							 0x8000;' '							 0x7fff;'
	mutant signs-of-words sfcd_signs.bpf.h '#define SIGNS_ELEM	__u16' '#define SIGNS_ELEM	__u32'
else
	# a first packet stores
	mutant first-packet-adds slot_sum.bpf.h '		SIZED(copy)(h->sum, in->v);' '		SIZED(sum)(h->sum, in->v);'
	# each (worker, round, segment) counts at most once
	mutant no-dedupe slot.bpf.h 'if (in->pull || in_it || spare)' 'if (in->pull || spare)'
	mutant no-round-tag slot.bpf.h 'return h->round == in->round && h->segment == in->segment &&' 'return h->segment == in->segment &&'
	mutant no-segment-tag slot.bpf.h 'return h->round == in->round && h->segment == in->segment &&' 'return h->round == in->round &&'
	mutant ring-without-tag slot.bpf.h '(e->state != SAINA_SLOT_DONE || e->round != c->in.round)' '(e->state != SAINA_SLOT_DONE)'
	# a late packet never changes a DONE slot
	mutant late-is-added slot.bpf.h 'if (hot && h->state == SAINA_SLOT_OPEN)' 'if (hot && (h->state == SAINA_SLOT_OPEN || !(h->seen & c->in.bit)))'
	mutant late-is-resend reply.bpf.h 'SAINA_F_RESEND : SAINA_F_LATE' 'SAINA_F_RESEND : SAINA_F_RESEND'
	# contributors with exponents of their own
	mutant shift-cuts-off slot.bpf.h '((__s32)((__u32)(x >> less) + 1)) >> 1' '(__s32)(x >> less) >> 1'
	mutant shift-by-one-less slot.bpf.h '((__s32)((__u32)(x >> less) + 1)) >> 1' '(__u32)(x >> less) + 0'
	mutant shift-halves-away-from-zero slot.bpf.h '((__u32)(x >> less) + 1)) >> 1' '((__u32)(x >> less) + (x >= 0))) >> 1'
	mutant shift-without-signs slot.bpf.h '(__u32)(x >> less)' '((__u32)x >> less)'
	mutant shift-of-32-and-more slot.bpf.h 'return less > 30 ? 30 : less;' 'return less & 31;'
	mutant shift-of-31-at-most-30 slot.bpf.h 'return less > 30 ? 30 : less;' 'return less > 29 ? 29 : less;'
	mutant finer-one-is-kept slot.bpf.h '		h->exponent = in->exponent;' '		;'
	mutant wrong-one-is-shifted slot_sum.bpf.h $'*finer = coarser ? sum : in, *other = coarser ? in : sum;\n\n' $'*finer = coarser ? in : sum, *other = coarser ? sum : in;\n\n'
	mutant wrong-one-in-the-last slot_sum.bpf.h 'coarser = difference > 0;' 'coarser = difference < 0;'
	mutant coarse-is-not-counted count.bpf.h 'count_coarsened(c->in.job, c->out.coarsened);' ';'
	mutant coarse-first-is-not-counted slot.bpf.h '		h->scale_by = in->worker + 1;' '		h->scale_by = 0;'
	mutant coarse-is-counted-again slot.bpf.h 'h->scale_by = harmless ? by : 0;' 'h->scale_by = by;'
	# pairs of int16
	mutant pair-shifted-as-a-word slot.bpf.h 'return in->elem == SAINA_ELEM_INT16;' 'return false;'
	mutant pair-by-the-fast-path slot_sum.bpf.h 'return slot_has_pairs(in) || in->weight ?' 'return in->weight ?'
	mutant pair-wrong-one-is-shifted slot_sum.bpf.h $'*finer = coarser ? sum : in, *other = coarser ? in : sum;\n\tconst' $'*finer = coarser ? in : sum, *other = coarser ? sum : in;\n\tconst'
	mutant pair-cuts-off slot.bpf.h ' + (x & 0x00010001)' ''
	mutant pair-moves-bits slot.bpf.h '(x >> 1 & mask)' '(x >> 1)'
	mutant pair-keeps-what-was-added slot.bpf.h '(0x4000 >> less) * 0x00010001' '(0x4000 >> less) * 0x00010000'
	mutant pair-of-16-and-more slot_sum.bpf.h 'less = PAIR_LESS_MAX;' ';'
	mutant pair-of-15-at-most-14 slot.bpf.h '#define PAIR_LESS_MAX	14u' '#define PAIR_LESS_MAX	13u'
	mutant pair-sign-of-the-word sfcd.bpf.h 'SAINA_ELEM_INT16 ? 0x8000 : 0' 'SAINA_ELEM_INT16 ? 0 : 0'
	# ... by the fast path
	mutant mixed-wrong-one-is-shifted slot_sum.bpf.h 'slot_shift_less(difference), difference > 0);' 'slot_shift_less(difference), difference < 0);'
	mutant mixed-coarse-is-not-counted dispatch.bpf.h 'count_coarsened(m->in.job, added - SLOT_ADDED);' ';'
	mutant mixed-zeros-are-coarsened slot.bpf.h 'finer == SAINA_EXPONENT_MAX || gap' 'gap'
	mutant near-scales-are-coarsened slot.bpf.h 'gap < SAINA_COARSE_BITS' 'gap < 0'
	mutant coarse-a-bit-later slot.bpf.h 'gap < SAINA_COARSE_BITS' 'gap <= SAINA_COARSE_BITS'
	mutant mixed-not-seen slot_sum.bpf.h $'slot_is_waiting(h, in)) {\n		h->seen |= in->bit;' $'slot_is_waiting(h, in)) {'
	mutant mixed-last-not-noted slot_sum.bpf.h $'		cnt->last[w] = in->round + 1;\n		SIZED(sum_mixed)' $'		SIZED(sum_mixed)'
	mutant types-are-one slot.bpf.h 'if (ints != more || in->flags & SAINA_F_TYPES) {' 'if (in->flags & SAINA_F_TYPES) {'
	mutant types-of-a-node slot.bpf.h 'if (ints != more || in->flags & SAINA_F_TYPES) {' 'if (ints != more) {'
	mutant types-forget-who slot.bpf.h '= slot_integers(h) | (in->bit & -(__u64)more);' '= in->bit & -(__u64)more;'
	mutant types-of-those-forgotten slot.bpf.h '(slot_integers(h) & ~uncounted) |' 'slot_integers(h) |'
	mutant types-name-all slot.bpf.h '*slot_ints(h) = h->seen;' '*slot_ints(h) = ~0ull;'
	mutant types-mask-by-nan slot.bpf.h 'return *slot_ints(h) & -(__u64)(h->flags / SAINA_F_TYPES & 1);' 'return *slot_ints(h);'
	mutant types-without-event round.bpf.h 'if (c->out.flags & SAINA_F_TYPES)' 'if (0)'
	mutant integers-of-int16 common.bpf.h 'return e != SAINA_EXPONENT_INT || elem == SAINA_ELEM_INT32;' 'return true;'
	mutant nan-is-not-counted count.bpf.h 'wc->c[SAINA_C_NONFINITE]++;' ';'
	mutant nan-is-forgotten slot.bpf.h 'return action >= SLOT_DO_FINISH ? SLOT_DO_FINISH_NAN : SLOT_DO_NOTHING;' 'return action;'
	mutant nan-of-a-pull-has-sums slot.bpf.h 'return exponent_is_nan(h->exponent) ? SLOT_DO_FINISH_NAN : SLOT_DO_FINISH;' 'return SLOT_DO_FINISH;'
	mutant nan-is-not-zeros slot_sum.bpf.h '		r[i] = 0;' '		r[i] = 1;'
	mutant nan-answers-are-not-zeros slot_sum.bpf.h '		o[i] = 0;' '		o[i] = 1;'
	mutant nan-flips-signs slot_sum.bpf.h 'if (!exponent_is_nan(c->out.exponent))' 'if (1)'
	mutant nan-decides sfcd.bpf.h 'if (!rt->observed)' 'if (0)'
	mutant any-exponent check.bpf.h 'return elem_is_int(m->conf->elem) ? exponent_is_valid(m->conf->elem, e) : !e;' 'return 1;'
	mutant any-exponent-of-an-inc check.bpf.h $'return m->type != SAINA_MSG_INC ||\n	       (exponent_is_valid' $'return 1 ||\n	       (exponent_is_valid'
	mutant nan-in-ps check.bpf.h '(exponent_is_valid(m->conf->elem, e) && !exponent_is_nan(e))' 'exponent_is_valid(m->conf->elem, e)'
	mutant any-exponent-by-reference shm_head.bpf.h 'if (!exponent_is_valid(c->in.elem, c->in.exponent))' 'if (0)'
	mutant no-aux slot.bpf.h '= c->in.round + 1;' '= c->in.round;'
	mutant drop-late-forgotten round.bpf.h 'SAINA_F_DROP_LATE : 0;' '0 : 0;'
	mutant degraded-forgotten slot.bpf.h $'	if (h->count < h->k)\n		h->flags |= SAINA_F_DEGRADED;' $'	if (0)\n		;'
	# k is latched and never above the live workers
	mutant header-has-next-k reply.bpf.h 'conf->elem, c->in.job, o->k);' 'conf->elem, c->in.job, o->next_k);'
	mutant k-above-live slot.bpf.h '	if (h->k < need)' '	if (h->k != need)'
	mutant dead-count slot.bpf.h 'popcount64(h->seen & live) >= need' 'popcount64(h->seen) >= need'
	mutant members-not-latched slot.bpf.h '__u64 live = h->members & in->active;' '__u64 live = in->active;'
	mutant k-above-active round.bpf.h '	if (k > n)' '	if (0)'
	# rounds
	mutant rounds-overlap round.bpf.h 'if (r == rt->next_round && (rt->open_slots || !c->latch.searched))' 'if (0)'
	mutant far-future round.bpf.h 'r > rt->next_round ||' 'r > rt->next_round + 1 ||'
	mutant rounds-wrap round.bpf.h ' || r > SAINA_ROUND_MAX' ''
	mutant stale-too-late round.bpf.h 'rt->next_round - r > 1' 'rt->next_round - r > 2'
	mutant before-the-first round.bpf.h 'rt->next_round - r > 1 || r < rt->base)' 'rt->next_round - r > 1)'
	mutant policy-never-again round.bpf.h 'o->policy = target->seq != rt->policy.seq' 'o->policy = !rt->policy.seq'
	mutant primed-survives-death round.bpf.h '} else if (old && old != conf->active) {' '} else if (0) {'
	mutant slot-taken-open slot.bpf.h 'return SLOT_OPEN_ELSEWHERE;' 'return SLOT_FREE;'
	mutant window-broken slot.bpf.h 'return SLOT_OUT_OF_WINDOW;' 'return SLOT_FREE;'
	# the short cut takes the common case only
	mutant short-no-dedupe slot.bpf.h '!exponent_is_nan(in->exponent) && !(h->seen & in->bit) &&' '!exponent_is_nan(in->exponent) &&'
	mutant short-no-segment slot.bpf.h '	       h->segment == in->segment && h->count + 1 < h->k &&' '	       h->count + 1 < h->k &&'
	mutant short-no-exponent slot.bpf.h 'return h->exponent == in->exponent && slot_is_waiting(h, in);' 'return slot_is_waiting(h, in);'
	mutant short-takes-nan slot.bpf.h '!exponent_is_nan(in->exponent) && !(h->seen & in->bit) &&' '!(h->seen & in->bit) &&'
	mutant short-no-deaths slot.bpf.h '	       !(h->members & ~in->active) &&' '	      '
	mutant short-completes slot.bpf.h 'h->segment == in->segment && h->count + 1 < h->k &&' 'h->segment == in->segment &&'
	# time-outs
	mutant timeout-never slot.bpf.h 'return is_above(now, h->deadline - 1) &' 'return 0 &'
	mutant timeout-of-too-few slot.bpf.h ' & is_above((__u64)h->count + 1, h->k_min);' ';'
	mutant timeout-at-once slot.bpf.h 'return is_above(now, h->deadline - 1) &' 'return !!h->deadline &'
	mutant timeout-not-in-short-cut slot.bpf.h $' &&\n	       (!h->deadline || in->now < h->deadline);' ';'
	mutant timeout-in-a-fence round.bpf.h 'rt->policy.timeout_us && !fence ?' 'rt->policy.timeout_us ?'
	mutant timeout-of-nobody round.bpf.h 'c->latch.k_min = rt->policy.k_min;' 'c->latch.k_min = 0;'
	mutant timeout-too-early round.bpf.h 'now + 1000ull * rt->policy.timeout_us' 'now + 100ull * rt->policy.timeout_us'
	# coded: one of each part
	mutant coded-waits-for-all slot.bpf.h '	if (h->parts)' '	if (0)'
	mutant coded-adds-spares slot.bpf.h 'if (in->pull || in_it || spare)' 'if (in->pull || in_it)'
	mutant coded-waits-for-the-dead slot.bpf.h 'coded_parts(c->in.members & c->in.active, c->in.parts)' 'coded_parts(c->in.members, c->in.parts)'
	mutant coded-in-short-cut slot.bpf.h ' && !h->parts &&' ' &&'
	mutant coded-k-is-all round.bpf.h 'return popcount64(coded_parts(rt->members, round_parts(p, conf)));' 'return n;'
	mutant coded-spares-not-shown slot.bpf.h '(open && h->csum & coded_part(h->parts, c->in.worker))' '0'
	mutant coded-late-is-kept round.bpf.h $'rt->policy.late == SAINA_LATE_DROP ||\n\t\t\t\t rt->policy.mode == SAINA_POLICY_CODED ?' 'rt->policy.late == SAINA_LATE_DROP ?'
	mutant coded-fewer-parts round.bpf.h 'conf->workers / (p->spread + 1u)' 'conf->workers / (p->spread + 2u)'
	# k set from outside
	mutant external-k-not-taken round.bpf.h 'conf->k_set && !round_k_is_of_another(p, conf) ? conf->k_set : p->k' 'p->k'
	mutant external-k-passed-on round.bpf.h '!round_k_is_of_another(p, conf)' '1'
	mutant external-k-not-notified round.bpf.h 'mode == SAINA_POLICY_EXTERNAL ? k != o->old_k :' 'mode == SAINA_POLICY_EXTERNAL ? 0 :'
	mutant external-k-notified-if-lower round.bpf.h 'mode == SAINA_POLICY_EXTERNAL ? k != o->old_k :' 'mode == SAINA_POLICY_EXTERNAL ? k < o->old_k :'
	# a schedule
	mutant schedule-too-early round.bpf.h 'rt->next_round >= conf->next_from' 'rt->next_round + 1 >= conf->next_from'
	mutant schedule-without-event round.bpf.h '(rt->asked == conf->next.seq && rt->happened & conf->next_on)' '1'
	mutant schedule-forgets-deaths round.bpf.h 'if (old & ~conf->active)' 'if (0)'
	mutant schedule-forgets-joins round.bpf.h 'if (old && conf->active & ~old)' 'if (0)'
	mutant schedule-takes-old-events round.bpf.h '		rt->happened = 0;' '		;'
	# how far rounds lead
	mutant lead-not-kept round.bpf.h '} else if (behind) {' '} else if (0) {'
	mutant lead-one-more ../../uapi/saina/bpf.h 'ring > 3 ? ring - 2 : 1' 'ring > 3 ? ring - 1 : 1'
	mutant lead-of-the-other-policy round.bpf.h 'target == &conf->next ? c->latch.behind_next : c->latch.behind' 'c->latch.behind'
	mutant lead-waits-for-the-dead round.bpf.h 'c->latch.behind = behind & conf->active;' 'c->latch.behind = behind;'
	mutant lead-forgets-who-begins round.bpf.h ': conf->active & ~rt->members;' ': 0;'
	mutant lead-without-doorbells shm.bpf.h '		round_gradient(c);' ''
	mutant lead-without-asks round.bpf.h $'	round_reached(rt, &c->in);\n	c->out.next_round' '	c->out.next_round'
	mutant lead-names-nobody round.bpf.h 'c->out.mask = c->in.round == rt->next_round ? rt->behind : 0;' 'c->out.mask = 0;'
	# a job with an uplink
	mutant away-is-done slot.bpf.h 'if (!(c->in.uplink & UPLINK_JOB))' 'if (1)'
	mutant away-before-the-sums slot.bpf.h $'	c->latch.away = 1;\n	return false;' $'	c->latch.away = 1;\n	((struct saina_slot_meta *)h)->state = SAINA_SLOT_AWAY;\n	return false;'
	mutant away-of-mixed-forgotten slot_sum.bpf.h $'	}\n	if (c->latch.away)' $'	}\n	if (0)'
	mutant away-is-done-by-a-pull slot.bpf.h '		if (in->uplink) {' '		if (0) {'
	mutant away-is-a-duplicate slot.bpf.h 'h->seen & c->in.bit ? SAINA_C_DUPLICATE :' '1 ? SAINA_C_DUPLICATE :'
	mutant away-without-record dispatch.bpf.h $'	if (c->latch.away)\n		away_note(c);' ''
	mutant away-without-record-by-doorbell shm.bpf.h $'	if (c->latch.away)\n		away_note(c);' ''
	mutant away-is-due slot.bpf.h 'else if (open && away) {' 'else if (0) {'
	mutant away-in-no-answer reply.bpf.h 'c->ask_away ? SAINA_F_AWAY : 0' '0'
	mutant away-in-any-answer dispatch.bpf.h '	c->ask_away = 0;' ''
	mutant result-late-is-counted slot.bpf.h ' || in->flags & SAINA_F_LATE ? h->seen : 0' ' ? h->seen : 0'
	mutant result-of-an-open-slot-counts slot.bpf.h '= h->state != SAINA_SLOT_AWAY || in->flags' '= in->flags'
	mutant result-late-keeps-last slot.bpf.h '		cnt->last[w] &= -(__u32)' '		(void)'
	mutant result-late-clears-others slot.bpf.h ' | (~(uncounted >> w) & 1)' ''
	mutant result-keeps-its-exponent slot.bpf.h $'	h->exponent = in->exponent;\n	h->weight' '	h->weight'
	mutant result-keeps-types slot.bpf.h '	h->flags &= ~SAINA_F_TYPES;' ''
	mutant result-without-flags slot.bpf.h 'in->flags & (SAINA_F_DEGRADED | SAINA_F_DROP_LATE)' '0'
	mutant result-by-a-pull slot.bpf.h 'return in->uplink & UPLINK_SENDER && !in->pull;' 'return in->uplink & UPLINK_SENDER;'
	mutant result-is-shifted slot.bpf.h '&& !slot_is_result(in) &&' '&&'
	mutant result-is-added slot_sum.bpf.h $' ||\n	    in->uplink & UPLINK_SENDER)' ')'
	mutant result-is-added-by-doorbell shm_sum.bpf.h 'c->in.uplink & UPLINK_SENDER || ' ''
	mutant result-of-anybody check.bpf.h '(conf->uplink & in->bit ? UPLINK_SENDER : 0)' 'UPLINK_SENDER'
	mutant result-too-heavy-by-doorbell shm_head.bpf.h '|| c->in.weight < c->max_weight' '|| 1'
	mutant result-leads-without-bound ../../uapi/saina/bpf.h '(p->mode == SAINA_POLICY_BSP && !uplink)' 'p->mode == SAINA_POLICY_BSP'
	mutant result-flags-of-workers check.bpf.h 'if (m->in.uplink & UPLINK_SENDER)' 'if (1)'
	mutant any-flags check.bpf.h $'	if (flags)\n		return SAINA_C_FLAGS;' ''
	mutant any-weight check.bpf.h 'm->in.weight >= m->binding->max_weight' '0'
	mutant weight-by-reference shm.bpf.h '	c->in.weight = 0;' '	c->in.weight = 1;'
	mutant weight-not-in-results reply.bpf.h '	a->hdr[4] = (__u64)o->weight << 32;' ''
	mutant weight-of-the-first-forgotten slot.bpf.h '		h->weight = in->weight;' '		h->weight = 0;'
	mutant weight-forgotten slot.bpf.h '		h->weight += in->weight;' ''
	mutant weight-not-in-short-cut slot_sum.bpf.h 'h->meta.weight += in->weight;' ';'
	mutant weight-not-in-mixed-short-cut slot_sum.bpf.h 'return slot_has_pairs(in) || in->weight ?' 'return slot_has_pairs(in) ?'
	mutant nodes-are-silenced check.bpf.h 'return m->binding->max_weight > 1 &&' 'return 0 &&'
	mutant workers-ask-when-dead check.bpf.h 'return m->binding->max_weight > 1 &&' 'return'
	# shared memory
	mutant any-input shm_head.bpf.h 'return s->session == in->session && s->round == in->round && s->segment == in->segment;' 'return true;'
	mutant input-without-session shm_head.bpf.h 's->session == in->session && ' ''
	mutant input-without-round shm_head.bpf.h ' && s->round == in->round' ''
	mutant input-without-segment shm_head.bpf.h ' && s->segment == in->segment' ''
	mutant doorbell-exponent shm_head.bpf.h 'c->in.exponent = shm_input_exponent(s);' 'c->in.exponent = 0;'
	mutant result-not-published slot.bpf.h '	__sync_lock_test_and_set((__u32 *)&e->state, state);' ''
	mutant publish-without-unpublish slot.bpf.h 'if (e->state != SAINA_SLOT_EMPTY)' 'if (0)'
	mutant publish-mixed-without-unpublish slot_sum.bpf.h $'		slot_unpublish(&e->meta);\n		csum = SIZED(finish)(h->sum' $'		csum = SIZED(finish)(h->sum'
	mutant result-keeps-its-mask slot.bpf.h 'i = 2; i < 8; i++' 'i = 3; i < 8; i++'
	mutant fetch-wants-a-gradient slot_sum.bpf.h 'if (BY_DOORBELL(c) && !c->in.pull && !shm_take_input(&in->input, c)) {' 'if (BY_DOORBELL(c) && !shm_take_input(&in->input, c)) {'
	mutant fetch-opens slot_sum.bpf.h 'verdict = c->in.pull ? round_missed(c) : round_permit(c, conf);' 'verdict = round_permit(c, conf);'
	mutant completion-to-one shm.bpf.h 'c->completed ? VERDICT_COMPLETION_ALL : VERDICT_COMPLETION' 'VERDICT_COMPLETION'
	mutant stale-goes-on shm.bpf.h '	if (verdict == VERDICT_STALE || verdict == VERDICT_NAK)' '	if (verdict == VERDICT_NAK)'
	mutant doorbell-beyond-the-gradient shm.bpf.h 'c->in.segment >= conf->segments || ' ''
	mutant doorbell-of-what-is-not-posted shm.bpf.h 'if (!(posted >> i & 1))' 'if (0)'
	mutant doorbell-of-the-first-32 shm.bpf.h '1ull << (i & (SAINA_DOORBELL_SEGMENTS - 1))' '1ull << (i & 31)'
	mutant doorbell-says-the-last-segment shm.bpf.h '		c->in.segment = first;' ''
	mutant fetch-adds check.bpf.h $'		m->in.pull = true;\n		flags' '		flags'
	mutant doorbell-short-no-dedupe shm_sum.bpf.h '	plain = shm_take_input(&in->head, c) && slot_is_plain(&h->meta, &c->in);' '	plain = slot_is_plain(&h->meta, &c->in);'
	# SFCD
	mutant first-round-decides sfcd.bpf.h 'if (rt->primed || parity) {' 'if (1) {'
	mutant parity-tail-counts sfcd.bpf.h ' & ~31u;' ';'
	mutant no-leak sfcd.bpf.h 'else if (rt->converged)' 'else if (0)'
	mutant k-max-forgotten sfcd.bpf.h 'if (rt->k_next < limit) {' 'if (rt->k_next < 64) {'
	mutant zero-is-negative sfcd.bpf.h 'return (sum + s->borrow) >> 31;' 'return sum >> 31 | !sum;'
	mutant off-by-one-threshold sfcd.bpf.h 'rt->flips * 1000 >= scaled' 'rt->flips * 1000 > scaled'
	mutant k-max-above-live sfcd.bpf.h 'p->k_max && p->k_max < members ? p->k_max' 'p->k_max ? p->k_max'
	mutant parity-threshold-above sfcd.bpf.h 'scaled / 1000 :' '(scaled + 999) / 1000 :'
	mutant old-signs-of-another-stride round.bpf.h '!same || rt->policy.stride != target->stride ||' '!same ||'
	mutant down-goes-on round.bpf.h 'rt->policy.flags != target->flags) {' '0) {'
	mutant cth-follows-next-k sfcd.bpf.h 'p->c_th ? p->c_th : rt->k;' 'p->c_th ? p->c_th : rt->k + 1;'
	mutant signs-of-another-stride sfcd_signs.bpf.h 'first + b * stride' 'first + b'
	mutant down-never sfcd.bpf.h 'if (!reached && p->flags & SAINA_POLICY_F_DOWN)' 'if (0)'
	mutant down-always sfcd.bpf.h 'if (!reached && p->flags & SAINA_POLICY_F_DOWN)' 'if (!reached)'
	mutant down-below-kmin sfcd.bpf.h 'rt->k_next > 1 && rt->k_next > p->k_min' 'rt->k_next > 1'
	mutant down-to-zero sfcd.bpf.h 'rt->k_next > 1 && rt->k_next > p->k_min' 'rt->k_next > p->k_min'
	mutant down-without-leak sfcd.bpf.h 'else if (rt->resumed)' 'else if (0)'
	mutant down-keeps-converged sfcd.bpf.h $'rt->resumed = 0;\n\t\t\trt->converged = 0;' 'rt->resumed = 0;'
	mutant down-notified-twice round.bpf.h 'rt->policy.mode == SAINA_POLICY_SFCD ? k : rt->k' 'rt->k'
	# rules that are easily misread
	mutant misread-sfcd-starts-over sfcd.bpf.h '			rt->converged--;' '			rt->converged = 0;'
	mutant misread-sfcd-k0-again round.bpf.h $'			if (!same)\n				k = target->k;' '			k = target->k;'
	mutant misread-k-is-not-latched round.bpf.h 'c->latch.k = rt->k;' 'c->latch.k = rt->policy.mode == SAINA_POLICY_EXTERNAL && conf->k_set ? conf->k_set : rt->k;'
	mutant misread-k-of-a-fence round.bpf.h 'c->latch.k = rt->k;' 'c->latch.k = rt->k_next;'
	mutant misread-k-min-is-not-latched round.bpf.h 'c->latch.k_min = rt->policy.k_min;' 'c->latch.k_min = conf->policy.k_min;'
	mutant misread-death-comes-after-the-swap round.bpf.h $'		round_note_events(rt, conf);\n		target = round_target(rt, conf);\n		behind' \
		$'		target = round_target(rt, conf);\n		round_note_events(rt, conf);\n		behind'
	mutant misread-death-fills-no-slot slot.bpf.h '__u64 live = h->members & in->active;' '__u64 live = h->members;'
	mutant misread-swap-in-an-open-round round.bpf.h 'c->latch.policy = rt->policy.seq;' 'c->latch.policy = round_target(rt, conf)->seq;'
	mutant misread-deadline-wants-k slot.bpf.h ' & is_above((__u64)h->count + 1, h->k_min);' ' & is_above((__u64)h->count + 1, h->k);'
	mutant misread-lead-one-less round.bpf.h 'behind |= is_above(r, (__u64)at + lead) << w;' 'behind |= is_above(r + 1ull, (__u64)at + lead) << w;'
	mutant misread-lead-forgets-new-members round.bpf.h $'			rt->behind = behind;\n' $'			rt->behind = behind;\n			rt->members = conf->active;\n'
	# arrival times
	mutant arrival-of-1024 lateness.bpf.h '(in->now - opened_at) / 1000' '(in->now - opened_at) / 1024'
	mutant arrival-twice lateness.bpf.h 'if (a->round == in->round + 1)' 'if (0)'
	mutant arrival-in-the-bucket-below lateness.bpf.h 'b += is_above(us, 0);' ';'
	mutant arrival-before-the-first lateness.bpf.h 'in->now > opened_at ? (in->now - opened_at) / 1000 : 0' '(in->now - opened_at) / 1000'
	mutant arrival-of-another-job lateness.bpf.h 'if (a->generation != in->generation) {' 'if (0) {'
	mutant arrival-of-late-not-noted slot.bpf.h 'if (!c->in.segment && !c->in.pull && !(e->seen & c->in.bit))' 'if (0)'
	mutant arrival-without-a-first ps.bpf.h 'if (k->first[g] != step + 1) {' 'if (1) {'
	# who may say what
	mutant any-port check.bpf.h 'if (f->ifindex != b->ifindex)' 'if (0)'
	mutant any-address check.bpf.h '!= b->ip)' '!= b->ip && 0)'
	mutant any-session check.bpf.h 'if (H(__u64, h, session) != m->binding->session)' 'if (0)'
	mutant half-a-session check.bpf.h 'if (H(__u64, h, session) != m->binding->session)' 'if (H(__u32, h, session) != (__u32)m->binding->session)'
	mutant any-mac check.bpf.h 'return SAINA_C_BAD_MAC;' ';'
	mutant half-a-mac check.bpf.h $' ||\n	    RD(__u16, f->head + 10) != RD(__u16, b->mac + 4))' ')'
	mutant any-udp-port check.bpf.h 'if (RD(__be16, f->head + SAINA_UDP_OFF) != b->udp_port)' 'if (0)'
	mutant any-elements check.bpf.h 'return SAINA_C_ELEMS;' ';'
	mutant any-element-type check.bpf.h 'if (H(__u8, h, elem) != conf->elem)' 'if (0)'
	mutant any-segment check.bpf.h 'if (in->segment >= conf->segments)' 'if (0)'
	mutant segment-at-the-end check.bpf.h 'if (in->segment >= conf->segments)' 'if (in->segment > conf->segments)'
	mutant worker-64-is-0 check.bpf.h $'	if (w >= SAINA_WORKERS_MAX)\n		return NULL;' $'	if (w > SAINA_WORKERS_MAX)\n		return NULL;'
	mutant job-not-running check.bpf.h 'if (conf->state != SAINA_JOB_RUNNING && !(probe && conf->state == SAINA_JOB_FORMING))' 'if (0)'
	mutant job-of-another-generation dispatch.bpf.h 'if (rt && rt->generation == m->conf->generation)' 'if (rt)'
	mutant leave-in-anothers-name dispatch.bpf.h $' ||\n		     type == SAINA_MSG_LEAVE)' ')'
	mutant any-length check.bpf.h 'return SAINA_C_LENGTH;' ';'
	mutant the-dead-speak check.bpf.h 'if (!probe && !check_active(m))' 'if (0)'
	mutant reserved-is-ignored check.bpf.h 'H(__u16, h, k))' 'H(__u8, h, k))'
	mutant place-without-nonce dispatch.bpf.h '.nonce = RD(__u64, join + offsetof(struct saina_join, nonce)),' '.nonce = 0,'
	mutant place-overwritten dispatch.bpf.h 'BPF_NOEXIST' 'BPF_ANY'
	mutant anybody-says-goodbye check.bpf.h '	reason = b ? check_source(f, b) : COUNT_NONE;' '	reason = COUNT_NONE;'
	mutant the-dead-are-silenced check.bpf.h 'if (!conf || !((conf->active | conf->uplink) >> w & 1))' 'if (!conf)'
	mutant first-fragments saina_xdp.bpf.c 'if (!frame_is_fragment(&f))' 'if (1)'
	mutant options-parsed parse.bpf.h 'RD(__u8, head + SAINA_IP_OFF) != 0x45' '(RD(__u8, head + SAINA_IP_OFF) & 0xf0) != 0x40'
	mutant options-hide parse.bpf.h '		return parse_unusual(ctx);' '		return FRAME_FOREIGN;'
	mutant tags-hide parse.bpf.h 'i < FRAME_TAGS' 'i < 1'
	mutant tags-are-foreign parse.bpf.h 'return is_tag(proto) ? parse_unusual(ctx) : FRAME_FOREIGN' 'return FRAME_FOREIGN'
	# answers
	mutant bad-checksum slot_sum.bpf.h $'		__u32 v = (__u32)sum[i] + (__u32)in[i];\n\n		ring[i] = v;\n		out[i] = v;\n		csum += v;' \
		$'		__u32 v = (__u32)sum[i] + (__u32)in[i];\n\n		ring[i] = v;\n		out[i] = v;\n		csum += v & 0xffff;'
	mutant trailer-kept xdp_tx.bpf.h 'if (surplus && ' 'if (surplus > 64 && '
	mutant pieces-not-written run.bpf.h '|| verdict == VERDICT_RESULT ||' '||'
	mutant pieces-are-copied xdp_tx.bpf.h '|| completion || !a.words) && is_linear(ctx))' '|| completion || !a.words))'
	mutant pieces-are-redirected xdp_tx.bpf.h ' || !is_linear(ctx);' ';'
	mutant stale-notified-each-time event.bpf.h 'last >= when)' 'last > when)'
	mutant stale-notified-each-round event.bpf.h 'next_round = rt ? rt->next_round : 0;' 'next_round = round + 1;'
	# questions
	mutant ask-all-counted slot.bpf.h '== c->in.round + 1 ||' '!= c->in.round + 1 ||'
	mutant ask-done-in-any-round slot.bpf.h 'if (e->state == SAINA_SLOT_DONE && e->round == c->in.round) {' 'if (e->state == SAINA_SLOT_DONE) {'
	mutant ask-nothing-due slot.bpf.h 'c->ask.due |= bit;' ';'
	mutant ask-of-a-gone-round dispatch.bpf.h 'if (c->ask.done || !round_gone(rt, c->in.round))' 'if (1)'
	mutant ask-while-no-ring dispatch.bpf.h 'if (!known)' 'if (0)'
	mutant ask-without-end dispatch.bpf.h 'return a->count++ < ASKS_MAX;' 'return true;'
	# frames of several messages
	mutant gradients-leak gso.bpf.h 'if (gso_blank(skb, i))' 'if (0)'
	mutant jobs-mixed gso.bpf.h 'b->to == to && b->job == job' 'b->to == to'
	mutant displaced-but-kept gso.bpf.h $'	b->replied = 0;\n	b->to = to;' '	b->to = to;'
	mutant one-displaces-all gso.bpf.h '(to != GSO_TO_ALL || b->to == GSO_TO_ALL)' '(b->to == GSO_TO_ALL && to == GSO_TO_ALL)'
	mutant stale-with-gradient gso.bpf.h 'if (verdict == VERDICT_STALE || verdict == VERDICT_NAK) {' 'if (0) {'
	mutant checksum-not-prepared gso.bpf.h 'b->partial ? csum_pseudo' '0 ? csum_pseudo'
	mutant sixty-five gso.bpf.h '		b->n = 0;' '		b->n = GSO_SEGMENTS_MAX;'
	mutant one-size gso.bpf.h 'b->size = skb->gso_size ? skb->gso_size : bytes' 'b->size = bytes'
	mutant tc-fragments saina_tc.bpf.c 'if (!frame_is_fragment(&f)) {' 'if (1) {'
	mutant super-goes-on saina_tc.bpf.c 'if (skb->gso_size && skb->len != ETH_HLEN + ip_len)' 'if (0)'
	mutant control-super saina_tc.bpf.c 'else if (!skb->gso_size)' 'else'
	mutant trailer-to-all gso.bpf.h 'if (skb->len > SAINA_UDP_OFF + udp_len &&' 'if (0 &&'
	mutant lengths-differ saina_tc.bpf.c 'udp_len != ip_len - 20 ||' ''
	mutant tag-beside-the-frame saina_tc.bpf.c '(kind == FRAME_DATA || kind == FRAME_CONTROL) && skb->vlan_present' '0'
	# what the kernel does to a frame on its way out
	mutant checksum-from-anywhere check_skb.bpf.h 'head + start != data + SAINA_UDP_OFF' '0'
	mutant checksum-to-anywhere check_skb.bpf.h 'offset != offsetof(struct udphdr, check)' '0'
	mutant checksum-is-finished check_skb.bpf.h 'meta = SKB_PARTIAL;' ';'
	mutant cut-as-anything check_skb.bpf.h 'type & ~GSO_ALLOWED' '0'
	mutant cut-as-fragments check_skb.bpf.h '0x60002u' '0x70002u'
	# PS mode
	mutant ps-counts-twice ps.bpf.h 'cnt->last[w] > c->in.round' '0'
	mutant ps-window-ends-one-late ps.bpf.h '(__u32)(done - of), window)' '(__u32)(done - of), window + 1)'
	mutant ps-waits-for-the-dead ps.bpf.h '	k->members &= active;' ''
	mutant ps-repeated-clock-counts ps.bpf.h 'if (step == done && step <= SAINA_ROUND_MAX && k->going & c->in.bit) {' \
		'if ((step == done || step + 1 == done) && k->going & c->in.bit) {'
	mutant ps-clock-without-go ps.bpf.h ' && k->going & c->in.bit) {' ') {'
	mutant ps-inc-without-go ps.bpf.h 'if (!(k->going & c->in.bit)) {' 'if (0) {'
	mutant ps-inc-of-any-step ps.bpf.h 'if (step > done || (step == done && step > SAINA_ROUND_MAX)) {' 'if (0) {'
	mutant ps-inc-after-clock ps.bpf.h '} else if (c->ps.step_done) {' '} else if (0) {'
	mutant ps-any-exponent ps.bpf.h 'begun && e->exponent != c->in.exponent' '0'
	mutant ps-steps-done-again ps.bpf.h 'ps_select(ps_above(begun, at), begun, at)' 'at'
	mutant ps-incarnations-alike ps.bpf.h 'if (k->session[w]) {' 'if (0) {'
	mutant ps-nobody-is-woken ps.bpf.h '	return woken != 0;' '	return false;'
	mutant ps-go-is-revoked ps.bpf.h '		going |= (member' '		going = (going & ~(1ull << w)) | (member'
	mutant ps-fresh-too-soon reply.bpf.h 'c->in.round + !c->in.pull' 'c->in.round'
	mutant ps-reads-are-stale ps_sum.bpf.h '			to[i] = v;' ''
	mutant ps-read-clears ps_sum.bpf.h 'sum[i] = old ^ ((old ^ v) & add);' 'sum[i] = v & add;'
	mutant ps-keeps-old-results ps_sum.bpf.h 'c->ps.keep = c->out.mask > (c->ps.add & 1) ? ~0ull : 0;' 'c->ps.keep = ~0ull;'
	mutant ps-clock-far-ahead ps.bpf.h 'if (step == done && step <= SAINA_ROUND_MAX && k->going & c->in.bit) {' \
		'if (step >= done && step <= SAINA_ROUND_MAX && k->going & c->in.bit) {'
	mutant ps-clock-order-not-counted ps.bpf.h '} else if (step != SAINA_ROUND_ASK && step + 1 != done) {' '} else if (0) {'
	mutant ps-always-fresh reply.bpf.h 'return next <= c->ps.low || next - c->ps.low <= c->ps.window;' 'return true;'
	mutant ps-entry-answers slot.bpf.h 'if (e->state != SAINA_SLOT_DONE || e->round != c->in.round)' 'if (!hot && (e->state != SAINA_SLOT_DONE || e->round != c->in.round))'
	# groups
	mutant group-waits-for-all ps.bpf.h 'of = k->lows[g], member = k->members >> w & 1;' 'of = k->low, member = k->members >> w & 1;'
	mutant group-wakes-others ps.bpf.h 'k->waiting & k->going & k->mask[ps_group(k, w)]' 'k->waiting & k->going'
	mutant group-names-others ps.bpf.h 'k->going & peers;' 'k->going;'
	mutant group-of-one-waits ps.bpf.h 'c->ps.view = groups && k->members & peers & ~c->in.bit;' 'c->ps.view = groups;'
	mutant group-low-of-all ps.bpf.h 'c->ps.ended ? k->fence : k->lows[g]' 'c->ps.ended ? k->fence : k->low'
	mutant group-begins-behind ps.bpf.h 'ps_above(of, SAINA_ROUND_MAX), top, of)' 'ps_above(of, SAINA_ROUND_MAX), k->low, of)'
	mutant group-changes-at-once round.bpf.h 'differ |= a[i] ^ b[i];' ';'
	mutant view-is-the-sums ps.bpf.h 'v->policy == base && v->round >= step' '0'
	mutant view-too-soon ps.bpf.h ' && step == c->ps.low;' ';'
	mutant view-for-ever ps.bpf.h '&& v->round >= step' ''
	mutant view-not-kept ps_sum.bpf.h 'to[i] = old ^ ((old ^ t) & take);' ';'
	mutant view-of-old-results ps_sum.bpf.h 't = from[i] & keep;' 't = from[i];'
	# from rounds to steps and back
	mutant ps-takes-gradients dispatch.bpf.h 'if (rt->mode == SAINA_RT_PS && c->in.round >= rt->base) {' 'if (0) {'
	mutant ps-at-any-place ps_sum.bpf.h $'(c->ps.base & (conf->ring - 1)) * conf->segments + c->in.segment;\n\tlock' $'c->in.segment;\n\tlock'
	mutant fence-in-a-step ps.bpf.h 'k->done[w] + (going >> w & 1)' 'k->done[w]'
	mutant fence-over-the-sums ps.bpf.h '	if (!((fence - k->base) & (ring - 1)))' '	if (0)'
	mutant fence-stops-nobody ps.bpf.h 'ps_above(1, fence)' '1'
	mutant fence-of-the-living ps.bpf.h 'ps_select(ps_above(k->top, fence), k->top, fence);' 'fence;'
	mutant fence-before-all-are-there ps.bpf.h ' & ~is_above(going, 0);' ';'
	mutant ps-begins-with-the-fence round.bpf.h 'if (round_has_steps(target) && !round_is_fence(rt, r)) {' 'if (!round_has_steps(target)) {'
	mutant ps-of-a-torn-look ps.bpf.h $' &&\n\t    !(k->fence && k->fence == base))' ')'
	mutant fence-of-k round.bpf.h '	if (round_is_fence(rt, rt->next_round - 1))' '	if (0)'
	mutant fence-with-parts round.bpf.h 'c->latch.parts = fence ? 0 :' 'c->latch.parts ='
	mutant ps-over-and-gone ps.bpf.h 'e->state != SAINA_SLOT_EMPTY && e->round > base' '0'
	mutant ends-where-rounds-were round.bpf.h '			rt->base = low;' ''
	# on several CPUs at once
	mutant a-lock-per-cpu slot_sum.bpf.h $'\t__u32 lock;\n\tint action;\n\n\tif (!c || !h || !e || !in || !out)\n\t\treturn VERDICT_DROP;\n\tlock = c->in.lock;' \
		$'\t__u32 lock;\n\tint action;\n\n\tif (!c || !h || !e || !in || !out)\n\t\treturn VERDICT_DROP;\n\tlock = bpf_get_smp_processor_id();'
	mutant mixed-lock-per-cpu slot_sum.bpf.h $'\tlock = in->lock;\n\tlk = bpf_map_lookup_elem(&saina_locks, &lock);\n\tcnt' $'\tlock = bpf_get_smp_processor_id();\n\tlk = bpf_map_lookup_elem(&saina_locks, &lock);\n\tcnt'
	mutant between-locks-stale slot_sum.bpf.h 'if (verdict == VERDICT_STALE && SIZED(slot_step)(c, h, e, in, out) == VERDICT_RESULT)' 'if (0)'
	mutant no-undo slot_sum.bpf.h '		round_undo(c);' '		;'
	mutant ps-lock-per-cpu ps_sum.bpf.h $'lock = c->in.lock;\n\tring' $'lock = bpf_get_smp_processor_id();\n\tring'
	mutant view-lock-per-cpu ps_sum.bpf.h $'lock = c->in.lock;\n\tlk' $'lock = bpf_get_smp_processor_id();\n\tlk'
	mutant slot-counted-late round.bpf.h 'rt->open_slots++;' ';'
fi

wait
[ -e "$work/verdicts" ] || { echo "mutants: no name has \"$pattern\"" >&2; exit 2; }
# those VERDICT: the names of the mutants with that verdict
those() {
	sed -n "s/^$1 //p" "$work/verdicts" | paste -sd' '
}
sed -n 's/^[1-9][0-9]* \(.*\)/fails with the program as it is: \1/p' "$work"/sound.* 2>/dev/null
killed=$(grep -c '^killed \|^could ' "$work/verdicts") survived=$(those SURVIVED) stale=$(those STALE)
echo "$killed ${only_edits:+could be }killed, $(wc -w <<<"$survived") survived${survived:+: $survived}, $(wc -w <<<"$stale") stale${stale:+: $stale}"
[ -z "$survived$stale" ]
