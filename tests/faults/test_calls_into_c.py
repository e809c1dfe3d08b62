"""Calls that leave Python on an executor's thread: forks, and functions in C that keep the interpreter's lock (A16)."""

from __future__ import annotations

import ctypes
import logging
import multiprocessing
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import Bolt, TopologyBuilder
from stormspark.spark import SparkTopology
from tests.conformance.components import EFFECTS, Effects, Numbers, acked, read_effects
from tests.waiting import wait_for, wait_until_idle

pytestmark = [pytest.mark.spark, pytest.mark.faults]
TOTAL, EXECUTORS = 40, 8
FORKS = multiprocessing.get_context("fork")
#: For how long a function in C keeps the interpreter's lock, or lets go of it.
SECS = 3


def _send(sender: Any, number: int) -> None:
    sender.send(number)


def _wait_for_ever() -> None:
    signal.pause()


class CallsC(Bolt):
    """Calls a function in C with two of its tuples."""

    waits = True

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.effects.write("prepared", os.getpid())

    def execute(self, tup: Any) -> None:
        self.effects.write("executes", tup["n"])
        if tup["n"] == 0:
            ctypes.PyDLL(None).sleep(SECS)  # keeps the lock, so that nothing else in this worker runs
        elif tup["n"] == 1:
            # For longer, because both calls may be in the same worker, which says nothing before the first one has returned.
            ctypes.CDLL(None).sleep(2 * SECS)
        self.collector.ack(tup)


class Forks(Bolt):
    """Starts other processes, in each of the ways that Python has, and writes down who does it."""

    waits = True

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.fork(0)
        # The child must be there before another thread starts a program. `subprocess` waits for the end of a pipe, and the
        # child would keep the pipe open if it was forked while the pipe is there.
        if context.this_task_index == 0 and not self.effects.read():
            self.keep_a_child()
        self.effects.write("prepared", os.getpid())

    def execute(self, tup: Any) -> None:
        number = tup["n"]
        self.effects.write("executes", number)
        ways = [self.fork, self.fork_with_python, self.start_a_program]
        ways[number % 3](number)
        self.collector.ack(tup)

    def fork(self, number: int) -> None:
        """Fork, and end the new process at once."""
        child = os.fork()
        if not child:
            os._exit(3)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3

    def fork_with_python(self, number: int) -> None:
        """Let a process that is forked compute something."""
        receiver, sender = FORKS.Pipe()
        child = FORKS.Process(target=_send, args=(sender, number))
        child.start()
        assert receiver.recv() == number
        child.join()

    def start_a_program(self, number: int) -> None:
        """Start another program."""
        subprocess.run(["true"], check=True)

    def keep_a_child(self) -> None:
        """Leave a process behind."""
        child = FORKS.Process(target=_wait_for_ever, daemon=True)
        child.start()
        self.effects.write("keeps", child.pid, os.getpid())


def _topology(name: str, bolt: Bolt, folder: Path, lease_secs: float) -> tuple[Any, dict[str, Any]]:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(TOTAL, replays=5))
    builder.set_bolt("bolt", bolt, EXECUTORS).shuffle_grouping("numbers")
    conf = {
        "topology.workers": 2,
        # Otherwise all tuples stay in the worker of the spout, until that has too many (D6).
        "topology.disable.loadaware.messaging": True,
        "stormspark.stuck.warning.secs": 1,
        "stormspark.worker.lease.secs": lease_secs,
        EFFECTS: str(folder),
    }
    return builder.create_topology(name), conf


def _written(folder: Path, what: str) -> list[list[Any]]:
    return [values for kind, *values in read_effects(folder, "bolt") if kind == what]


def _check_that_each_was_executed_once(folder: Path) -> None:
    assert acked(read_effects(folder, "numbers")) == dict.fromkeys(range(TOTAL), 1)
    assert Counter(number for (number,) in _written(folder, "executes")) == Counter(range(TOTAL))
    assert len(_written(folder, "prepared")) == EXECUTORS


def test_a_function_in_c_that_keeps_the_lock_makes_no_worker_look_dead(
    start: Callable[..., SparkTopology], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """B1: the driver's log names the call when the worker can speak again."""
    topology, conf = _topology("calls-c", CallsC(), tmp_path, lease_secs=15)
    with caplog.at_level(logging.WARNING):
        running = start(topology, conf=conf)
        wait_until_idle(running)
        running.stop()
    assert running.error is None
    _check_that_each_was_executed_once(tmp_path)
    assert re.search(r"(execute|the code) of bolt\[", caplog.text)  # it may just have returned


def test_a_child_answers_for_nobody_and_hides_no_death_of_its_worker(
    start: Callable[..., SparkTopology], tmp_path: Path
) -> None:
    """E15: a worker that is killed is missed at once, although its child lives on."""
    # Only the end of its connection tells of a worker's death, because nobody waits as long as the lease.
    topology, conf = _topology("forks", Forks(), tmp_path, lease_secs=36_000)
    kept: list[list[int]] = []
    try:
        running = start(topology, conf=conf)
        wait_until_idle(running)
        _check_that_each_was_executed_once(tmp_path)
        ((child, worker),) = kept = _written(tmp_path, "keeps")
        os.kill(worker, signal.SIGKILL)
        wait_for(lambda: len(_written(tmp_path, "prepared")) > EXECUTORS, message="a new worker")
        os.kill(child, 0)  # it lives on
        running.stop()
        assert running.error is None
    finally:
        for child, _ in kept:
            os.kill(child, signal.SIGKILL)
