"""Counts the cores that processes can use, without asking Spark: the cores of this host, or those that a Spark master names."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormspark.launcher import spark_launcher

__all__ = ["cores_of_master", "host_cores", "slots"]

_CONTROL_GROUPS = Path("/sys/fs/cgroup")


def host_cores(control_groups: Path = _CONTROL_GROUPS) -> int:
    """Return how many cores of this host the process can use. Its CPU affinity and its container's quota may limit them.

    A quota of one and a half cores counts as two, as in Java. ``control_groups`` is the folder with Linux's control groups.

    >>> 1 <= host_cores() <= os.cpu_count()
    True
    """
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(control_groups)
    return cores if quota is None else max(1, min(cores, math.ceil(quota)))


def cores_of_master(master: str | None, conf: Mapping[str, Any], on_host: int | None = None) -> int | None:
    """Return how many tasks Spark would run at once on ``master``, or None if only the running cluster knows.

    ``master`` is None if stormspark makes a local session for the topology. That session uses all cores of the host. If somebody
    else has started Spark for this process, only the running cluster knows.
    ``spark.master`` in ``conf`` overrides ``master``, as it does in `stormspark.spark.local_session`. ``on_host`` is the number
    of cores of this host. By default they are counted.

    >>> [cores_of_master(master, {}, on_host=8) for master in (None, "local", "local[2,4]", "local[*]", "yarn")]
    [8, 1, 2, 8, None]
    >>> cores_of_master("local-cluster[2,3,1024]", {}), cores_of_master("yarn", {"spark.master": "local[5]"})
    (6, 5)
    """
    master = conf.get("spark.master") or master
    if master is None and spark_launcher() is not None:
        return None
    if master is not None and (cluster := re.match(r"local-cluster\[\s*(\d+)\s*,\s*(\d+)", master)):
        return int(cluster[1]) * slots(int(cluster[2]), conf)
    local = re.match(r"local(\[\s*(\d+|\*)|$)", master or "local[*]")
    if local is None:
        return None
    threads = "1" if local[2] is None else local[2]
    cores = int(threads) if threads != "*" else on_host if on_host is not None else host_cores()
    return slots(cores, conf)


def slots(cores: int, conf: Mapping[str, Any]) -> int:
    """Return how many tasks Spark runs at once on ``cores`` cores of one Spark executor. Each task takes ``spark.task.cpus``
    cores.

    >>> slots(8, {}), slots(8, {"spark.task.cpus": "3"})
    (8, 2)
    """
    each = str(conf.get("spark.task.cpus") or 1)
    return max(1, cores // max(1, int(each))) if each.isdecimal() else max(1, cores)


def _quota(control_groups: Path) -> float | None:
    """Return the container's quota in cores; None if there is no quota. Reads version 2 or 1 of Linux's control groups."""
    for files in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        try:
            words = " ".join((control_groups / file).read_text() for file in files).split()
            quota, period = (int(word) for word in words)
        except (OSError, ValueError):  # there is no such file, or it says "max"
            continue
        return quota / period if quota > 0 and period > 0 else None
    return None
