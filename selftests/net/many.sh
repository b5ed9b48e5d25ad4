#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# As many workers as a job may have:
#
#     w0 .. w63: one job, all waited for; then the 60 fastest
#
# 1. bsp: all 64 workers are waited for
# 2. fastest:k=60: the 60 fastest

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

# 1. bsp: all 64 workers are waited for
lab_up --workers 64
job crowd workers 64 elements 2048 payload 256 policy bsp dead 20000
start_all crowd "$(shrink 8 2)" 64 --elements 2048
check "64 workers, bsp: all sums are exact" wait_all 80
# shellcheck disable=SC2046
check "64 workers, bsp: all workers have the same results" same_results $(seq 0 63)
equal "64 workers, bsp: all 64 are in every sum" "64 64" "$(minmax 63 count_min count_max)"

# 2. fastest:k=60: the 60 fastest
job most workers 64 elements 2048 payload 256 policy fastest:k=60 dead 20000
start_all most "$(shrink 8 2)" 64 --elements 2048
check "64 workers, fastest:k=60: all sums are exact" wait_all 80
equal "64 workers, fastest:k=60: 60 are in every sum" "60 60" "$(minmax 63 count_min count_max)"
finished
