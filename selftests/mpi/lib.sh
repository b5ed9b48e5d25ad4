# shellcheck shell=bash
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Open MPI in a lab: each worker's namespace is a host of its own to it.
#
#     saina-$LAB-sw: mpirun, sainad, br0 10.190.0.1
#         p0 |      p1 |      ...
#     saina-$LAB-w0 eth0   w1 eth0  ...     one rank each, with LD_PRELOAD=libsaina-mpi.so

# shellcheck source=../net/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/../net/lib.sh"
SHIM=$B/libsaina-mpi.so
command -v mpirun >/dev/null || bail "Open MPI is missing: make deps"

# mpirun_on NETWORK MAP RANKS WORDS...: mpirun of the hosts in $WORK/hosts; its output.
mpirun_on() {
	mkdir -p "$WORK/ompi"
	in_switch timeout $((100 * SLOW)) mpirun --allow-run-as-root --hostfile "$WORK/hosts" -np "$3" --map-by "$2" \
		--bind-to none --mca pml ob1 --mca btl self,tcp --mca btl_tcp_if_include "$1" \
		--mca oob_tcp_if_include "$1" --mca plm_rsh_agent "$TOP/tools/bench/rsh" \
		--mca plm_rsh_no_tree_spawn 1 --mca orte_keep_fqdn_hostnames 1 --mca mpi_yield_when_idle 1 --mca orte_tmpdir_base "$WORK/ompi" \
		${TSAN_OPTIONS:+-x TSAN_OPTIONS} "${@:4}" 2>&1 </dev/null
}

# mpi RANKS NAME=VALUE... -- CMD...: with these variables at every rank; mpirun's output.
mpi() {
	local ranks=$1 variables=() i
	shift
	while [ "$1" != -- ]; do
		variables+=(-x "$1")
		shift
	done
	shift
	for ((i = 0; i < ranks; i++)); do
		echo "saina-$LAB-w$i slots=1"
	done >"$WORK/hosts"
	mpirun_on 10.190.0.0/24 node "$ranks" "${variables[@]}" "$@"
}

# through RANKS NAME=VALUE... -- CMD...: the same with the shim.
through() {
	local ranks=$1
	shift
	mpi "$ranks" LD_PRELOAD="$SHIM" SAINA_MPI_VERBOSE=1 SAINA_AGGREGATOR="$AGG" "$@"
}

# taken TEXT: how many all-reduces went through the aggregator, as this output of mpirun says
taken() {
	sed -nE 's/.*libsaina-mpi: ([0-9]+) all-reduces .* went through the aggregator.*/\1/p' <<<"$1"
}
