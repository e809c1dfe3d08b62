"""The fixed costs that a cluster multiplies: of a Spark task, a block between two partitions, a frame, a report.

    python -m benchmarks.cluster_costs [--tasks 8 32 128 512] [--rounds 5]

docs/scale.md works out from these which resource ends first. *Spark*: a job of two stages of n tasks each with a shuffle
between them, nothing in it, on local[2]: n tasks a stage and n x n blocks. The least CPU of the JVM over all rounds is
fitted by a + b (2 n) + c n^2, where none may be below zero; so b, of a task, has both the driver's share and the
executor's. *Frames*: sealing and unpacking a frame of one tuple. *Reports*: unpickling one, in the driver. Prints one
JSON line.
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
from benchmarks.cpu import CpuMeter

_CALLS = 300


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
    from stormspark.worker.lanes import Lanes, unpack

    random = Random(1)
    ledgers = [
        Ledger(worker, lambda count: [random.getrandbits(64) for _ in range(count)], None)
        for worker in (0, 1)
    ]
    lanes = Lanes(1, ledgers[0], lambda task, message: None)
    lane = lanes.inbox(1, 2)
    source = TupleSource("fan", 1, "default", Fields("key", "payload"))
    inbox: list[Any] = []

    def one() -> None:
        lane.append((("key", "payload"), source, None))
        sealed = lanes.seal()
        assert sealed is not None
        unpack(sealed[1], ledgers[1], {(1, "default"): source}, {2: inbox})
        inbox.clear()

    return least_us(one, rounds)


def report_us(rounds: int) -> tuple[int, float]:
    """Bytes of a worker's report, and CPU of reading it."""
    prepared = scale_cases.fan(2, 2, 1, 10, 10)
    data = pickle.dumps(prepared.cluster.run_batch(prepared.limits)[0], 5)
    return len(data), least_us(lambda: pickle.loads(data), rounds)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tasks", type=int, nargs="+", default=[8, 32, 128, 512])
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    size, took = report_us(args.rounds)
    figures = {"frame_us": frame_us(args.rounds), "report_bytes": size, "report_us": took}
    print(json.dumps({"benchmark": "cluster_costs", **figures, **spark_costs(args.tasks, args.rounds)}))


if __name__ == "__main__":
    main()
