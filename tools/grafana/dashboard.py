#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints the dashboard for Grafana, made of the table of panels.  Documentation/monitoring.rst lists the metrics."""

import json
from typing import NamedTuple

PROMETHEUS = {"type": "prometheus", "uid": "${source}"}
JOBS = "label_values(saina_job_info, saina_job)"
HEIGHT, WIDTH = 8, 24		# of a panel, of the page: two panels side by side
WORKER = "{{saina_job}} worker {{worker}}"


def of(metric: str) -> str:
    """The metric, of the jobs that are chosen on the dashboard."""
    return metric + '{saina_job=~"$job"}'


def rate(metric: str) -> str:
    return f"rate({metric}[$__rate_interval])"


def quantile(q: float) -> str:
    buckets = rate(of("saina_worker_lateness_seconds_bucket"))
    return f"histogram_quantile({q}, sum by (saina_job, worker, le) ({buckets}))"


LATE, IN_TIME = rate(of("saina_worker_late_total")), rate(of("saina_worker_in_time_total"))
STACKED = {"fillOpacity": 40, "stacking": {"mode": "normal", "group": "A"}}


class Panel(NamedTuple):
    """A panel of the dashboard.

    unit: as Grafana names it
    lines: {legend: expression}, one or two
    description: what the title does not say
    custom: how lines are drawn
    """

    title: str
    unit: str
    lines: dict[str, str]
    description: str = ""
    custom: dict = {"fillOpacity": 10}


PANELS = (
    Panel("Rounds per second", "short", {"{{saina_job}}": rate(of("saina_job_rounds_total"))}),
    Panel("Goodput", "bps", {"{{saina_job}}": "8 * " + rate(of("saina_job_result_bytes_total"))},
          "Payload of the sums, each counted once"),
    Panel("Worker that the others wait for", "percentunit",
          {WORKER: rate(of("saina_worker_completed_total")) + " / on(instance, saina_job) group_left "
                   + rate(of("saina_job_results_total"))},
          "Share of the sums that this worker's gradient completed: it was the last of those that the sum waited for", STACKED),
    Panel("Share of late gradients", "percentunit", {WORKER: f"{LATE} / ({LATE} + {IN_TIME})"},
          "Gradients that arrived, or would have arrived, after their sum was complete"),
    Panel("k", "short", {"{{saina_job}} k": of("saina_job_k"), "{{saina_job}} workers alive": of("saina_job_alive_workers")}),
    Panel("Share of signs that flip (SFCD)", "percentunit", {"{{saina_job}}": of("saina_job_sign_flips_ratio")}),
    Panel("Age of the open round", "s", {"{{saina_job}}": of("saina_job_round_age_seconds")}),
    Panel("Time since the last message of each worker", "s",
          {WORKER: of("saina_worker_silent_seconds")
                   + ' and on(instance, saina_job, worker) saina_worker_state{state=~"alive|slow"} == 1'}),
    Panel("Results sent again and pulled, per second", "short",
          {"{{saina_job}} {{worker}} resent": rate(of("saina_worker_results_resent_total")),
           "{{saina_job}} {{worker}} pulled": rate(of("saina_worker_results_pulled_total"))}),
    Panel("Share of gradients sent again, as reported by the workers", "percentunit",
          {WORKER: rate(of("saina_worker_gradients_resent_total")) + " / " + rate(of("saina_worker_gradients_sent_total"))}),
    Panel("Round-trip time, as reported by the workers", "s", {WORKER: of("saina_worker_rtt_seconds")}),
    Panel("Drops per second, by reason", "short",
          {"{{saina_job}} {{reason}}": f"sum by (saina_job, reason) ({rate(of('saina_worker_drops_total'))})",
           "{{reason}}": rate("saina_data_path_drops_total")}),
    Panel("Workers whose results take the slow path", "short", {"{{port}}": "sum by (port) (saina_port_relayed_workers)"}),
    Panel("Injected faults", "short", {"{{port}} {{direction}} loss": "saina_port_injected_loss_ratio > 0"}),
    Panel("Memory of the jobs", "bytes", {"used": "saina_jobs_memory_bytes", "limit": "saina_jobs_memory_limit_bytes"}),
    Panel("Share of time in which sainad was not scheduled", "percentunit", {"share": rate("saina_agent_held_up_seconds_total")}),
    Panel("Lateness of workers: median and 99 %", "s", {WORKER + " median": quantile(0.5), WORKER + " 99 %": quantile(0.99)}),
)


def place(number: int, panel: Panel) -> dict:
    width = WIDTH if number == len(PANELS) - 1 and number % 2 == 0 else WIDTH // 2
    placed = {
        "id": number + 1, "title": panel.title, "type": "timeseries", "datasource": PROMETHEUS,
        "gridPos": {"x": number % 2 * WIDTH // 2, "y": number // 2 * HEIGHT, "w": width, "h": HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel.unit, "custom": panel.custom}, "overrides": []},
        "targets": [{"refId": ref, "expr": expr, "legendFormat": legend} for ref, (legend, expr) in zip("AB", panel.lines.items())],
    }
    return {**placed, "description": panel.description} if panel.description else placed


print(json.dumps({
    "title": "SAINA", "uid": "saina", "tags": ["saina"], "schemaVersion": 37, "version": 1, "refresh": "5s",
    "time": {"from": "now-15m", "to": "now"},
    "templating": {"list": [
        {"name": "source", "type": "datasource", "query": "prometheus", "label": "Data source"},
        {"name": "job", "type": "query", "label": "Job", "datasource": PROMETHEUS,
         "query": {"query": JOBS, "refId": "job"}, "definition": JOBS, "includeAll": True, "multi": True, "refresh": 2,
         "current": {"text": "All", "value": "$__all"}},
    ]},
    "panels": [place(*numbered) for numbered in enumerate(PANELS)],
}, indent=1))
