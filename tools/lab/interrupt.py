# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals that end a run: they become KeyboardInterrupt, so that the run can write its results first."""

import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupted(_signal, _frame):
    raise KeyboardInterrupt


def catch() -> None:
    """From now on SIGINT, SIGTERM and SIGHUP raise KeyboardInterrupt."""
    for s in ENDING:
        signal.signal(s, interrupted)


def ignore() -> None:
    """From now on they are ignored: for clean-up and reports that must not be interrupted."""
    for s in ENDING:
        signal.signal(s, signal.SIG_IGN)
