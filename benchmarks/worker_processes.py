"""What a batch costs the driver when each of many workers is a process: its threads, sockets, CPU and bytes.

    python -m benchmarks.worker_processes [--workers 64] [--partitions 64 32 16] [--batches 10]

Everything is real: the acked word count, with a task of each component in each worker, on one machine. So the workers wait for
cores, and the length of a batch says little; what the driver's process and Spark's use in a batch, and hold, does not depend on
that. The numbers of partitions are measured one after another, each with workers of its own.
Prints a JSON line for each: CPU in milliseconds per batch, bytes of the shuffle per batch, and what the processes hold.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import time
from typing import Any

import psutil
from pyspark.sql import SparkSession

from benchmarks.cpu import busy_cores, cpu_by_kind, worker_processes
from benchmarks.topologies import build
from stormspark.engine import RunningTopology
from stormspark.spark import local_session, submit

_CASE = "wordcount_acked"
_START_SECS = 900.0
#: Looking adds up the counters of all tasks, in the process that is measured.
_LOOK_SECS = 0.5


def cpu_of(workers: list[psutil.Process]) -> dict[str, float]:
    """CPU seconds so far: of the workers, and those of `cpu_by_kind`."""
    seconds = 0.0
    for process in workers:
        with contextlib.suppress(psutil.Error):
            seconds += sum(process.cpu_times()[:2])
    return {**cpu_by_kind({process.pid for process in workers}), "workers": seconds}


def shuffle_bytes(spark: SparkSession) -> int:
    """What the stages that Spark remembers have written for others to read."""
    gateway = spark.sparkContext._gateway
    assert gateway is not None
    none = gateway.new_array(gateway.jvm.double, 0), gateway.jvm.java.util.ArrayList()
    stages = spark.sparkContext._jsc.sc().statusStore().stageList(none[1], False, False, none[0], none[1])
    return sum(stages.apply(n).shuffleWriteBytes() for n in range(stages.size()))


def held(topology: str) -> dict[str, int]:
    """Threads, descriptors and sockets of the driver, and the memory of the workers."""
    me = psutil.Process()
    descriptors = os.listdir("/proc/self/fd")
    links = [
        os.readlink(f"/proc/self/fd/{one}") for one in descriptors if os.path.lexists(f"/proc/self/fd/{one}")
    ]
    workers = worker_processes(topology)
    return {
        "threads": me.num_threads(),
        "descriptors": len(descriptors),
        "sockets": sum(link.startswith("socket:") for link in links),
        "worker_processes": len(workers),
        "spark_pythons": sum(one.name().startswith("python") for one in me.children(recursive=True)),
        "worker_mb": round(sum(one.memory_full_info().uss for one in workers) / 1e6),
    }


def wait_for_batches(running: RunningTopology, number: int) -> list[float]:
    """Wait until so many batches more have ended, and return the seconds of each."""
    seconds, before, began = [], running.statistics().batches, time.monotonic()
    while len(seconds) < number:
        if running.wait(_LOOK_SECS) or time.monotonic() - began > _START_SECS:
            raise running.error or TimeoutError(
                f"{len(seconds)} of {number} batches within {_START_SECS:g} s"
            )
        now = running.statistics().batches
        if now > before:
            seconds += [(time.monotonic() - began) / (now - before)] * (now - before)
            before, began = now, time.monotonic()
    return seconds


def measure(args: argparse.Namespace, partitions: int) -> dict[str, Any]:
    """Run the word count with so many partitions of a superstep."""
    spark = local_session(
        8, {"spark.driver.host": "127.0.0.1", "spark.ui.retainedStages": 100_000}, master="local[8,4]"
    )
    topology = build(_CASE, (args.workers,) * 3)
    conf = {
        "topology.workers": args.workers,
        "stormspark.superstep.partitions": partitions,
        "stormspark.batch.target.ms": args.target_ms,
        "topology.max.spout.pending": args.pending,
        "stormspark.worker.start.timeout.secs": _START_SECS,
    }
    result: dict[str, Any] = {
        "workers": args.workers,
        "partitions": partitions,
        "busy_before": round(busy_cores(), 2),
    }
    began = time.monotonic()
    running = submit(topology, spark, conf=conf)
    try:
        wait_for_batches(running, 1)
        result["first_batch_after_s"] = round(time.monotonic() - began, 1)
        wait_for_batches(running, args.warmup)
        workers = worker_processes(topology.name)
        cpu, shuffled, words = (
            cpu_of(workers),
            shuffle_bytes(spark),
            running.statistics().components["count"].executed,
        )
        batches = wait_for_batches(running, args.batches)
        after = cpu_of(workers)
        per_batch = 1 / len(batches)
        result["batch_ms"] = [
            round(pick * 1000) for pick in (min(batches), statistics.median(batches), max(batches))
        ]
        result["words"] = round((running.statistics().components["count"].executed - words) * per_batch)
        result["shuffle_kb"] = round((shuffle_bytes(spark) - shuffled) * per_batch / 1000)
        result |= {f"cpu_ms_{kind}": round((after[kind] - cpu[kind]) * 1000 * per_batch) for kind in after}
        result |= held(topology.name)
    finally:
        running.stop()
        spark.stop()
    return result


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=64)
    parser.add_argument("--partitions", type=int, nargs="+", default=[64, 32, 16])
    parser.add_argument("--batches", type=int, default=10)
    parser.add_argument("--warmup", type=int, default=5)
    parser.add_argument(
        "--pending", type=int, default=1000, help="topology.max.spout.pending, of each worker's spout"
    )
    parser.add_argument("--target-ms", type=int, default=1000, help="stormspark.batch.target.ms")
    args = parser.parse_args()
    for partitions in args.partitions:
        print(json.dumps(measure(args, partitions)), flush=True)


if __name__ == "__main__":
    main()
