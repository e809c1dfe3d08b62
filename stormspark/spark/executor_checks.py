"""Checks that ask Spark's executors, for ``stormspark doctor --master``: Python, packages, clock, folders, descriptors.

They share what the preflight of a topology looks at, and its sentences.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from pyspark import SparkContext
from pyspark.sql import SparkSession

from stormspark.checkpoint.shared_folder import SharedFolder
from stormspark.doctor import LEAST, Result, Status, check_descriptors
from stormspark.launcher import is_url
from stormspark.spark.java_errors import in_words
from stormspark.spark.preflight import PACKAGES, explanation, problem_on
from stormspark.spark.preflight_task import look_around

__all__ = ["check_executors"]

#: Clocks that differ by less than this do no harm.
_CLOCK_SECS = 5.0
#: So many tasks look at most. More would find no other host.
_MOST_TASKS = 256
_LEAST_BYTES = 64 << 20
#: Spark gives out its first tasks once it has waited for executors as long as it is told to, and this is for all that comes then.
_STARTS_SECS = 15.0
#: A task only looks around, so it has got stuck if none has begun or ended for this long.
_STUCK_SECS = 300.0
_LOOK_SECS = 0.2
_GROUP = "stormspark: doctor"


def check_executors(
    session: SparkSession, checkpoint: str | None = None, wait_secs: float = 30.0
) -> list[Result]:
    """Look at each executor that Spark gives a task to, and return what was found.

    ``checkpoint`` is a local folder that the executors' hosts have to share, a URL, or None. If no executor has a free core,
    the look ends soon after Spark has waited for executors, which it does for ``wait_secs``.
    """
    context = session.sparkContext
    shared: SharedFolder | None = None
    if checkpoint is not None and not is_url(checkpoint):
        try:
            shared = SharedFolder(Path(os.path.abspath(checkpoint)), "use a URL", as_guest=True)
        except OSError as error:
            return [
                Result(
                    "checkpoint",
                    Status.FAILED,
                    f"{checkpoint} can't be written to ({error.strerror or error})",
                    "name a folder that this user may write to, on all hosts if there are several",
                )
            ]
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
    watched = _Watched(context, tasks, wait_secs + _STARTS_SECS)
    try:
        with watched.until_done():
            found = context.parallelize(range(tasks), tasks).mapPartitions(_task(asked)).collect()
        return results_of(found, began, time.time(), shared)
    except Exception as error:
        if watched.result is not None:
            return [watched.result]
        told = None
        with suppress(Exception):  # py4j asks the JVM for the text, and the JVM may be gone
            told = explanation(str(error), context.pythonExec)
        if told is None:
            return [
                Result(
                    "executors",
                    Status.FAILED,
                    f"Spark could not look at them ({in_words(error)})",
                    "read spark.log in the folder for logs, and the logs of the executors",
                )
            ]
        # What a Python has written may have colons, and the advice has none.
        text, _, advice = told.rpartition(": ")
        return [Result("executors", Status.FAILED, text, advice)]
    finally:
        if shared is not None:
            shared.close()


class _Watched:
    """The Spark job that looks at executors. It is cancelled if nothing goes on, because a job waits for a free core for ever.

    ``starts_secs`` is how long the first of its ``tasks`` may take to start. ``result`` says why the job was cancelled.
    """

    def __init__(self, context: SparkContext, tasks: int, starts_secs: float) -> None:
        self._context, self._tasks, self._starts_secs = context, tasks, starts_secs
        self._done = threading.Event()
        self.result: Result | None = None

    @contextmanager
    def until_done(self) -> Iterator[None]:
        """Watch the job that this thread runs."""
        self._context.setJobGroup(_GROUP, "stormspark: doctor looks at the executors")
        watcher = threading.Thread(target=self._watch, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            self._done.set()
            watcher.join()

    def _watch(self) -> None:
        seen, since = (0, 0), time.monotonic()
        while not self._done.wait(_LOOK_SECS):
            with suppress(Exception):  # if the JVM is gone, the job has ended, too
                now = self._progress()
                if now != seen:
                    seen, since = now, time.monotonic()
                limit = _STUCK_SECS if any(seen) else self._starts_secs
                if time.monotonic() - since > limit:
                    self.result = self._stuck(seen[1], limit) if any(seen) else self._no_core(limit)
                    self._context.cancelJobGroup(_GROUP)

    def _progress(self) -> tuple[int, int]:
        """Return how many tasks run, and how many have ended."""
        tracker = self._context.statusTracker()
        jobs = filter(None, map(tracker.getJobInfo, tracker.getJobIdsForGroup(_GROUP)))
        stages = [tracker.getStageInfo(stage) for job in jobs for stage in job.stageIds]
        there = [stage for stage in stages if stage is not None]
        ended = sum(stage.numCompletedTasks + stage.numFailedTasks for stage in there)
        return sum(stage.numActiveTasks for stage in there), ended

    def _no_core(self, secs: float) -> Result:
        return Result(
            "executors",
            Status.FAILED,
            f"no executor had a free core within {secs:.0f} s",
            "start executors, or end what runs on theirs; if they only come later, set stormspark.executors.wait.secs",
        )

    def _stuck(self, ended: int, secs: float) -> Result:
        return Result(
            "executors",
            Status.FAILED,
            f"{ended} of {self._tasks} tasks have ended, and for {secs:.0f} s no other one",
            "look at the logs of the executors for what keeps Python from starting there",
        )


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
