# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""What the environment says of how to join."""

import errno
import os
from typing import Optional

from ._lib import Error

#: The first that is set: ours, torchrun's, Open MPI's, that of PMI (MPICH, Slurm).
RANKS = ("SAINA_RANK", "RANK", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


def _number(name: str, low: int, high: int) -> int:
    value = os.environ[name]
    if not value.isdecimal() or not low <= int(value) <= high:
        raise Error(errno.EINVAL, f'{name}="{value}" is not a number from {low} to {high}')
    return int(value)


def aggregator() -> str:
    try:
        return os.environ["SAINA_AGGREGATOR"]
    except KeyError:
        raise Error(errno.EINVAL, "say where the aggregator is: aggregator=, or SAINA_AGGREGATOR="
                                  "ADDRESS[:PORT] in the environment") from None


def job() -> int:
    return _number("SAINA_JOB", 0, 255) if "SAINA_JOB" in os.environ else 0


def rank() -> Optional[int]:
    for name in RANKS:
        if name in os.environ:
            return _number(name, 0, 63)
    return None


def token_file() -> Optional[str]:
    return os.environ.get("SAINA_TOKEN_FILE") if "SAINA_TOKEN" not in os.environ else None
