"""Measures the word count with vectorised components, and bare PySpark beside it.

    python -m benchmarks.vectorised [--engine spark] [--workers 2] [--seconds 20] [--ids batch] [--vs-spark [--rounds 5]]

The topology is that of `benchmarks.word_count`: spouts, split by a shuffle, count by the word; its spout and bolts take batches.
``--ids batch``: each batch that a spout emits is one message; ``--ids row``: each sentence is one, as in the tuple form; ``--ids
none``: nothing is tracked. ``--combine``: the split bolt counts the words of its batch and emits (word, number), which is what
Spark's planner makes of the bare query. ``--vs-spark`` runs both forms of `benchmarks.bare_pyspark` in turn with it and prints
the ratios of each round, by time and by CPU. One JSON line a run, with the keys of `benchmarks.word_count`.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import word_count
from benchmarks.data import sentences
from stormspark import ArrowBolt, ArrowSpout, Fields, TopologyBuilder
from stormspark.api import Topology
from stormspark.config import parse_assignment

__all__ = ["build"]

#: Sentences a batch.
_ROWS = 16384


class Sentences(ArrowSpout):
    """Emits random sentences."""

    def __init__(self, ids: str, rows: int) -> None:
        self.ids, self.rows = ids, rows

    def open(self, conf, context, collector):
        """Make the data."""
        self.collector = collector
        self.sentences = pa.array(sentences())
        self.random = np.random.default_rng(7 + context.this_task_id)
        self.emitted = 0

    def next_batch(self):
        """Emit some thousand sentences."""
        picked = self.random.integers(0, len(self.sentences), self.rows, np.int32)
        batch = pa.record_batch([self.sentences.take(pa.array(picked))], ["item"])
        first = self.emitted
        self.emitted += self.rows
        if self.ids == "batch":
            self.collector.emit_batch(batch, message_id=first)
        elif self.ids == "row":
            self.collector.emit_batch(batch, message_ids=range(first, self.emitted))
        else:
            self.collector.emit_batch(batch)

    def declare_output_fields(self, declarer):
        """One field."""
        declarer.declare(pa.schema({"item": pa.string()}))


class Split(ArrowBolt):
    """Sentences -> words."""

    def execute_batch(self, batch, collector):
        """Emit each word, anchored to its sentence."""
        words = pc.split_pattern(batch["item"], " ")
        out = pa.record_batch([pc.list_flatten(words)], ["item"])
        collector.emit_batch(out, anchors=pc.list_parent_indices(words))

    def declare_output_fields(self, declarer):
        """One field."""
        declarer.declare(pa.schema({"item": pa.string()}))


class Count(ArrowBolt):
    """Counts words; emits nothing, as the peer's."""

    def prepare(self, conf, context):
        """Begin with nothing counted."""
        self.counts: dict[str, int] = {}

    def execute_batch(self, batch, collector):
        """Count the words of a batch."""
        counted = pc.value_counts(batch["item"])
        counts = self.counts
        for word, number in zip(counted.field(0).to_pylist(), counted.field(1).to_pylist(), strict=True):
            counts[word] = counts.get(word, 0) + number


class SplitAndCombine(ArrowBolt):
    """Sentences -> words of the batch, each with how often it is there."""

    def execute_batch(self, batch, collector):
        """Emit each word once."""
        counted = pc.value_counts(pc.list_flatten(pc.split_pattern(batch["item"], " ")))
        collector.emit_batch(pa.record_batch([counted.field(0), counted.field(1)], ["item", "number"]))

    def declare_output_fields(self, declarer):
        """A word, and how often."""
        declarer.declare(pa.schema({"item": pa.string(), "number": pa.int64()}))


class Sum(Count):
    """Adds up the counts of words."""

    words = 0

    def execute_batch(self, batch, collector):
        """Add those of a batch."""
        counts = self.counts
        for word, number in zip(batch["item"].to_pylist(), batch["number"].to_pylist(), strict=True):
            counts[word] = counts.get(word, 0) + number


def build(workers: int, ids: str = "batch", combine: bool = False, rows: int = _ROWS) -> Topology:
    """The topology."""
    builder = TopologyBuilder()
    builder.set_spout("spout", Sentences(ids, rows), workers)
    builder.set_bolt("split", SplitAndCombine() if combine else Split(), workers).shuffle_grouping("spout")
    builder.set_bolt("count", Sum() if combine else Count(), workers).fields_grouping("split", Fields("item"))
    conf = {"topology.acker.executors": 0} if ids == "none" else {}
    return builder.create_topology("vectorised", conf)


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure it once."""
    # The bare queries' batches are about as long.
    conf = {"topology.workers": args.workers, "stormspark.batch.target.ms": 2000}
    conf |= dict(map(parse_assignment, args.conf))
    topology = build(args.workers, args.ids, args.combine, args.rows)
    first, last = word_count.measure_on(args.engine, topology, conf, args.warmup, args.seconds)
    acked = args.ids != "none"
    case = "wordcount_acked" if acked else "wordcount_unacked"
    told = word_count.result(case, args.engine, args.workers, first, last)
    wall = last.at - first.at
    split = [mark.statistics.components["split"] for mark in (first, last)]
    told["sentences_per_s"] = round((split[1].executed - split[0].executed) / wall)
    if args.combine:
        per_sentence = sum(len(line.split(" ")) for line in sentences()) / len(sentences())
        told["words_per_s"] = round(told["sentences_per_s"] * per_sentence)
        told["words_per_cpu_s"] = round(told["words_per_s"] * wall / told["cpu_s"])
    form = f"vectorised, an id a {args.ids}" if acked else "vectorised, no ids"
    return {**told, "form": form + (", combined" if args.combine else "")}


def against_spark(args: argparse.Namespace) -> None:
    """Run the bare queries in turn with it, and print the ratios."""
    from benchmarks import bare_pyspark
    from stormspark.spark import local_session

    spark = local_session(args.workers)
    ratios: dict[str, list[float]] = {form: [] for form in bare_pyspark.FORMS}
    by_cpu: dict[str, list[float]] = {form: [] for form in bare_pyspark.FORMS}
    for _ in range(args.rounds):
        ours = run(args)
        print(json.dumps(ours), flush=True)
        for form in bare_pyspark.FORMS:
            bare = bare_pyspark.run(spark, form, args.workers, args.seconds, args.warmup)
            print(json.dumps(bare), flush=True)
            ratios[form].append(ours["words_per_s"] / bare["words_per_s"])
            by_cpu[form].append(ours["words_per_cpu_s"] / bare["words_per_cpu_s"])
    told = {f"ratio_to_{form}": word_count.spread(values) for form, values in ratios.items()}
    told |= {f"cpu_ratio_to_{form}": word_count.spread(values) for form, values in by_cpu.items()}
    print(json.dumps({"case": ours["form"], "engine": args.engine, **told, "rounds": args.rounds}))


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warmup", type=float, default=10)
    parser.add_argument("--ids", choices=("batch", "row", "none"), default="batch")
    parser.add_argument("--rows", type=int, default=_ROWS, help="sentences a batch")
    parser.add_argument("--combine", action="store_true", help="count the words of a batch before they leave")
    parser.add_argument("--vs-spark", action="store_true", help="run bare PySpark in turn, print the ratios")
    parser.add_argument("--rounds", type=int, default=5, help="with --vs-spark: how often each runs")
    parser.add_argument("-c", dest="conf", action="append", default=[], metavar="KEY=VALUE")
    args = parser.parse_args()
    if args.vs_spark:
        against_spark(args)
    else:
        print(json.dumps(run(args)))


if __name__ == "__main__":
    main()
