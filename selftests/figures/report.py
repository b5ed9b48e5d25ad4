# SPDX-License-Identifier: GPL-2.0-or-later
"""The rows of the report, its tables and pictures.  Documentation/figures.rst says how to read them."""

from collections.abc import Callable

import picture
from plan import INFINITE, Run, Value

SLEPT = 0.01		# workers that overslept by more than this share are reported in the table
HEAD = f"{'':<14}{'published':>10}{'simulated':>11}{'same draws':>12}{'measured':>10}{'off':>8}"


def overslept(run: Run, result: dict | None) -> float | None:
    """The share by which workers slept longer than they should, because of other load on the machine; None: not known."""
    if not result or run.window < 0 or not result.get("workers"):
        return None
    return sum(w["think_us"] for w in result["workers"]) / (1000 * run.base_ms * sum(map(sum, run.draws()))) - 1


def row_of(figure: str, value: Value, result: Callable[[Run], dict], failed: dict[Run, str]) -> dict:
    """A value as published, as simulated in a long run and with the draws of the real one, and as measured."""
    def of(outcome):
        return value.of(outcome(value.run), outcome(value.to) if value.to else None)

    found = [result(r) for r in (value.run, value.to) if r]
    missing = [f"failed: {failed[r]}" if r in failed else "not made yet" for r, f in zip((value.run, value.to), found) if not f]
    return {
        "figure": figure, "panel": value.panel, "label": value.label, "workers": value.run.workers, "policy": value.run.policy,
        "window": None if value.run.window < 0 else value.run.window if value.run.window != INFINITE else 1e9,
        "delay": value.run.delay, "iterations": value.run.iterations, "base_ms": value.run.base_ms, "seed": value.run.seed,
        "published": value.published, "simulated": of(lambda r: r.simulate(True)), "same_draws": of(lambda r: r.simulate(False)),
        "measured": None if missing else of(lambda r: result(r)["outcome"]), "failed": missing[0] if missing else None,
        "chosen": found[0].get("policy") if found[0] and value.run.groups == 0 else None,
        "overslept": overslept(value.run, found[0]),
        "load": found[0]["load_before"] if found[0] else None,
    }


def number(x: float | None, width: int) -> str:
    return f"{'-':>{width}}" if x is None else f"{x:{width}.3f}"


def table(rows: list[dict]) -> str:
    lines: list[str] = []
    panel = None
    for r in rows:
        if r["panel"] != panel:
            panel = r["panel"]
            lines += ["", f"{r['figure']}: {panel}", HEAD]
        off = "" if r["measured"] is None else f"{r['measured'] - r['simulated']:+8.3f}"
        lines.append(f"{r['label']:<14}{number(r['published'], 10)}{number(r['simulated'], 11)}{number(r['same_draws'], 12)}"
                     f"{number(r['measured'], 10)}{off}" + (f"  {r['chosen'].split(',')[0]}" if r["chosen"] else "") +
                     (f"  workers slept {r['overslept']:.1%} too long" if (r["overslept"] or 0) > SLEPT else "") +
                     (f"  {r['failed']}" if r["failed"] else ""))
    return "\n".join(lines[1:])


def verdicts(bars: list[dict], quick: bool) -> str:
    lines = ["What must be reached, judged by the worst row" +
             (" (runs as short as these differ by .03 by chance, so do not judge by them)" if quick else "")]
    for b in bars:
        rows = f" ({b['rows']} of {b['rows_wanted']} rows)" if b["verdict"] == "incomplete" else ""
        lines.append(f"{b['bar']:<68} <= {b['most']:<5g}{number(b['value'], 8)}  {b['at'] or '':<12} {b['verdict']}{rows}")
    return "\n".join(lines)


def draw(folder: str, figure: str, rows: list[dict]) -> list[str]:
    """Draws figure-FIGURE.svg and .png, a panel for each kind of value.  Returns their paths."""
    panels: dict[str, list[str]] = {}
    for r in rows:
        of_panel = panels.setdefault(r["panel"], [])
        values = (r["published"], r["simulated"], r["same_draws"], r["measured"])
        of_panel.append(f"{len(of_panel)} \"{r['label']}\" " + " ".join("NaN" if v is None else f"{v:.4f}" for v in values))
    return picture.draw(folder, figure, "plot.gp", panels)
