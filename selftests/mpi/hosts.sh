#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# An MPI program whose ranks are on two hosts, each with an aggregator (selftests/net/tree_lib.sh); MPI
# itself is routed from host to host.

# shellcheck source=lib.sh
. "$(dirname "$0")/lib.sh"
# shellcheck source=../net/tree_lib.sh
. "$NET_DIR/tree_lib.sh"

expected_log='saina-uplink|no node is live'
tree_lab 2 2
tree_routes
tree_job mpi 40000
# mpirun is at the root's host
for h in 0 1; do
	for i in 0 1; do
		echo "saina-$LAB.h$h-w$i slots=1"
		echo "10.190.$((h + 1)).1" >"$WORK/aggregator.$((h * 2 + i))"
	done
done >"$WORK/hosts"
# its agent's address is not the same at all ranks
cat >"$WORK/rank" <<END
#!/bin/sh
SAINA_AGGREGATOR=\$(cat "$WORK/aggregator.\$OMPI_COMM_WORLD_RANK") exec "\$@"
END
chmod +x "$WORK/rank"
output=$(mpirun_on 10.190.0.0/16 slot 4 -x LD_PRELOAD="$SHIM" -x SAINA_MPI_VERBOSE=1 -x SAINA_JOB=mpi \
	"$WORK/rank" "$B/selftests/mpi-sums" rounds 3)
equal "mpi, two hosts: every sum is right at every rank" 4 "$(grep -c "sums are right" <<<"$output")"
equal "mpi, two hosts: sums of int of all ranks go through the aggregators" 15 "$(taken "$output")" || diag "$(tail -n 20 <<<"$output")"
lab_down
finished
