# SPDX-License-Identifier: GPL-2.0-or-later
"""libsaina: a job of BSP, as `saina job add' makes it when nothing else is said."""

import json

from group import Group
from lab import NET, BenchError, run

STOCK = 212992		# net.core.rmem_max of a Debian that nobody has tuned
FRAME = 4608		# tools/saina/doctor_bridge.c: what a result takes in a buffer
LEAST = 256 * FRAME	# tools/saina/doctor_worker.c


class Saina(Group):
    """advised: with the receive buffers that `saina doctor' asks for."""

    def __init__(self, lab, folder, elements: int, advised: bool):
        self.name = "saina-advised" if advised else "saina"
        self.elements = elements
        self.advised = advised
        self.job: dict = {}
        super().__init__(lab, folder)

    def saina(self, *words: str) -> str:
        return run(*self.lab.inside(None, self.program("saina"), "-s", f"/run/saina-lab/{self.lab.name}/control", *words))

    def start(self) -> None:
        name = "advised" if self.advised else "stock"
        # The longest that may be said: on a machine that is overloaded nobody is dead.
        self.saina("job", "add", name, "elements", str(self.elements), "workers", str(self.ranks),
                   "policy", "bsp", "dead", "65535")
        self.job = json.loads(self.saina("-j", "job", "show", name))[0]
        buffers = max(LEAST, self.job["pool"] * FRAME // 2) if self.advised else STOCK
        for rank in range(self.ranks):
            self.spawn(self.lab.inside(rank, self.program("bench-saina"), self.socket_path, str(rank),
                                       str(self.ranks), f"{NET}.1", str(self.job["id"]), str(buffers)))
        self.greet()
        if self.hello["relayed"] != "0":
            raise BenchError("libsaina: results come by the slow path, so there is nothing to measure: "
                             f"see {self.log_path}")
