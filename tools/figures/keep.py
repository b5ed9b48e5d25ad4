# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of runs, each in a file of its own, named for all that the run depends on.

A run that was made is not made again, whatever stopped the one before."""

import hashlib
import json
import os

import results
from models import Outcome


class Kept:
    """run: has a figure, a key, which names it there, and a spec()."""

    def __init__(self, folder: str):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def path(self, run) -> str:
        what = json.dumps(run.spec(), sort_keys=True).encode()
        return os.path.join(self.folder, f"{run.figure}-{run.key}.{hashlib.sha256(what).hexdigest()[:10]}.json")

    def read(self, run) -> dict | None:
        """None: there is no result, or it was cut off."""
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
