# SPDX-License-Identifier: GPL-2.0-or-later
"""Pictures of the figures, by gnuplot."""

import os

from lab import run

HERE = os.path.dirname(os.path.realpath(__file__))


def draw(folder: str, figure: str, script: str, panels: dict[str, list[str]]) -> list[str]:
    """Draws figure-FIGURE.svg and .png by @script, and returns their paths.

    panels: by title, the lines of data that the script reads; panels without lines are left out"""
    panels = {title: lines for title, lines in panels.items() if lines}
    if not panels:
        return []
    data = os.path.join(folder, f"figure-{figure}.dat")
    with open(data, "w", encoding="utf-8") as f:
        for title, lines in panels.items():
            f.write("\n".join([f"# {title}", *lines, "", "", ""]))
    paths = []
    for kind in "svg", "png":
        paths.append(os.path.join(folder, f"figure-{figure}.{kind}"))
        run("gnuplot", "-e", f"data = '{data}'; out = '{paths[-1]}'; kind = '{kind}'; titles = '{'|'.join(panels)}'; panels = {len(panels)}",
            os.path.join(HERE, script))
    return paths


def point(place: int, label: str, median: float, least: float, most: float) -> str:
    """A line of data for points.gp."""
    return f"{place} \"{label}\" {median:.3f} {least:.3f} {most:.3f}"
