#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# make demo-torch, in small: all seven trainings end, with the same model on all ranks (those by steps: where nobody is
# late), and there are a table and a picture.  No times.

# shellcheck source=bench_lib.sh
. "$(dirname "$0")/bench_lib.sh"
report=$tmp/torch.json

"$top/tools/demo-torch" --steps 15 --quiet-steps 5 --base 20 --target 5 --limit 200 --out "$tmp" >"$tmp/output" 2>&1
point $? "demo-torch: seven trainings end well" || diag "$(tail -n 20 "$tmp/output")"
report_has "demo-torch: all ranks have the same model, bit for bit, in each of them" '[.[] | select(.same)] | length == 7'
report_has "demo-torch: the runs are Gloo's and ours" '[.[].run] == ["gloo", "fp16", "bsp", "fastest", "sfcd", "ssp", "grouped"]'
check "demo-torch: a table is shown" grep -q "DDP + saina, fastest:k=3 " "$tmp/output"
python3 -c 'import sys, xml.dom.minidom as x; x.parse(sys.argv[1])' "$tmp/torch.svg"
point $? "demo-torch: the picture is well-formed SVG"
plan
