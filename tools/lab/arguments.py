# SPDX-License-Identifier: GPL-2.0-or-later
"""Values on the command lines of programs that measure."""

import argparse


def whole(least: int, most: int):
    """Parses a number from least to most."""
    def parse(text: str) -> int:
        if text.isdigit() and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"\"{text}\" is not a number from {least} to {most}")
    return parse


def one_of(*names: str):
    """Parses one of these."""
    def parse(text: str) -> str:
        if text in names:
            return text
        raise argparse.ArgumentTypeError(f"\"{text}\" is none of {', '.join(names)}")
    return parse


def listed(parse):
    """Parses what @parse does, several of them, with commas between them."""
    return lambda text: [parse(word) for word in text.split(",")]
