"""A thread of a bolt may ack a tuple at any time, also in the moment in which ``execute`` returns."""

from __future__ import annotations

import sys
from pathlib import Path
from threading import Thread
from types import FrameType
from typing import Any

from stormspark import Bolt, TopologyBuilder, Tuple
from stormspark.worker.executors import bolt_runner
from tests.unit.worker.executors.runs import Numbers, Told, running, tasks, until

#: The executor's thread runs at least as many lines between two calls of ``execute``.
_TUPLES = 30
_FOLDER = str(Path(bolt_runner.__file__).parent)


class _AcksLater(Bolt):
    """A thread acks the first tuple before the first line that the executor's thread runs after ``execute``, the second tuple
    before the second line, and so on.
    """

    waits = True

    def __init__(self, told: Told) -> None:
        self.told = told

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        lines = len(self.told.all)
        self.told(tup)
        frame = sys._getframe().f_back

        def trace(frame: FrameType, event: str, arg: Any) -> Any:
            nonlocal lines
            if not frame.f_code.co_filename.startswith(_FOLDER):
                return None
            if event == "line":
                lines -= 1
                if lines < 0:
                    sys.settrace(None)
                    acks = Thread(target=self.collector.ack, args=(tup,))
                    acks.start()
                    acks.join()
                    return None
            return trace

        while frame is not None:
            frame.f_trace = trace
            frame = frame.f_back
        sys.settrace(trace)

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def _topology(bolt: Bolt, told: Told) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Numbers(list(range(_TUPLES)), told))
    builder.set_bolt("bolt", bolt).shuffle_grouping("numbers")
    return builder.create_topology("acks-in-threads")


def test_an_ack_by_a_thread_counts_wherever_execute_is_then() -> None:
    """The executor's thread must not overwrite it, and a second ack changes nothing (E14, W26)."""
    got, told = Told("got"), Told("told")
    with running(_topology(_AcksLater(got), told)) as topology:
        until(lambda: len(told.all) == _TUPLES)
        (bolt,) = tasks(topology, "bolt")
        until(lambda: not bolt.calls_under_way)
        assert {verdict for verdict, *_ in told.all} == {"ack"}
        assert not bolt.held()
        for (tup,) in got.all:
            bolt.bolt.collector.ack(tup)
        until(lambda: topology.statistics().components["bolt"].errors == _TUPLES)
        assert topology.statistics().components["bolt"].acked == _TUPLES
