"""What recording inputs for replays costs (``stormspark.record.inputs``).

    python -m benchmarks.replay_recording [--rounds 5] [--seconds 8]

Words to a `StatefulBolt` that counts them and emits each count to a third bolt, in one worker in this process, whose batches are
committed to a state table on disk as on Spark; no Spark, so that nothing hides the cost. With and without in turn, by seconds of
CPU, since the machine may be busy. Prints a JSON line: words a second of each round, the ratios of the rounds, and bytes recorded
a word, which are the inputs of two bolts and the emits of one.
"""

from __future__ import annotations

import argparse
import json
import pickle
import statistics
import tempfile
import time
from pathlib import Path
from random import Random
from typing import Any

from benchmarks.data import heron_words
from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.api.state import StatefulBolt
from stormspark.checkpoint.batch_commits import BatchCommits
from stormspark.plan import plan_topology
from stormspark.worker.core import Worker
from stormspark.worker.round_orders import RoundOrders
from stormspark.worker.state.batch_state import StateAccess
from stormspark.worker.step import Step, WorkerReport


class Words(Spout):
    """Random words, with message ids."""

    def open(self, conf, context, collector):
        """Make the words."""
        self.collector, self.n = collector, 0
        self.words, self.random = heron_words()[:10_000], Random(7).random

    def next_tuple(self):
        """Emit one."""
        self.n += 1
        self.collector.emit((self.words[int(self.random() * len(self.words))],), message_id=self.n)

    def declare_output_fields(self, declarer):
        """The word."""
        declarer.declare(Fields("word"))


class Count(StatefulBolt[Any]):
    """Counts in its state."""

    def prepare(self, conf, context, collector):
        """Keep the collector."""
        self.collector = collector

    def init_state(self, state):
        """Keep the state."""
        self.counts = state

    def execute(self, tup):
        """Count one word, emit its count."""
        word = tup["word"]
        self.counts[word] = count = self.counts.get(word, 0) + 1
        self.collector.emit((word, count), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        """Word and count."""
        declarer.declare(Fields("word", "count"))


class Last(BasicBolt):
    """Looks at what it gets."""

    def execute(self, tup, collector):
        """Read a value."""
        _ = tup["count"]


def run(seconds: float, record: bool) -> tuple[float, float]:
    """Words a second of CPU, and bytes recorded a word."""
    builder = TopologyBuilder()
    builder.set_spout("words", Words())
    builder.set_bolt("count", Count()).fields_grouping("words", Fields("word"))
    builder.set_bolt("last", Last()).shuffle_grouping("count")
    conf = {"stormspark.record.inputs": record, "stormspark.batch.target.ms": 500}
    plan = plan_topology(builder.create_topology("recording"), conf)
    with tempfile.TemporaryDirectory() as folder:
        commits = BatchCommits(plan, folder, 0)
        commits.open(-1)
        worker = Worker(plan, 0, state=StateAccess(folder, 0))
        worker.open()
        batch, words, recorded, began, cpu = 0, 0, 0, time.monotonic(), time.process_time()
        while time.monotonic() < began + seconds:
            words += _batch(worker, commits, batch)
            recorded += _recorded(folder, batch)
            commits.tidy()
            batch += 1
        took = time.process_time() - cpu
        worker.hear_of_last_commit(batch - 1)
        worker.close()
    return words / took, recorded / words


def _batch(worker: Worker, commits: BatchCommits, number: int) -> int:
    """One batch, in as many rounds as it takes; how many words it had."""
    rounds = 0
    before = _executed(worker)
    while True:
        orders = RoundOrders(rounds, committed=number - 1, may_prepare=rounds > 0, asks_spouts=rounds == 0)
        step = Step(number, 0, rounds, orders)
        report: WorkerReport = pickle.loads(worker.run(step, [])[0].payload)
        assert report.transaction is not None and report.transaction.aborts is None, report
        rounds += 1
        if report.transaction.prepared:
            commits.commit(number, [report.transaction.file])
            return _executed(worker) - before


def _executed(worker: Worker) -> int:
    return sum(t.counters.executed for t in worker.tasks.values() if t.component.id == "count")


def _recorded(folder: str, batch: int) -> int:
    return sum(file.stat().st_size for file in Path(folder, "inputs").glob(f"0-{batch}-*"))


def main() -> None:
    """Run both in turn and print the ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=8.0)
    options = parser.parse_args()
    without, recording, size = [], [], 0.0
    for _ in range(options.rounds):
        without.append(run(options.seconds, record=False)[0])
        words, size = run(options.seconds, record=True)
        recording.append(words)
    ratios = sorted(mine / plain for mine, plain in zip(recording, without, strict=True))
    figures = {
        "case": "replay_recording",
        "rounds": options.rounds,
        "ratio": {
            "min": round(ratios[0], 3),
            "median": round(statistics.median(ratios), 3),
            "max": round(ratios[-1], 3),
        },
        "words_without": [round(one) for one in without],
        "words_recording": [round(one) for one in recording],
        "bytes_a_word": round(size, 1),
    }
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
