# SPDX-License-Identifier: GPL-2.0-or-later
"""libsaina, with a job of policy bsp and the defaults of `saina job add'."""

import json
import os
import re
import statistics
import time

from group import Group
from lab import BenchError
from measure import VERIFIED_ROUNDS, WARM_UP, durations

# Of the job, by variant.
OPTIONS = {"": [], "advised": [], "int16": ["type", "int16"], "reference": ["by-reference-only"]}
STOCK = 212992		# net.core.rmem_max of an untuned Debian


class Saina(Group):
    """Processes of bench-saina.

    elements: of the job
    variant: "", or
        "advised": with the receive buffers that `saina doctor' advises
        "int16": elements have 16 bits on the wire
        "reference": by memory shared with the data path, so that no gradient uses a link
    """

    policy = "bsp"

    def __init__(self, lab, folder, elements: int, variant: str = ""):
        self.name = f"saina-{variant}" if variant else "saina"
        self.job_name = variant or "stock"
        self.elements = elements
        self.variant = variant
        self.reference = variant == "reference"
        if variant == "int16":
            self.wire_share = 0.5
        self.job: dict = {}
        super().__init__(lab, folder)

    def start(self) -> None:
        # The longest time allowed, so that no worker is declared dead on an overloaded machine.
        self.lab.saina("job", "add", self.job_name, "elements", str(self.elements), "workers", str(self.ranks),
                   "policy", self.policy, "dead", "65535", *OPTIONS[self.variant])
        self.job = json.loads(self.lab.saina("-j", "job", "show", self.job_name))[0]
        environment = {**os.environ, "SAINA_SHARE": self.lab.share}
        for rank in range(self.ranks):
            self.spawn(self.lab.inside(rank, self.program("bench-saina"), self.socket_path, str(rank),
                                       str(self.ranks), self.lab.aggregator, str(self.job["id"]), str(self.buffers())), env=environment)
        self.greet()
        if self.hello["relayed"] != "0":
            raise BenchError("libsaina: results come by the slow path, so there is nothing to measure: "
                             f"see {self.log_path}")
        if self.reference:
            self.check_reference()

    def warm_up(self, size: int) -> float:
        """Reduces and verifies tensors of @size bytes.  Returns the median seconds of an all-reduce."""
        self.command(f"prepare - {size}")
        self.command(f"verify {VERIFIED_ROUNDS}")
        return statistics.median(durations(self.command(f"time {WARM_UP}"))) / 1e9

    def buffers(self) -> int:
        """The value of net.core.rmem_max, bytes, to which the workers limit their sockets' buffers."""
        return max(STOCK, self.advice()) if self.variant == "advised" else STOCK

    def advice(self) -> int:
        """The value of net.core.rmem_max, bytes, that `saina doctor' advises."""
        found = [said["found"] for said in json.loads(self.lab.saina("-j", "doctor")) if said["check"] == "rmem"]
        takes = re.search(r" takes ([0-9]+)", found[0] if found else "")
        if not takes:
            raise BenchError(f"saina doctor does not report the size of receive buffers: {found}")
        return int(takes[1])

    def check_reference(self) -> None:
        """Waits until the job works by reference.  Raises BenchError if it does not."""
        deadline = time.monotonic() + 10
        while True:
            said = json.loads(self.lab.saina("-j", "job", "show", self.job_name))[0]["reference"]
            if said == "in use":
                return
            if time.monotonic() > deadline:
                raise BenchError(f"libsaina by reference: {said}")
            time.sleep(0.05)
