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
mkdir -p "$WORK/ompi"
# its agent's address is not the same at all ranks
cat >"$WORK/rank" <<END
#!/bin/sh
SAINA_AGGREGATOR=\$(cat "$WORK/aggregator.\$OMPI_COMM_WORLD_RANK") exec "\$@"
END
chmod +x "$WORK/rank"
output=$(in_switch timeout $((100 * SLOW)) mpirun --allow-run-as-root --hostfile "$WORK/hosts" -np 4 --map-by slot \
	--bind-to none --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include 10.190.0.0/16 \
	--mca oob_tcp_if_include 10.190.0.0/16 --mca plm_rsh_agent "$TOP/tools/bench/rsh" \
	--mca plm_rsh_no_tree_spawn 1 --mca orte_keep_fqdn_hostnames 1 --mca mpi_yield_when_idle 1 --mca orte_tmpdir_base "$WORK/ompi" \
	-x LD_PRELOAD="$SHIM" -x SAINA_MPI_VERBOSE=1 -x SAINA_JOB=mpi "$WORK/rank" "$B/selftests/mpi-sums" rounds 3 2>&1 </dev/null)
equal "mpi, two hosts: every sum is right at every rank" 4 "$(grep -c "sums are right" <<<"$output")"
equal "mpi, two hosts: sums of int of all ranks go through the aggregators" 15 "$(taken "$output")" || diag "$(tail -n 20 <<<"$output")"
lab_down
finished
