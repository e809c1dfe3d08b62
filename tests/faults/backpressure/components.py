"""A spout that emits as fast as it is asked, and a bolt that takes as long as a dial says."""

from __future__ import annotations

import mmap
import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Fields,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
)

__all__ = ["Dial", "Flood", "Slow", "build", "sender_of_record"]

_SECONDS = struct.Struct("d")
_STALLED = -1.0
_LOOK_SECS = 0.01


class Dial:
    """Seconds that an ``execute`` takes, in a file that a test writes and bolts in other processes read, at each tuple."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_SECONDS.pack(0.0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _SECONDS.size)

    def set(self, seconds: float) -> None:
        """From now on an ``execute`` takes so long."""
        _SECONDS.pack_into(self._shared, 0, seconds)

    def stall(self) -> None:
        """From now on it does not return, until `set` is called."""
        self.set(_STALLED)

    def read(self) -> float:
        """Seconds; below zero while it stalls."""
        seconds: float = _SECONDS.unpack_from(self._shared)[0]
        return seconds


class Flood(Spout):
    """Emits (sender, number, payload) whenever it is asked, each with an id. Senders number what they send; a task that begins
    anew is another sender. Payloads are no two the same: so what waits takes memory.
    """

    def __init__(self, payload_bytes: int = 200) -> None:
        self.width = payload_bytes

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector = collector
        self.sender = f"{context.this_task_id}-{os.getpid()}"
        self.sent = 0

    def next_tuple(self) -> None:
        number = self.sent
        self.collector.emit((self.sender, number, str(number).zfill(self.width)), message_id=number)
        self.sent = number + 1

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("sender", "number", "payload"))


class Slow(BasicBolt):
    """Takes its time over each tuple. Raises where a sender's numbers do not come in order (E31).

    It sleeps, as one that waits for a database does: so how fast it can be depends on nobody else's use of the processor, and all
    that is missing is lost by the engine. Where it ``computes`` it uses up so much of the processor's time instead.
    """

    def __init__(self, dial: Path, computes: bool = False) -> None:
        self.path, self.computes = dial, computes

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.dial = Dial(self.path)
        self.last: dict[str, int] = {}

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        sender, number = tup["sender"], tup["number"]
        if number <= self.last.get(sender, -1):
            msg = f"{number} of {sender} came after {self.last[sender]}"
            raise AssertionError(msg)
        self.last[sender] = number
        while (seconds := self.dial.read()) < 0:
            time.sleep(_LOOK_SECS)
        if self.computes:
            until = time.thread_time() + seconds
            while time.thread_time() < until:
                pass
        elif seconds:
            time.sleep(seconds)


def build(
    name: str,
    dial: Path,
    *,
    spouts: int = 1,
    bolts: int = 1,
    payload_bytes: int = 200,
    computes: bool = False,
) -> Topology:
    """``flood`` -> ``slow``: over two workers, one of each lives in one worker each, two of each in both."""
    builder = TopologyBuilder()
    builder.set_spout("flood", Flood(payload_bytes), spouts)
    builder.set_bolt("slow", Slow(dial, computes), bolts).shuffle_grouping("flood")
    return builder.create_topology(name)


def sender_of_record(record: Any) -> tuple[str, int, str]:
    """What `Slow` wants to know of a message of Kafka: each partition is a sender of its own."""
    return f"{record.topic}-{record.partition}", record.offset, str(record.offset).zfill(200)
