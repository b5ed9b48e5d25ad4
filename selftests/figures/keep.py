# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of runs, each in a file of its own, whose name depends on all that the run depends on.

So a figure that was stopped is continued: runs that were made are not made again."""

import hashlib
import json
import os

import results
from models import Outcome


class Kept:
    """The kept results in a folder.  A run has a figure, a key that names it in the figure, and spec(), all that it depends on."""

    def __init__(self, folder: str):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def path(self, run) -> str:
        what = json.dumps(run.spec(), sort_keys=True).encode()
        return os.path.join(self.folder, f"{run.figure}-{run.key}.{hashlib.sha256(what).hexdigest()[:10]}.json")

    def read(self, run) -> dict | None:
        """The result of a run, None if there is none, or its file is damaged."""
        try:
            with open(self.path(run), encoding="utf-8") as f:
                kept = json.load(f)
            return kept | ({"outcome": Outcome(**kept["outcome"])} if "outcome" in kept else {})
        except (FileNotFoundError, json.JSONDecodeError, TypeError):
            return None

    def write(self, run, result: dict) -> None:
        plain = {k: vars(v) if isinstance(v, Outcome) else v for k, v in result.items()}
        results.write_json(self.path(run), {"run": run.spec(), **results.machine(), **plain})

    def forget(self, run) -> None:
        try:
            os.unlink(self.path(run))
        except FileNotFoundError:
            pass
