# SPDX-License-Identifier: GPL-2.0-or-later
"""Progress of a run of many rows."""

import sys
import time


class Progress:
    """Prints where a run is: on a terminal, one line that is overwritten; elsewhere, only what line() prints.

    total: number of rows of the run
    """

    def __init__(self, total: int):
        self.total = total
        self.row = 0
        self.began = time.monotonic()
        self.where = ""
        self.terminal = sys.stdout.isatty()

    def seconds(self) -> float:
        return time.monotonic() - self.began

    def elapsed(self) -> str:
        s = int(self.seconds())
        return f"{s // 60}:{s % 60:02d}"

    def step(self, row) -> None:
        self.row += 1
        self.where = f"row {self.row} of {self.total}, {row}"

    def __call__(self, what: str) -> None:
        if self.terminal:
            print(f"\r\033[K[{self.elapsed()}] {self.where}: {what}", end="", flush=True)

    def clear(self) -> None:
        if self.terminal:
            print("\r\033[K", end="", flush=True)

    def line(self, text: str) -> None:
        self.clear()
        print(text, flush=True)
