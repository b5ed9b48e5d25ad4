#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Each mutant of the BPF programs (selftests/datapath/mutants.sh) is an edit that applies, and the
# table of what one test alone sees (mutants.alone) has tests and mutants that there are.  Sources
# change, and the mutants themselves are not run in CI.

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=../tap.sh
. selftests/tap.sh

said=$(selftests/datapath/mutants.sh -n)
point $? "mutants: each edit of the map variant applies exactly once (${said##*$'\n'})" || diag "$said"
said=$(selftests/datapath/mutants.sh -n -k)
point $? "mutants: each edit of the variant for saina.ko applies exactly once (${said##*$'\n'})" || diag "$said"
names=$(sed -n '/^#/d; s/^\([^:]*\):\(.*\)/\1\2/p' selftests/datapath/mutants.alone | tr ' ' '\n')
[ "$(wc -l <<<"$names")" -gt 5 ]
point $? "mutants: the table of what one test alone sees has tests and mutants"
gone=$(while read -r name; do
	grep -qE "^	mutant $name |[' (]${name}[' )]|^	+$name " selftests/datapath/mutants.sh || echo "$name"
done <<<"$names")
equal "mutants: the table of what one test alone sees has no test and no mutant that is gone" "" "$gone"
plan
