# SPDX-License-Identifier: GPL-2.0-or-later
"""Parsers of values on the command lines of programs that measure: for `type' of argparse."""

import argparse


def whole(least: int, most: int):
    """A parser of whole numbers from least to most."""
    def parse(text: str) -> int:
        if text.isdigit() and least <= int(text) <= most:
            return int(text)
        raise argparse.ArgumentTypeError(f"\"{text}\" is not a number from {least} to {most}")
    return parse


def one_of(*names: str):
    """A parser that accepts one of these names."""
    def parse(text: str) -> str:
        if text in names:
            return text
        raise argparse.ArgumentTypeError(f"\"{text}\" is none of {', '.join(names)}")
    return parse


def listed(parse):
    """A parser of lists: what @parse accepts, separated by commas."""
    return lambda text: [parse(word) for word in text.split(",")]
