"""Two drivers, in two processes, on one checkpoint of a topology without state."""

from __future__ import annotations

import itertools
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.spark.processes import ending_with_the_test
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.slow]

TOPOLOGY = """
from stormspark import Fields, TopologyBuilder
from stormspark.testing import IdentityBolt, TestWordSpout

def build():
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("end", IdentityBolt(Fields("word"))).shuffle_grouping("words")
    return builder.create_topology("twice", {"topology.workers": 1})
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    numbers = itertools.count()

    def start(*options: str) -> subprocess.Popen[str]:
        with (tmp_path / f"output-{next(numbers)}").open("wb") as output:
            return runs.start(TOPOLOGY, *options, "--checkpoint", str(tmp_path / "checkpoint"), stdout=output)

    with ending_with_the_test(tmp_path) as runs:
        yield start


def commits(tmp_path: Path) -> int:
    return max(
        (int(file.name) for file in (tmp_path / "checkpoint/spark/commits").glob("[0-9]*")), default=-1
    )


@pytest.mark.long  # CI has the exactly-once case in test_exactly_once.py
def test_the_later_one_goes_on_and_the_first_one_ends_with_an_error(start: Start, tmp_path: Path) -> None:
    first = start()
    wait_for(lambda: commits(tmp_path) > 0)
    second = start()
    wait_for(lambda: first.poll() is not None)
    text = (tmp_path / "output-0").read_text()
    assert first.returncode == 1, text
    assert "twice stopped: FencedError: the checkpoint folder" in text
    assert f"belongs to another driver now: process {second.pid} on " in text
    last = commits(tmp_path)
    wait_for(lambda: commits(tmp_path) > last + 1)
    second.send_signal(signal.SIGTERM)
    told = (tmp_path / "output-1").read_text
    assert second.wait() == 0, told()
    assert f"to which process {first.pid} writes, too" in told()


def test_the_later_one_may_be_refused(start: Start, tmp_path: Path) -> None:
    first = start("-c", "stormspark.checkpoint.in.use=refuse")
    wait_for(lambda: commits(tmp_path) > 0)
    second = start("-c", "stormspark.checkpoint.in.use=refuse")
    assert second.wait() == 2
    assert f"is in use by another driver, process {first.pid} on " in (tmp_path / "output-1").read_text()
    last = commits(tmp_path)
    wait_for(lambda: commits(tmp_path) > last + 1)
    first.send_signal(signal.SIGTERM)
    assert first.wait() == 0
