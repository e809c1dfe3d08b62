"""The fixed costs that a cluster multiplies: of a Spark task, a block between two partitions, a frame, a report.

    python -m benchmarks.cluster_costs [--tasks 8 32 128 512] [--rounds 5] [--write]

docs/scale.md works out from these which resource ends first. *Spark*: a job of two stages of n tasks each with a shuffle
between them, nothing in it, on local[2]: n tasks a stage and n x n blocks. The least CPU of the JVM over all rounds is
fitted by a + b (2 n) + c n^2, where none may be below zero; so b, of a task, has both the driver's share and the
executor's. *Frames*: sealing and unpacking a frame of one tuple. *Reports*: unpickling one, in the driver. Prints one
JSON line, and what it comes to with 10, 100 and 1,000 workers; ``--write`` puts that into docs/scale.md.
"""

from __future__ import annotations

import argparse
import json
import pickle
import time
from collections.abc import Callable
from random import Random
from typing import Any

import numpy as np

from benchmarks import scale_cases
from benchmarks.cpu import CpuMeter, busy_cores, machine
from benchmarks.document import write_between
from benchmarks.places import ROOT
from stormspark.plan.partitions import partitions_for

_CALLS = 300
_DOCUMENT = ROOT / "docs" / "scale.md"
_BEGIN, _END = "<!-- costs: python -m benchmarks.cluster_costs --write -->", "<!-- end of costs -->"
#: Of the word count: shuffle, fields, and acks home; and for how many workers it is worked out.
_EXCHANGES, _WORKERS = 3, (10, 100, 1_000)
#: Up to so many partitions Spark writes a file for each pair of them (`spark.shuffle.sort.bypassMergeThreshold`).
_BYPASS = 200


def least_us(call: Callable[[], object], rounds: int) -> float:
    """CPU microseconds of a call, the least of some rounds."""
    taken = []
    for _ in range(rounds):
        began = time.process_time()
        for _ in range(_CALLS):
            call()
        taken.append((time.process_time() - began) / _CALLS * 1e6)
    return round(min(taken), 1)


def spark_costs(tasks: list[int], rounds: int) -> dict[str, Any]:
    """Milliseconds of the JVM's CPU for a job, by tasks a stage, and the fit."""
    from stormspark.spark import local_session

    spark = local_session(2, {"spark.sql.adaptive.enabled": "false"})
    meter = CpuMeter()

    def job(count: int) -> float:
        before = meter.read()["jvm"]
        rows = spark.range(0, count * 10, 1, count).repartition(count)
        rows.write.format("noop").mode("overwrite").save()
        return (meter.read()["jvm"] - before) * 1000

    for _ in range(5):  # the JVM's warm-up
        job(max(tasks))
    taken: dict[int, list[float]] = {count: [] for count in tasks}
    for _ in range(rounds):
        for count, of_count in taken.items():
            of_count.append(min(job(count) for _ in range(3)))
    spark.stop()
    least = {count: min(of_count) for count, of_count in taken.items()}
    shape = np.array([[1, 2 * count, count * count] for count in tasks], float)
    weights = 1 / np.array(list(least.values()))  # as many per cent off for small jobs as for large ones
    weighted, ones = shape * weights[:, None], np.ones(len(tasks))
    job_ms, task_ms, block_ms = np.linalg.lstsq(weighted, ones, rcond=None)[0]
    if block_ms < 0:  # too few blocks to be seen
        (job_ms, task_ms), block_ms = np.linalg.lstsq(weighted[:, :2], ones, rcond=None)[0], 0.0
    return {
        "jvm_ms": {count: round(value, 1) for count, value in least.items()},
        "job_ms": round(float(job_ms), 1),
        "task_ms": round(float(task_ms), 3),
        "block_us": round(float(block_ms) * 1000, 2),
    }


def frame_us(rounds: int) -> float:
    """CPU of a frame with one tuple, from lane to inbox: what all that is in a frame together pays."""
    from stormspark.acker import Ledger
    from stormspark.api import Fields, TupleSource
    from stormspark.worker.tuples.lanes import Lanes
    from stormspark.worker.tuples.unpacking import unpack

    random = Random(1)
    ledgers = [
        Ledger(worker, lambda count: [random.getrandbits(64) for _ in range(count)], None)
        for worker in (0, 1)
    ]
    lanes = Lanes(1, ledgers[0], lambda task, roots, reason: None)
    lane = lanes.inbox(1, 2)
    source = TupleSource("fan", 1, "default", Fields("key", "payload"))
    inbox: list[Any] = []

    def one() -> None:
        lane.append((("key", "payload"), source, None))
        ((_, payload),) = lanes.seal()
        unpack(payload, ledgers[1], {(1, "default"): source}, {2: inbox})
        inbox.clear()

    return least_us(one, rounds)


def report_us(rounds: int) -> tuple[int, float]:
    """Bytes of a worker's report, and CPU of reading it."""
    prepared = scale_cases.fan(2, 2, 1, 10, 10)
    data = pickle.dumps(prepared.cluster.run_batch(prepared.limits)[0], 5)
    return len(data), least_us(lambda: pickle.loads(data), rounds)


def markdown(figures: dict[str, Any]) -> str:
    """What a batch of the word count costs on so many workers."""
    task_ms, block_us, frame_us = figures["task_ms"], figures["block_us"], figures["frame_us"]
    rows = {
        "p: partitions of a superstep": lambda w: f"{partitions_for(w):,}",
        f"driver and executors: {_EXCHANGES + 1} p tasks of {task_ms:.2f} ms, at most": (
            lambda w: _ms((_EXCHANGES + 1) * partitions_for(w) * task_ms)
        ),
        "the same with a partition for each worker": lambda w: _ms((_EXCHANGES + 1) * w * task_ms),
        f"driver: w reports of {figures['report_us']:.0f} us": lambda w: _ms(w * figures["report_us"] / 1000),
        f"driver: sizes of blocks, {_EXCHANGES} p^2 bytes": (
            lambda w: f"{_EXCHANGES * partitions_for(w) ** 2 / 1e3:,.1f} kB"
        ),
        f"each worker: 2 x {_EXCHANGES} (w - 1) frames of {frame_us:.0f} us": (
            lambda w: _ms(2 * _EXCHANGES * (w - 1) * frame_us / 1000)
        ),
        f"each partition: {_EXCHANGES} p blocks of {block_us:.1f} us": (
            lambda w: _ms(_EXCHANGES * partitions_for(w) * block_us / 1000)
        ),
        "all executors: files of the shuffle": lambda w: f"{_files(partitions_for(w)):,}",
    }
    lines = ["| cost per batch of the word count | " + " | ".join(f"w = {w:,}" for w in _WORKERS) + " |"]
    lines.append("| --- |" + " --- |" * len(_WORKERS))
    for name, of in rows.items():
        lines.append(f"| {name} | " + " | ".join(of(w) for w in _WORKERS) + " |")
    return "\n".join(lines) + "\n"


def _files(partitions: int) -> int:
    return _EXCHANGES * partitions**2 if partitions <= _BYPASS else 2 * _EXCHANGES * partitions


def _ms(value: float) -> str:
    return f"{value / 1000:,.1f} s" if value >= 1000 else f"{value:,.1f} ms"


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, nargs="+", default=[8, 32, 128, 512])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--write", action="store_true", help="put it into docs/scale.md")
    args = parser.parse_args()
    heading = f"\nMeasured on {machine()}. Other work used {busy_cores():.1f} cores at the start.\n\n"
    size, took = report_us(args.rounds)
    figures: dict[str, Any] = {"frame_us": frame_us(args.rounds), "report_bytes": size, "report_us": took}
    figures |= spark_costs(args.tasks, args.rounds)
    print(json.dumps({"benchmark": "cluster_costs", **figures}))
    print(markdown(figures))
    if args.write:
        write_between(_DOCUMENT, _BEGIN, _END, heading + markdown(figures))


if __name__ == "__main__":
    main()
