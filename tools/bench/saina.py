# SPDX-License-Identifier: GPL-2.0-or-later
"""libsaina, with the defaults of `saina job add'."""

import json
import os
import sys
import time

from group import Group
from lab import BUILD, BenchError
from peers import PEER

HEADER = 48		# bytes, in front of the payload of a message

# Of the job, by variant.
OPTIONS = {"messages": [], "int16": ["type", "int16"], "reference": ["by-reference-only"]}


class Saina(Group):
    """Processes that may not exceed net.core.rmem_max, although they are root's: those of users cannot either.

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
        environment = {**os.environ, "SAINA_SHARE": self.lab.share, "SAINA_AGGREGATOR": self.lab.aggregator, "SAINA_JOB": self.job_name}
        for rank in range(self.ranks):
            self.spawn(self.lab.inside(rank, "setpriv", "--bounding-set", "-net_admin", sys.executable, PEER, "saina", self.socket_path,
                                       str(rank), str(self.ranks), self.library()), env={**environment, "SAINA_RANK": str(rank)})
        self.greet()
        payload = json.loads(self.lab.saina("-j", "job", "show", self.job_name))[0]["payload"]
        self.hello = {"payload": str(4 * payload), "header": str(HEADER)}
        if any(w.get("results") != "fast" for w in json.loads(self.lab.saina("-j", "worker", "show", self.job_name))):
            raise BenchError("libsaina: results come by the slow path, so there is nothing to measure: "
                             f"see {self.log_path}")
        if self.reference:
            self.check_reference()

    @staticmethod
    def library() -> str:
        """That of the build tree or of this installation, else the system's."""
        found = [path for path in (f"{BUILD}/libsaina.so", f"{BUILD}/../libsaina.so.0") if os.path.exists(path)]
        return [*found, "libsaina.so.0"][0]

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
