# SPDX-License-Identifier: GPL-2.0-or-later
"""libsaina, with the defaults of `saina job add'."""

import json
import os
import time

from group import Group
from lab import BenchError

# Of the job, by variant.
OPTIONS = {"messages": [], "int16": ["type", "int16"], "reference": ["by-reference-only"]}


class Saina(Group):
    """Processes of bench-saina.

    elements: of the job
    variant: "messages"; "int16": elements have 16 bits on the wire; "reference": by memory shared with the data
        path, so that no gradient uses a link
    """

    def __init__(self, lab, folder, elements: int, variant: str, policy: str = "bsp"):
        self.name = f"saina-{variant}"
        self.job_name = f"{lab.name}-{variant}"
        self.elements, self.variant, self.policy = elements, variant, policy
        self.reference = variant == "reference"
        if variant == "int16":
            self.wire_share = 0.5
        super().__init__(lab, folder)

    def start(self) -> None:
        # The longest time allowed, so that no worker is declared dead on an overloaded machine.
        self.lab.saina("job", "add", self.job_name, "elements", str(self.elements), "workers", str(self.ranks),
                   "policy", self.policy, "dead", "65535", *OPTIONS[self.variant])
        job = str(json.loads(self.lab.saina("-j", "job", "show", self.job_name))[0]["id"])
        with open("/proc/sys/net/core/rmem_max", encoding="ascii") as f:
            buffers = f.read().strip()
        environment = {**os.environ, "SAINA_SHARE": self.lab.share}
        for rank in range(self.ranks):
            self.spawn(self.lab.inside(rank, self.program("bench-saina"), self.socket_path, str(rank),
                                       str(self.ranks), self.lab.aggregator, job, buffers), env=environment)
        self.greet()
        if self.hello["relayed"] != "0":
            raise BenchError("libsaina: results come by the slow path, so there is nothing to measure: "
                             f"see {self.log_path}")
        if self.reference:
            self.check_reference()

    def check_reference(self) -> None:
        """Waits until the job uses shared memory.  Raises BenchError if it does not."""
        deadline = time.monotonic() + 10
        while True:
            said = json.loads(self.lab.saina("-j", "job", "show", self.job_name))[0]["reference"]
            if said == "in use":
                return
            if time.monotonic() > deadline:
                raise BenchError(f"libsaina by shared memory: {said}")
            time.sleep(0.05)
