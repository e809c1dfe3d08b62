"""Checks that ask Spark's executors, for ``stormspark doctor --master``: Python, packages, clock, folders, descriptors.

They share what the preflight of a topology looks at, and its sentences.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from stormspark.checkpoint.shared_folder import SharedFolder
from stormspark.doctor import LEAST, Result, Status, check_descriptors
from stormspark.spark.preflight import PACKAGES, explanation, problem_on
from stormspark.spark.preflight_task import look_around

__all__ = ["check_executors"]

#: Clocks that differ by less than this do no harm.
_CLOCK_SECS = 5.0
#: So many tasks look at most. More would find no other host.
_MOST_TASKS = 256
_LEAST_BYTES = 64 << 20


def check_executors(session: SparkSession, checkpoint: str | None = None) -> list[Result]:
    """Look at each executor that Spark gives a task to, and return what was found.

    ``checkpoint`` is a local folder that the executors' hosts have to share, or None.
    """
    context = session.sparkContext
    shared = (
        None if checkpoint is None or "://" in checkpoint else SharedFolder(Path(checkpoint), "use a URL")
    )
    asked: dict[str, Any] = {
        "version": str(sys.modules["stormspark"].__version__),
        "packages": PACKAGES,
        "least": {name: LEAST[name] for name in PACKAGES},
        "modules": [],
        "path": [],
        "driver": None,
        "place": None if shared is None else shared.place,
    }
    tasks = min(max(context.defaultParallelism, 1), _MOST_TASKS)
    began = time.time()
    try:
        found = context.parallelize(range(tasks), tasks).mapPartitions(_task(asked)).collect()
        return results_of(found, began, time.time(), shared)
    except Exception as error:
        told = explanation(str(error), context.pythonExec)
        if told is None:
            raise
        text, _, advice = told.partition(": ")
        return [Result("executors", Status.FAILED, text, advice)]
    finally:
        if shared is not None:
            shared.close()


def results_of(
    found: Iterable[Mapping[str, Any]], began: float, ended: float, shared: SharedFolder | None
) -> list[Result]:
    """Return the results for what tasks have ``found`` that ran between these times of the driver's clock."""
    results: list[Result] = []
    hosts: dict[str, Mapping[str, Any]] = {}
    for one in found:
        host = one["host"]
        hosts[f"{host} ({one['python']}, Python {one['python_version']})"] = one
        if (problem := problem_on(one, None)) is not None:
            text, _, advice = problem.partition(": ")
            results.append(Result("executors", Status.FAILED, text, advice))
        off = max(began - one["time"], one["time"] - ended, 0.0)
        where = "ahead of" if one["time"] > ended else "behind"
        if off > _CLOCK_SECS:
            results.append(
                Result(
                    "clocks",
                    Status.WARNING,
                    f"the clock of host {host} is {off:,.0f} s {where} the driver's, so "
                    f"windows, timeouts and the times in logs do not agree",
                    "let both hosts follow the same time server (chrony, systemd-timesyncd)",
                )
            )
        if one["temporary"]:
            results.append(
                Result(
                    "executors' disk",
                    Status.FAILED,
                    f"the temporary folder of host {host} can't be used ({one['temporary']})",
                    "free some space there, or set TMPDIR (spark.executorEnv.TMPDIR) to another folder",
                )
            )
        limits = check_descriptors(tuple(one["descriptors"]))
        if limits.status is not Status.OK:
            results.append(
                Result("executors' descriptors", limits.status, f"host {host}: {limits.found}", limits.advice)
            )
        if shared is not None:
            problem = shared.problem_with(one["seen"]) if one["seen"] else one["unseen"]
            if problem is not None:
                text, _, advice = str(shared.error(f"an executor on host {host}", problem)).rpartition(". ")
                results.append(Result("checkpoint", Status.FAILED, text, advice))
    unique = list(dict.fromkeys(results))
    if any(one.status is Status.FAILED and one.check == "executors" for one in unique):
        return unique
    return [Result("executors", Status.OK, "; ".join(hosts)), *unique]


def _task(asked: Mapping[str, Any]) -> Callable[[Iterable[int]], list[dict[str, Any]]]:
    look = look_around()
    least = _LEAST_BYTES

    def run(rows: Iterable[int]) -> list[dict[str, Any]]:
        # Executors may have no stormspark, so this function is pickled as code, and imports only what Python has.
        import os
        import resource
        import secrets
        import shutil
        import tempfile
        import time

        told = []
        for _ in rows:
            found = look(asked)
            found |= {"time": time.time(), "temporary": "", "seen": "", "unseen": ""}
            found["descriptors"] = resource.getrlimit(resource.RLIMIT_NOFILE)
            try:
                with tempfile.NamedTemporaryFile() as file:
                    file.write(b"?" * 4096)
                    file.flush()
                    free = shutil.disk_usage(file.name).free
                if free < least:
                    found["temporary"] = f"{free >> 20} MB free"
            except OSError as error:
                found["temporary"] = str(error)
            if asked["place"] is not None:
                try:
                    with open(os.path.join(asked["place"], "token"), encoding="utf-8") as file:
                        token = file.read()
                    name = secrets.token_hex(16)
                    with open(os.path.join(asked["place"], name), "w", encoding="utf-8") as file:
                        file.write(token)
                    found["seen"] = name
                except OSError as error:
                    found["unseen"] = str(error)
            told.append(found)
        return told

    return run
