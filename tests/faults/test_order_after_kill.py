"""kill -9 of a worker does not mix up what the others send each other, nor what its successor sends."""

from __future__ import annotations

import os
import signal
from collections import defaultdict
from pathlib import Path

import pytest

from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from tests.spark.topologies import FOLDER
from tests.waiting import wait_for, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults]

#: A life of a task: its id, and the process that it lived in.
Life = tuple[int, int]


class Numbered(Spout):
    """Sends (task, process, number) for ever, on two streams in turn."""

    def open(self, conf, context, collector):
        self.collector, self.task, self.number = collector, context.this_task_id, 0

    def next_tuple(self):
        stream = "even" if self.number % 2 == 0 else "odd"
        self.collector.emit((self.task, os.getpid(), self.number), stream=stream, message_id=self.number)
        self.number += 1

    def declare_output_fields(self, declarer):
        for stream in ("even", "odd"):
            declarer.declare_stream(stream, Fields("task", "process", "number"))


class Note(BasicBolt):
    """Appends what it sees to a file of its process, at once."""

    def prepare(self, conf, context):
        self.path = Path(conf[FOLDER], f"seen-{context.this_task_id}-{os.getpid()}")

    def execute(self, tup, collector):
        with self.path.open("a") as file:
            file.write(f"{tup['task']} {tup['process']} {tup['number']}\n")


def seen_by(path: Path) -> dict[Life, list[int]]:
    """What one life of a bolt saw of each life of a spout; a line that a kill cut short is left out."""
    numbers: dict[Life, list[int]] = defaultdict(list)
    for line in path.read_text().split("\n")[:-1]:
        task, process, number = map(int, line.split())
        numbers[task, process].append(number)
    return numbers


def all_seen(folder: Path) -> dict[Life, dict[Life, list[int]]]:
    """What each life of a bolt saw."""
    paths = [(path, path.name.split("-")) for path in folder.glob("seen-*")]
    return {(int(task), int(process)): seen_by(path) for path, (_, task, process) in paths}


def test_what_goes_on_after_a_kill_is_in_order(start, tmp_path):
    """E31, E16: between two that live on, from and to the new worker; numbers may be missing, none comes twice."""
    builder = TopologyBuilder()
    builder.set_spout("numbered", Numbered(), 2)
    note = builder.set_bolt("note", Note(), 2)
    note.shuffle_grouping("numbered", "even").fields_grouping("numbered", Fields("number"), "odd")
    # The pending limit makes many small batches; the deadline leaves something over from one to the next.
    conf = {
        "topology.workers": 2,
        "topology.max.spout.pending": 200,
        "stormspark.superstep.deadline.ms": 10,
        FOLDER: str(tmp_path),
    }
    running = start(builder.create_topology("ordered"), conf=conf)
    try:
        wait_for(lambda: pairs(all_seen(tmp_path)) >= 4, message="each bolt to hear of each spout")
        processes = {worker: process.pid for worker, process in worker_processes("ordered").items()}
        survivor, victim = processes[0], processes[1]
        before = all_seen(tmp_path)
        os.kill(victim, signal.SIGKILL)

        def all_go_on() -> bool:
            """All pairs of the survivor and of the new worker have been heard of since."""
            now = all_seen(tmp_path)
            grown = [
                (receiver, sender)
                for receiver, senders in now.items()
                for sender, numbers in senders.items()
                if victim not in (receiver[1], sender[1])
                and len(numbers) > len(before.get(receiver, {}).get(sender, ())) + 200
            ]
            return len(grown) == 4

        wait_for(all_go_on, message="numbers between all that live")
    finally:
        running.stop()
    assert running.error is None
    seen = all_seen(tmp_path)
    assert {process for _, process in seen} > {survivor, victim}, "a new worker has taken part"
    for senders in seen.values():
        for numbers in senders.values():
            assert numbers == sorted(set(numbers))


def pairs(seen: dict[Life, dict[Life, list[int]]]) -> int:
    """How many pairs of a sender and a receiver have had something to do with each other."""
    return sum(map(len, seen.values()))
