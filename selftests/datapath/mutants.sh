#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Can the data path tests fail?  Breaks one rule of the XDP program at a time,
# in a copy, and expects the tests to go red.  A developer's tool, not part of
# `make check` (eleven minutes on a busy machine).  TESTS="trace_test" tries those tests only.
#
#	make all check-programs && selftests/datapath/mutants.sh [NAME]
#
# Exit 1 if a mutant survives or a patch no longer applies.

set -eu
cd "$(dirname "$0")/../.."
B=${B:-build}
only=${1:-}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM
survived=0

# mutant NAME FILE SED-EXPRESSION
mutant() {
	[ -z "$only" ] || [ "$only" = "$1" ] || return 0
	rm -rf "$work/src" "$work/mutant.o"
	mkdir "$work/src"
	cp -r uapi kmod "$work/src/"
	sed -i -e "$3" "$work/src/kmod/bpf/$2"
	if cmp -s "kmod/bpf/$2" "$work/src/kmod/bpf/$2"; then
		echo "STALE     $1: its patch does not apply any more"
		survived=$((survived + 1))
		return 0
	fi
	if ! (cd "$work/src" && ${CLANG:-clang} -target bpf -O2 -g -mcpu=v3 -Iuapi -Ikmod/bpf \
	      -idirafter "/usr/include/$(${CC:-gcc} -print-multiarch)" \
	      -c -o "$work/mutant.o" kmod/bpf/saina_xdp.bpf.c) 2>"$work/log"; then
		echo "STALE     $1: does not compile: $(head -n 1 "$work/log")"
		survived=$((survived + 1))
		return 0
	fi
	for t in ${TESTS:-defects_test sfcd_parity_test trace_test race_test}; do
		[ "$t" != trace_test ] || t='trace_test --packets 300000'
		rc=0
		# shellcheck disable=SC2086
		SAINA_BPF_OBJECT="$work/mutant.o" "$B"/selftests/$t >"$work/log" 2>&1 || rc=$?
		[ "$rc" -eq 0 ] && continue
		if grep -q '^Bail out' "$work/log"; then
			echo "STALE     $1: $(grep '^Bail out' "$work/log")"
			survived=$((survived + 1))
		else
			echo "killed    $1: ${t%% *}: $(grep '^not ok' "$work/log" | head -n 1)"
		fi
		return 0
	done
	echo "SURVIVED  $1"
	survived=$((survived + 1))
}

# design: a first packet STORES
mutant first-packet-adds slot_elems.bpf.h 's/\td\[i\] = s\[i\];/\td[i] += s[i];/'
# each (worker, round, segment) counts at most once
mutant no-dedupe slot_elems.bpf.h 's/if (c->pull || (h->meta.seen & c->bit))/if (c->pull)/'
mutant no-round-tag slot_elems.bpf.h 's/if (h->meta.round == round && h->meta.segment/if (h->meta.segment/'
mutant no-segment-tag slot_elems.bpf.h 's/ && h->meta.segment == c->segment &&/ \&\&/'
mutant ring-without-tag slot_elems.bpf.h 's/== SAINA_SLOT_DONE && e->meta.round == round/== SAINA_SLOT_DONE/'
# a late packet never changes a DONE slot
mutant late-is-added slot_elems.bpf.h 's/if (h->meta.state == SAINA_SLOT_DONE)$/if (h->meta.state == SAINA_SLOT_DONE \&\& (h->meta.seen \& c->bit))/'
mutant late-is-resend answer.bpf.h 's/SAINA_F_RESEND : SAINA_F_LATE/SAINA_F_RESEND : SAINA_F_RESEND/'
mutant mixed-exponents slot_elems.bpf.h 's/if (h->meta.exponent != c->exponent)/if (0)/'
mutant no-aux slot_elems.bpf.h 's/cnt->last\[w\] = round + 1;/cnt->last[w] = round;/'
mutant drop-late-forgotten slot_elems.bpf.h 's/? SAINA_F_DROP_LATE : 0/? 0 : 0/'
mutant degraded-forgotten slot_elems.bpf.h 's/? SAINA_F_DEGRADED : 0/? 0 : 0/'
# k is latched and never above the live workers
mutant header-has-next-k answer.bpf.h 's/a.hdr\[5\] = c->k & 0xff/a.hdr[5] = c->next_k \& 0xff/'
mutant k-above-live slot.bpf.h 's/if (m->k < need)/if (m->k != need)/'
mutant dead-count slot.bpf.h 's/popcount64(m->seen & live) >= need/popcount64(m->seen) >= need/'
mutant members-not-latched slot.bpf.h 's/live = m->members & active/live = active/'
mutant k-above-active round.bpf.h 's/if (k > n)$/if (0)/'
# rounds
mutant rounds-overlap round.bpf.h 's/if (r == rt->next_round && rt->open_slots)/if (0)/'
mutant far-future round.bpf.h 's/else if (r > rt->next_round)/else if (r > rt->next_round + 1)/; s/if (r > rt->next_round) {/if (r > rt->next_round + 1) {/'
mutant stale-too-late round.bpf.h 's/rt->next_round - r > 1/rt->next_round - r > 2/'
mutant before-the-first round.bpf.h 's/ || (r < rt->next_round && !rt->members)//'
mutant policy-never-again round.bpf.h 's/o->policy = conf->policy.seq != rt->policy.seq/o->policy = !rt->policy.seq/'
mutant primed-survives-death round.bpf.h 's/} else if (old && old != conf->active) {/} else if (0) {/'
mutant slot-taken-open slot.bpf.h 's/return SLOT_OPEN_ELSEWHERE;/return SLOT_FREE;/'
mutant window-broken slot.bpf.h 's/return SLOT_OUT_OF_WINDOW;/return SLOT_FREE;/'
# the short cut must take the common case only
mutant short-no-dedupe slot_elems.bpf.h 's/ && !(h->meta.seen & bit) &&/ \&\&/'
mutant short-no-segment slot_elems.bpf.h 's/h->meta.segment == segment && h->meta.count/h->meta.count/'
mutant short-no-exponent slot_elems.bpf.h 's/h->meta.exponent == m->exponent && //'
mutant short-no-deaths slot_elems.bpf.h 's/!(h->meta.members & ~active);/1;/'
mutant short-completes slot_elems.bpf.h 's/h->meta.count + 1 >= h->meta.k)/0)/; s/h->meta.count + 1 < h->meta.k &&/1 \&\&/'
# SFCD
mutant first-round-decides sfcd.bpf.h 's/if (rt->primed || parity) {/if (1) {/'
mutant parity-tail-counts sfcd.bpf.h 's/ & ~31u;/;/'
mutant no-leak sfcd.bpf.h 's/else if (rt->converged)/else if (0)/'
mutant k-max-forgotten sfcd.bpf.h 's/if (rt->k_next < limit) {/if (rt->k_next < 64) {/'
mutant zero-is-negative slot_elems.bpf.h 's/(__u64)((__u32)p->v\[i\] >> 31) << b/(__u64)(p->v[i] <= 0) << b/'
mutant off-by-one-threshold sfcd.bpf.h 's/rt->flips \* 1000 >= scaled/rt->flips * 1000 > scaled/'
mutant cth-follows-next-k sfcd.bpf.h 's/p->c_th ? p->c_th : rt->k/p->c_th ? p->c_th : rt->k + 1/'
mutant stale-told-each-time control.bpf.h 's/last >= round)/last > round)/'
# checks and answers
mutant any-port saina_xdp.bpf.c 's/if (ctx->ingress_ifindex != b->ifindex)/if (0)/'
mutant any-session saina_xdp.bpf.c 's/if (RD(__u16, data + HDR_OFF(session)) != b->session)/if (0)/'
mutant any-length saina_xdp.bpf.c 's/if (udp_len != sizeof(struct udphdr) + sizeof(struct saina_hdr) + 4 \* count)/if (0)/'
mutant the-dead-speak saina_xdp.bpf.c 's/if (!probe && !(conf->active >> m->key.worker & 1))/if (0)/'
mutant first-fragments saina_xdp.bpf.c 's/^\t\tif (more) {/\t\tif (0) {/'
mutant options-parsed saina_xdp.bpf.c 's/RD(__u8, data + SAINA_IP_OFF) != 0x45/(RD(__u8, data + SAINA_IP_OFF) \& 0xf0) != 0x40/'
mutant options-hide saina_xdp.bpf.c 's/return framing_odd(ctx);/return XDP_PASS;/'
mutant tags-hide framing.bpf.h 's/i < FRAMING_TAGS/i < 1/'
mutant tags-are-foreign saina_xdp.bpf.c 's/return is_tag(proto) ? framing_odd(ctx) : XDP_PASS/return XDP_PASS/'
mutant anybody-says-goodbye saina_xdp.bpf.c 's/if (reason == SLOT_NONE)$/if (1)/'
mutant the-dead-are-silenced saina_xdp.bpf.c 's/if (!conf || !(conf->active >> w \& 1))/if (!conf)/'
mutant bad-checksum slot_elems.bpf.h 's/^\t\tcsum += v;/\t\tcsum += v \& 0xffff;/'
mutant trailer-kept answer.bpf.h 's/if (surplus && /if (surplus > 64 \&\& /'
mutant pieces-not-written saina_xdp.bpf.c 's/(verdict == SLOT_RESULT || verdict == SLOT_ANSWER) &&/verdict == SLOT_RESULT \&\&/'
# on several CPUs at once
mutant no-slot-lock slot_elems.bpf.h '/bpf_spin_lock(&lk->lock);/d; /bpf_spin_unlock(&lk->lock);/d'
mutant no-undo slot_elems.bpf.h 's/round_undo(c);/;/'
mutant slot-counted-late round.bpf.h 's/rt->open_slots++;/;/'

[ "$survived" -eq 0 ] || { echo "$survived mutants survived or are stale"; exit 1; }
