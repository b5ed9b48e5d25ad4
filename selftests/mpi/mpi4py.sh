#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# The all-reduce part of mpi4py's own tests, unchanged.  Each sum of all ranks goes through the
# aggregator, however short it is, if its type allows that.  The lab is that of lib.sh, with three
# ranks.

tests=$("$(dirname "$0")/get-mpi4py" 2>&1) || {
	echo "1..0 # SKIP $(tail -n 1 <<<"$tests")"
	exit 4
}
# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
N=3

# suite DESCRIPTION NAME=VALUE...: the tests pass at every rank, and some sums went through the aggregator
suite() {
	local what=$1 output
	shift
	# A file for each rank: output of ranks that write at the same time gets mixed.
	# shellcheck disable=SC2016 # for the rank's shell
	through $N SAINA_JOB=mpi SAINA_MPI_MIN=0 "$@" -- sh -c 'exec "$@" 2>"$0.$OMPI_COMM_WORLD_RANK"' "$WORK/rank" \
		/usr/bin/python3 -B -m unittest -k llreduce test_cco_buf test_cco_nb_buf test_cco_obj test_msgzero test_op
	output=$(cat "$WORK"/rank.?)
	equal "mpi4py: $what: all tests of all-reduce pass at every rank" $N "$(grep -c '^OK' <<<"$output")" ||
		diag "$(tail -n 30 <<<"$output")"
	check "mpi4py: $what: $(taken "$output") all-reduces went through the aggregator" [ "$(taken "$output")" -gt 0 ]
	check "mpi4py: $what: $(sed -nE 's/^Ran ([0-9]+) tests.*/\1/p;T;q' <<<"$output") tests ran" \
		[ "$(sed -nE 's/^Ran ([0-9]+) tests.*/\1/p' <<<"$output" | head -n 1)" -ge 8 ]
}

cd "$tests" || exit 1
lab_up --workers $N
job mpi elements 40000 workers $N
suite "with threads" MPI4PY_RC_THREADS=1
suite "without threads" MPI4PY_RC_THREADS=0
# The sums of small whole numbers, which is what the suite has, need no rounding.
suite "floats" MPI4PY_RC_THREADS=0 SAINA_MPI_LOSSY=1
finished
