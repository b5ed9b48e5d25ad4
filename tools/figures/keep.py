# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of runs, each in a file of its own, named for all that the run depends on.

A run that was made is not made again, whatever stopped the one before."""

import hashlib
import json
import os

import results
from models import Outcome
from plan import Run


class Kept:
    def __init__(self, folder: str):
        self.folder = folder
        os.makedirs(folder, exist_ok=True)

    def path(self, run: Run) -> str:
        what = json.dumps(run.spec(), sort_keys=True).encode()
        return os.path.join(self.folder, f"{run.figure}-{run.key}.{hashlib.sha256(what).hexdigest()[:10]}.json")

    def read(self, run: Run) -> dict | None:
        """None: there is no result, or it was cut off."""
        try:
            with open(self.path(run), encoding="utf-8") as f:
                kept = json.load(f)
            return kept | {"outcome": Outcome(**kept["outcome"])}
        except (FileNotFoundError, json.JSONDecodeError, KeyError, TypeError):
            return None

    def write(self, run: Run, result: dict) -> None:
        outcome: Outcome = result["outcome"]
        results.write_json(self.path(run), {"run": run.spec(), **results.machine(), **result, "outcome": vars(outcome)})

    def forget(self, run: Run) -> None:
        try:
            os.unlink(self.path(run))
        except FileNotFoundError:
            pass
