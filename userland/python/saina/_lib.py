# SPDX-License-Identifier: LGPL-2.1-or-later OR MIT
"""Loads libsaina; its errors.  cffi releases the GIL during every call."""

import errno
import os

from ._libsaina import ffi

#: pip puts the library into the package; otherwise the system has it.
_OWN = os.path.join(os.path.dirname(__file__), "libsaina.so.0")
#: $SAINA_LIBRARY names another one, such as that of a build tree.
_NAME = os.environ.get("SAINA_LIBRARY") or (_OWN if os.path.exists(_OWN) else "libsaina.so.0")

try:
    lib = ffi.dlopen(_NAME)
except OSError as e:
    raise ImportError(f"saina cannot load libsaina: {e}.  Install it (`make install', or the package libsaina0), "
                      "or set SAINA_LIBRARY to its path") from e


class Error(OSError):
    """A call of libsaina failed: ``errno``, and in ``strerror`` a sentence.

    The errno values are those of libsaina(3): ESTALE (the results this worker needs are
    no longer kept: it must get the model from a peer), ECONNRESET (the job was stopped or
    deleted), EPROTO (another worker started other sizes in this round), ETIMEDOUT
    (nothing was heard from the aggregator), ECHILD (the handle belongs to the parent process),
    EBUSY, EINVAL, ...
    """

    def __init__(self, number: int, sentence: str):
        super().__init__(abs(number), sentence)

    def __str__(self) -> str:
        return f"{self.strerror} ({errno.errorcode.get(self.errno, self.errno)})"


def text(c: object) -> str:
    """A C string."""
    return ffi.string(c).decode(errors="replace")


def version() -> str:
    """Version of the library that is loaded."""
    return text(lib.saina_version())
