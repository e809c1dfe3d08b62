"""Waiting for what must come, with a deadline; a test that waits in vain says what it saw last."""

from __future__ import annotations

import contextlib
import os
import subprocess
import time
from collections.abc import Callable, Iterable
from typing import TypeVar

import psutil
import pytest

from stormspark.engine import RunningTopology
from stormspark.errors import TopologyNotAliveError
from stormspark.metrics import Quiet
from stormspark.operations.registry import Entry, entries

_T = TypeVar("_T")
#: No test waits this long for what comes. On a machine that loses most of its time to others, for minutes, it may take a minute
#: until a driver is up, and what a test shows is not how fast the machine is. But a run with some failures has to end, too.
PATIENCE_SECS = float(os.environ.get("PATIENCE_SECS", "300"))
#: The variable in the environment of all processes that tests start. It names the process that runs the tests, by its temporary
#: folder: another one may run the same tests beside it, in the same run or in another one.
STARTED_BY = "STORMSPARK_TESTS_STARTED_BY"


def wait_for(
    what: Callable[[], _T], timeout: float = PATIENCE_SECS, message: str | Callable[[], str] = ""
) -> _T:
    """Ask until the answer is true, and return it. A message that is called says how things are at the end.

    What comes soon is asked for often: the pauses grow from a millisecond to 50.
    """
    deadline = time.monotonic() + timeout
    pause = 0.001
    while True:
        answer = what()
        if answer:
            return answer
        assert time.monotonic() < deadline, (
            f"waited {timeout} s in vain: {(message() if callable(message) else message) or what}, last answer {answer!r}"
        )
        time.sleep(pause)
        pause = min(1.5 * pause, 0.05)


def wait_until_idle(running: RunningTopology, timeout: float = PATIENCE_SECS) -> None:
    """Wait until nothing is left open, and two batches more have ended in which nothing happened."""
    quiet = Quiet()

    def idle() -> bool:
        assert not running.wait(0), f"the topology ended: {running.error}"
        return quiet.reached(running.statistics())

    wait_for(idle, timeout, "the topology to be idle")


def wait_for_acks(running: RunningTopology, spout: str, acks: int, timeout: float = PATIENCE_SECS) -> None:
    """Wait until a spout has so many acks. A topology that ends with an error meanwhile is a failure."""

    def acked() -> bool:
        assert running.error is None, running.error
        return running.statistics().components[spout].acked >= acks

    wait_for(acked, timeout, f"{acks} acks of {spout}")


def wait_for_batches(running: RunningTopology, more: int, timeout: float = PATIENCE_SECS) -> None:
    """Wait until so many more batches have ended."""
    wanted = running.statistics().batches + more

    def ended() -> bool:
        assert not running.wait(0), f"the topology ended: {running.error}"
        return running.statistics().batches >= wanted

    wait_for(ended, timeout, f"{more} more batches")


def worker_processes(topology: str) -> dict[int, psutil.Process]:
    """The worker processes of a topology that these tests have started, by worker: of another process that runs tests beside
    this one there may be some of the same name.
    """
    found = {}
    for process in psutil.process_iter(["cmdline"]):
        words = process.info["cmdline"] or []
        # A line that is read while its process becomes the watchman has words of both programs, and other last ones.
        if words[-3:-1] == ["stormspark.worker", topology] and _is_of_these_tests(process):
            found[int(words[-1])] = process
    return found


def entry_of_driver(topology: str, pid: int) -> Entry:
    """The driver in the registry that these tests have started: tests that run beside them may have one of the same name.

    Raises `TopologyNotAliveError` if it is not there yet, or no longer.
    """
    for one in entries():
        if (one.topology, one.pid) == (topology, pid):
            return one
    msg = f"process {pid} has entered no topology {topology!r}"
    raise TopologyNotAliveError(msg)


def _is_of_these_tests(process: psutil.Process) -> bool:
    try:
        environment = process.environ()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return False
    return environment.get(STARTED_BY) == os.environ.get(STARTED_BY)


def executor_processes(parent: psutil.Process) -> list[psutil.Process]:
    """The JVMs of Spark's executors below a driver or a standalone worker, the oldest first."""
    found = []
    for process in parent.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            if "org.apache.spark.executor.CoarseGrainedExecutorBackend" in process.cmdline():
                found.append((process.create_time(), process.pid, process))
    return [process for *_, process in sorted(found, key=lambda one: one[:2])]


def kill_all_of(topology: str, driver: subprocess.Popen[bytes]) -> None:
    """Kill the driver, its children, and the topology's workers, whatever of it still runs."""
    left = [*worker_processes(topology).values()]
    if driver.poll() is None:
        process = psutil.Process(driver.pid)
        left += [*process.children(recursive=True), process]
    for one in left:
        with contextlib.suppress(psutil.NoSuchProcess):  # it may end while the others are killed
            one.kill()
    driver.wait()


def wait_until_gone(processes: Iterable[psutil.Process], timeout: float = PATIENCE_SECS) -> None:
    """Wait until none of the processes runs any more; a zombie does not run."""

    left = list(processes)

    def gone() -> bool:
        left[:] = [process for process in left if _runs(process)]
        return not left

    try:
        wait_for(gone, timeout)
    except AssertionError:
        pytest.fail(f"after {timeout} s these still run: {left}")


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
