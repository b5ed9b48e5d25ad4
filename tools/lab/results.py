# SPDX-License-Identifier: GPL-2.0-or-later
"""What results say of the machine, and how they are written."""

import json
import os
import platform
import time


def machine() -> dict:
    """What results say of the machine: kernel, processors, load average of the last minute, date (UTC)."""
    model = "unknown"
    with open("/proc/cpuinfo", encoding="utf-8") as f:
        for line in f:
            if line.startswith("model name"):
                model = line.split(":", 1)[1].strip()
                break
    with open("/proc/loadavg", encoding="ascii") as f:
        load = float(f.read().split()[0])
    return {"kernel": platform.release(), "cpus": os.cpu_count(), "model": model, "load_before": load,
            "date": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}


def write_json(path: str, what: dict) -> None:
    """Replaces the file at once, so that an interrupted write leaves the old one."""
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(what, f, indent=1)
        f.write("\n")
    os.replace(path + ".new", path)
