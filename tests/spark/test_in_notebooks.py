"""Spark topologies as notebooks use them: ``with`` blocks, cells that are run twice, interrupts, pages, DataFrames."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from stormspark.errors import TopologyAlreadyRunningError
from tests.spark.endless import numbers
from tests.waiting import PATIENCE_SECS, wait_for, wait_for_batches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture
def pysparks_handler(spark) -> Iterator[None]:
    """The handler of SIGINT that PySpark sets where Spark is started."""
    before = signal.getsignal(signal.SIGINT)

    def signal_handler(number, frame):
        spark.sparkContext.cancelAllJobs()
        raise KeyboardInterrupt

    signal_handler.__qualname__ = "SparkContext._do_init.<locals>.signal_handler"
    signal.signal(signal.SIGINT, signal_handler)
    yield
    signal.signal(signal.SIGINT, before)


def users_job(spark: SparkSession, file: str) -> threading.Thread:
    """Start a Spark job that waits for a file."""

    def job() -> None:
        with contextlib.suppress(Exception):
            spark.sparkContext.parallelize([file], 1).foreach(waits_for)

    before = set(spark.sparkContext.statusTracker().getJobIdsForGroup())
    thread = threading.Thread(target=job, daemon=True)
    thread.start()
    wait_for(
        lambda: set(spark.sparkContext.statusTracker().getJobIdsForGroup()) - before,
        message="no job of the user's",
    )
    return thread


def waits_for(file: str) -> None:
    while not os.path.exists(file):
        time.sleep(0.05)


def test_a_cell_that_is_run_twice_and_interrupted(spark, pysparks_handler, tmp_path):
    """One start of a worker for each run is what this costs, so it is one test."""
    from stormspark.spark import running_topologies, submit

    with submit(numbers("twice"), spark) as first:
        wait_for_batches(first, 2)
        with pytest.raises(TopologyAlreadyRunningError, match=r"submit\(\.\.\., replace=True\)"):
            submit(numbers("twice"), spark)
        assert running_topologies() == {"twice": first}
        assert repr(first).startswith("<SparkTopology 'twice' runs (")
        html = first._repr_html_()
        assert "<svg" in html and f"logs: {first.log_folder}" in html
        with submit(numbers("twice"), spark, replace=True) as second:
            assert first.wait(0) and first.error is None
            wait_for_batches(second, 2)
            own = users_job(spark, str(tmp_path / "go on"))
            run = second._now.query_run
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            own.join(PATIENCE_SECS)
            assert not own.is_alive(), "the user's own job is cancelled"
            wait_for_batches(second, 2)
            assert second._now.query_run is run, "no job of the topology is cancelled, so the query goes on"
            (tmp_path / "go on").touch()
    assert second.wait(0) and second.error is None
    final = second.statistics()
    rows = {row.component: row for row in final.to_spark(spark).collect()}
    assert rows["end"].executed == final.components["end"].executed > 0
    assert rows["numbers"].latency_p50_ms == final.components["numbers"].latency.p50
    assert rows["end"].throttled_by is None
    assert "has ended" in repr(second) and "<svg" in second._repr_html_()


PROGRAM = """
    import importlib, os, signal, sys, threading
    sys.path.insert(0, os.environ["TESTS"])
    from stormspark import spark
    from tests.spark.endless import numbers

    def say(text):
        print(text, flush=True)

    def interrupt_soon(method):
        def wrapped(*arguments, **options):
            if not interrupted:
                interrupted.append(True)
                threading.Timer(0.1, signal.raise_signal, [signal.SIGINT]).start()
            return method(*arguments, **options)
        return wrapped

    interrupted = []
    if sys.argv[1] == "submit":
        module, name, method = sys.argv[2].split(":")
        owner = getattr(importlib.import_module(module), name)
        setattr(owner, method, interrupt_soon(getattr(owner, method)))

    try:
        with spark.submit(numbers("interrupted")) as running:
            while running.statistics().batches < 2 and not running.wait(0.1):
                pass
            say("runs")
            running.wait()
    except KeyboardInterrupt:
        say("interrupted")
    if sys.argv[1] == "block":
        say(f"ended {running.wait(0)}, error {running.error}, {running!r}")
    say(f"running: {spark.running_topologies()}")
    if sys.argv[1] == "submit":
        with spark.submit(numbers("interrupted")) as running:
            while running.statistics().batches < 1 and not running.wait(0.1):
                pass
        say(f"the cell is run again: {running.error}")
"""


def program(tmp_path: Path, *arguments: str) -> subprocess.Popen[str]:
    file = tmp_path / "program.py"
    file.write_text(textwrap.dedent(PROGRAM))
    root = str(Path(__file__).parents[2])
    return subprocess.Popen(
        [sys.executable, str(file), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"TESTS": root, "PYTHONPATH": root},
        start_new_session=True,
    )


@pytest.mark.long
def test_an_interrupt_ends_what_the_block_has_started(tmp_path):
    """To the whole group, as Jupyter interrupts a kernel; Spark has been started by `submit`, in the same cell."""
    process = program(tmp_path, "block")
    assert process.stdout is not None
    lines: list[str] = []
    while not lines or lines[-1] != "runs\n":
        lines.append(process.stdout.readline())
        assert lines[-1], "".join(lines)
    os.killpg(process.pid, signal.SIGINT)
    out = process.communicate(timeout=PATIENCE_SECS)[0]
    assert "interrupted: topology interrupted stops at the end of its batch" in out
    assert "ended True, error None" in out
    assert "running: {}" in out
    assert "starts its query again" not in out and "Traceback" not in out
    assert process.returncode == 0


@pytest.mark.long
@pytest.mark.parametrize(
    "begins",
    [
        "stormspark.spark.jvm:_Launch:wait_for_port",
        "pyspark:SparkContext:_initialize_context",
        "pyspark.sql:SparkSession:__init__",
        "stormspark.spark.topology:SparkTopology:_begin",
    ],
)
def test_an_interrupt_of_submit_leaves_nothing(tmp_path, begins):
    """A tenth of a second after the JVM's, the context's, the session's, or the topology's start began. The cell can be run
    again.
    """
    process = program(tmp_path, "submit", begins)
    out = process.communicate(timeout=PATIENCE_SECS)[0]
    assert "interrupted\n" in out, out
    assert "running: {}" in out
    assert "the cell is run again: None" in out, out
    assert process.returncode == 0
