#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An MPI program that knows nothing of SAINA: its sums are right, and go through the aggregator
# where all ranks can.  The lab is that of lib.sh, with three ranks.
#
#	mpi.sh [quick]		quick: only the cases that matter most

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"

SUMS=$B/selftests/mpi-sums
quick=${1-}
N=3
# Refusals that the test causes are in the agent's log.
expected_log='refused|is dead|no job|joined'

# right TEXT RANKS: every rank says that all its sums are right
right() {
	[ "$(grep -c "sums are right" <<<"$1")" = "$2" ]
}

lab_up --workers $N
job mpi elements 40000 workers $N
[ "$quick" = quick ] || output=$(mpi $N -- "$SUMS" rounds 1)
[ "$quick" = quick ] || check "mpi: without the shim every sum is right" right "$output" $N || diag "$(tail -n 12 <<<"$output")"

# Five sums of each round go through the aggregator: of int, in place, in two communicators of all
# ranks, and one beside a message.
output=$(through $N SAINA_JOB=mpi -- "$SUMS" rounds 3)
check "mpi: every sum is right at every rank" right "$output" $N || diag "$(tail -n 12 <<<"$output")"
equal "mpi: sums of int of all ranks go through the aggregator" 15 "$(taken "$output")"
if [ "$quick" != quick ]; then
output=$(through $N SAINA_JOB=mpi -- "$SUMS" rounds 2 threads)
check "mpi: with threads every sum is right" right "$output" $N || diag "$(tail -n 12 <<<"$output")"
equal "mpi: with threads only MPI_COMM_WORLD's go through the aggregator" 6 "$(taken "$output")"
output=$(through $N SAINA_JOB=mpi SAINA_MPI_MIN=4000000 -- "$SUMS" rounds 1)
equal "mpi: shorter ones than SAINA_MPI_MIN go through MPI" 0 "$(taken "$output")"
output=$(through $N SAINA_JOB=mpi -- "$SUMS" rounds 1 float)
equal "mpi: sums of float go through MPI" 5 "$(taken "$output")"
output=$(through $N SAINA_JOB=mpi SAINA_MPI_LOSSY=1 -- "$SUMS" rounds 2 float)
equal "mpi: with SAINA_MPI_LOSSY sums of float, and no others, go through the aggregator" 4 "$(taken "$output")"
check "mpi: sums of floats that need no rounding are exact there" right "$output" $N || diag "$(tail -n 12 <<<"$output")"
fi

# falls_back WHAT SENTENCE VARIABLE...: all ranks take MPI, one says why, and all sums are right
falls_back() {
	local what=$1 sentence=$2
	shift 2
	output=$(through $N "$@" -- "$SUMS" rounds 1)
	matches "fall back: $what: the reason is given" "$sentence" "$output"
	matches "fall back: $what: all go through MPI" "all all-reduces .*go through MPI" "$output"
	check "fall back: $what: every sum is right" right "$output" $N || diag "$(tail -n 12 <<<"$output")"
}
falls_back "a job that does not exist" 'no job "none"' SAINA_JOB=none
if [ "$quick" != quick ]; then
falls_back "no aggregator" "SAINA_AGGREGATOR is not set" SAINA_AGGREGATOR=
job two elements 40000 workers 2
falls_back "a job of another size" "job [0-9]+ has 2 workers, there are 3" SAINA_JOB=two
falls_back "a variable that makes no sense" "SAINA_MPI_MIN=much" SAINA_JOB=mpi SAINA_MPI_MIN=much
# One rank's token is wrong: the others have joined, and wait for as long as a rank may take to join.
job locked elements 40000 workers $N token key
cat >"$WORK/one-wrong" <<SH
#!/bin/sh
[ "\$OMPI_COMM_WORLD_RANK" != 1 ] || SAINA_TOKEN=wrong
export SAINA_TOKEN
exec "\$@"
SH
chmod +x "$WORK/one-wrong"
output=$(through $N SAINA_JOB=locked SAINA_TOKEN=key -- "$WORK/one-wrong" "$SUMS" rounds 1)
matches "fall back: one rank with a wrong token: that rank says so" "rank 1 cannot join: .*token" "$output"
matches "fall back: one rank with a wrong token: all go through MPI" "of $N ranks cannot join: all" "$output"
check "fall back: one rank with a wrong token: every sum is right" right "$output" $N || diag "$(tail -n 12 <<<"$output")"
fi

# A policy that does not wait for all: each sum that lacks a rank is made by MPI.
job fast elements 40000 workers $N policy fastest:k=2
output=$(through $N SAINA_JOB=fast -- "$SUMS" rounds 3)
matches "partial: a rank says that a sum lacks some of the ranks" "lacks some of the ranks" "$output"
check "partial: every sum is right all the same" right "$output" $N || diag "$(tail -n 12 <<<"$output")"
if [ "$quick" != quick ]; then
matches "partial: with SAINA_MPI_PARTIAL such sums are the program's" "the sum is wrong" \
	"$(through $N SAINA_JOB=fast SAINA_MPI_PARTIAL=1 -- "$SUMS" rounds 2)"
fi
finished
