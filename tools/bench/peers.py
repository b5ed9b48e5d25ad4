# SPDX-License-Identifier: GPL-2.0-or-later
"""The peers: Gloo of the installed PyTorch, and Open MPI over TCP by the installed mpi4py, which takes each
worker's namespace for a host."""

import os
import sys

from group import Group

# btl self,tcp: no shared memory, although all ranks are on one machine.
SETTINGS = {
    "pml": "ob1",
    "btl": "self,tcp",
    "coll_tuned_use_dynamic_rules": "1",
    "plm_rsh_agent": os.path.join(os.path.dirname(os.path.realpath(__file__)), "rsh"),
    "plm_rsh_no_tree_spawn": "1",
}


PEER = os.path.join(os.path.dirname(os.path.realpath(__file__)), "peer.py")


class Peer(Group):
    """Its groups on ports with and without SAINA's program have folders of their own."""

    kind = ""

    def __init__(self, lab, folder):
        self.name = f"{self.kind}-beside" if lab.agent else self.kind
        super().__init__(lab, folder)


class Gloo(Peer):
    kind = "gloo"

    def start(self) -> None:
        store = os.path.join(self.folder, "store")
        if os.path.exists(store):
            os.unlink(store)
        for rank in range(self.ranks):
            self.spawn(self.lab.inside(rank, sys.executable, PEER, "gloo", self.socket_path, str(rank), str(self.ranks), "eth0", store))
        self.greet()
        self.lab.check_tcp()


class OpenMPI(Peer):
    kind = "openmpi"

    def start(self) -> None:
        hosts = os.path.join(self.folder, "hosts")
        with open(hosts, "w", encoding="utf-8") as f:
            f.writelines(f"{self.lab.namespace(rank)} slots=1\n" for rank in range(self.ranks))
        # mpi_yield_when_idle: Open MPI sets it itself if it sees more ranks than cores on a host.
        settings = {**SETTINGS, "btl_tcp_if_include": self.lab.subnet, "oob_tcp_if_include": self.lab.subnet,
                    "mpi_yield_when_idle": str(int(self.ranks > (os.cpu_count() or 1))),
                    "orte_tmpdir_base": self.folder}
        self.spawn(self.lab.inside(None, "mpirun", "--allow-run-as-root", "--hostfile", hosts, "-np", str(self.ranks),
                                   "--map-by", "node", "--bind-to", "none",
                                   *(w for key, value in settings.items() for w in ("--mca", key, value)),
                                   sys.executable, PEER, "mpi", self.socket_path))
        self.greet()
        self.lab.check_tcp()
