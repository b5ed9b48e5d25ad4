#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# make bench-ddp, in small: all five ways take their steps, and the ratios are printed.  Times are not judged.

# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
report=$tmp/ddp.json

"$top/selftests/bench/bench-ddp" --turns 2 --steps 3 --rate none --buckets 300000 2000 90 --out "$tmp" >"$tmp/output" 2>&1
point $? "bench-ddp: it ends well" || diag "$(tail -n 20 "$tmp/output")"
report_has "bench-ddp: all ways have taken their steps" \
	'.none | [.Worker, .hook, .DDP, .alone, .Gloo] | map(select(.us > 0 and .cpu > 0 and (.turns | length) == 2)) | length == 5'
grep -qE '^hook / Worker: [0-9]+\.[0-9]+ ' "$tmp/output" && grep -qE 'DDP \+ Gloo / DDP \+ saina: [0-9]' "$tmp/output"
point $? "bench-ddp: the ratios are printed"
plan
