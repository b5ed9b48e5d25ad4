#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Each mutant of the BPF programs (selftests/datapath/mutants.sh) is an edit that applies.
# Sources change, and the mutants themselves are not run in CI.

set -u
cd "$(dirname "$0")/../.." || exit 1
# shellcheck source=../tap.sh
. selftests/tap.sh

said=$(selftests/datapath/mutants.sh -n)
point $? "mutants: each edit of the map variant applies exactly once (${said##*$'\n'})" || diag "$said"
said=$(selftests/datapath/mutants.sh -n -k)
point $? "mutants: each edit of the variant for saina.ko applies exactly once (${said##*$'\n'})" || diag "$said"
plan
