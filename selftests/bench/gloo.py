# SPDX-License-Identifier: GPL-2.0-or-later
"""Gloo over TCP; the ranks find one another by files in a folder."""

import os

from group import Group


class Gloo(Group):
    def __init__(self, lab, folder):
        self.name = "gloo-beside" if lab.agent else "gloo"
        super().__init__(lab, folder)

    def start(self) -> None:
        store = os.path.join(self.folder, "store")
        os.mkdir(store)
        for rank in range(self.ranks):
            self.spawn(self.lab.inside(rank, self.program("bench-gloo"), self.socket_path, str(rank),
                                       str(self.ranks), "eth0", store))
        self.greet()
        self.lab.check_tcp()
