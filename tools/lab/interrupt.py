# SPDX-License-Identifier: GPL-2.0-or-later
"""Signals that end a run: what it has made is written before."""

import signal

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def interrupted(_signal, _frame):
    raise KeyboardInterrupt


def catch() -> None:
    for s in ENDING:
        signal.signal(s, interrupted)


def ignore() -> None:
    for s in ENDING:
        signal.signal(s, signal.SIG_IGN)
