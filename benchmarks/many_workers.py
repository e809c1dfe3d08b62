"""What a round costs the driver with many workers: one partition for each worker, and partitions that workers share.

    python -m benchmarks.many_workers [--workers 100] [--partitions 0 100] [--rounds 5] [--cluster] [--frame-bytes 100]

Spark, nimbus and the forwarders are real. The workers are simulated: one process speaks the protocol of all of them, and answers
each superstep at once with a frame for each other worker, and the last superstep with a report. So a round has all that a round
of the word count has, except tuples. ``--cluster`` runs Spark as one driver and two executors that are processes of their own, so
that the driver's JVM is measured alone; otherwise it is one JVM. The numbers of partitions are measured in turn, in one run.
Prints one JSON line: milliseconds and CPU of a round, each with its minimum, median and maximum, and what the driver holds.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import pickle
import statistics
import sys
import tempfile
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.cpu import busy_cores, cpu_by_kind
from benchmarks.idle_batch import build
from stormspark.plan import PhysicalPlan, plan_topology
from stormspark.spark import local_session
from stormspark.spark.forwarder import Attempt, orders_property
from stormspark.spark.nimbus import Nimbus
from stormspark.spark.query import round_query
from stormspark.spark.query_session import own_session
from stormspark.wire import Frame, FrameKind, frames_to_batch
from stormspark.worker.host.connection import Connection
from stormspark.worker.host.key import Key
from stormspark.worker.host.lifeline import this_process
from stormspark.worker.host.link import Door, Endpoint, dial
from stormspark.worker.host.messages import Beat, Hello, Locate, Ready, Reply, StartHere
from stormspark.worker.round_orders import RoundOrders
from stormspark.worker.step import WorkerReport, read_report

_LEASE_SECS = 30.0


def simulate(
    nimbus: Endpoint, key: Key, workers: int, supersteps: int, frame_bytes: int, folder: str
) -> None:
    """Be all workers, in this process, until nimbus hangs up."""
    asks = dial(nimbus, key)
    payload = os.urandom(frame_bytes)

    def frames(worker: int) -> bytes:
        to = (w for w in range(workers) if w != worker)
        tuples = [Frame(w, FrameKind.TUPLES, worker, n, 1, payload) for n, w in enumerate(to)]
        return bytes(frames_to_batch(tuples).serialize())

    replies = [frames(worker) for worker in range(workers)]

    def serve(connection: Connection) -> None:
        while True:
            request = connection.recv()
            while connection.recv_bytes():
                pass
            connection.recv()
            worker = request.partition
            reply = replies[worker]
            if request.superstep % supersteps == supersteps - 1:
                report = pickle.dumps(WorkerReport(worker, 0, request.batch, {}, (), None, 0), 5)
                reply = bytes(
                    frames_to_batch([Frame(worker, FrameKind.REPORT, worker, 0, 1, report)]).serialize()
                )
            connection.send(Reply(1))
            connection.send_bytes(reply)

    door = Door(str(Path(folder, "requests")), None, key, serve, "request")
    links = []
    for worker in range(workers):
        order = None
        asks.send(Locate(0, worker))
        order = asks.recv()
        assert isinstance(order, StartHere), order
        link = dial(nimbus, key)
        link.send(Hello(worker, order.incarnation, this_process()))
        link.recv()
        link.send(Ready(door.endpoint))
        link.recv()
        links.append(link)
    while True:
        for link in links:
            time.sleep(_LEASE_SECS / 6 / workers)
            link.send(Beat())
            link.recv()


class Simulation:
    """A plan of ``workers`` workers, their nimbus, and the process that simulates them."""

    def __init__(self, session: SparkSession, plan: PhysicalPlan, frame_bytes: int) -> None:
        self.plan, self.session = plan, session
        self._folder = tempfile.TemporaryDirectory(prefix="many-workers-")
        self.nimbus = Nimbus(
            pickle.dumps(plan),
            plan.workers,
            folder=Path(self._folder.name),
            address=None,
            lease_secs=_LEASE_SECS,
            start_timeout_secs=60.0,
            on_trouble=lambda: print("trouble:", self.nimbus.broken, file=sys.stderr),
        )
        nimbus, supersteps = self.nimbus, plan.last_superstep + 1
        self._workers = multiprocessing.get_context("spawn").Process(
            target=simulate,
            args=(nimbus.endpoint, nimbus.key, plan.workers, supersteps, frame_bytes, self._folder.name),
            daemon=True,
        )
        self._workers.start()
        self.pid = self._workers.pid
        while "begins" not in self.ready():
            time.sleep(0.1)
        self._round = 0
        self._queries: dict[int, DataFrame] = {}

    def ready(self) -> str:
        """Whether all are there."""
        with self.nimbus._changed:
            seats = self.nimbus._assignments.seats
            return "begins" if all(seat.endpoint is not None for seat in seats) else "waits"

    def round(self, partitions: int) -> int:
        """Run one round, and return how many reports came."""
        settings = replace(self.plan.settings, superstep_partitions=partitions)
        plan = replace(self.plan, settings=settings)
        if partitions not in self._queries:
            attempt = Attempt(
                plan.topology,
                0,
                0,
                "",
                plan.workers,
                plan.last_superstep + 1,
                self.nimbus.endpoint,
                self.nimbus.key,
                None,
                60.0,
                partitions=plan.partitions,
            )
            self._queries[partitions] = round_query(self.session, plan, attempt)
        self._round += 1
        name, value = orders_property(RoundOrders(round=self._round))
        self.session.sparkContext.setLocalProperty(name, value)
        rows = self._queries[partitions].select("*").collect()
        return len([read_report(row.payload) for row in rows])

    def end(self) -> None:
        """End the workers."""
        self._workers.terminate()
        self._workers.join()
        self.nimbus.close()


def shown(values: list[float]) -> list[float]:
    """Minimum, median, maximum."""
    return [round(pick, 1) for pick in (min(values), statistics.median(values), max(values))]


def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure."""
    master = "local-cluster[2,4,1024]" if args.cluster else "local[8,4]"
    if args.cluster:
        import pyspark

        os.environ["SPARK_HOME"] = os.path.dirname(pyspark.__file__)
    spark = local_session(8, {"spark.driver.host": "127.0.0.1"}, master=master)
    plan = plan_topology(build(), {"topology.workers": args.workers})
    # The topology's parallelism is no matter: its tasks are simulated.
    plan = replace(plan, workers=args.workers, supersteps=args.exchanges - 1)
    simulation = Simulation(own_session(spark), plan, args.frame_bytes)
    result: dict[str, Any] = {
        "benchmark": "many_workers",
        "workers": args.workers,
        "master": master,
        "busy_before": round(busy_cores(), 2),
        "threads": threading.active_count(),
        "descriptors": len(os.listdir("/proc/self/fd")),
    }
    taken: dict[int, dict[str, list[float]]] = {number: {} for number in args.partitions}
    try:
        for _ in range(args.warmup):
            for number in args.partitions:
                assert simulation.round(number) == args.workers
        for _ in range(args.rounds):
            for number, of_number in taken.items():
                before, began = cpu_by_kind({simulation.pid}), time.perf_counter()
                for _ in range(args.repeat):
                    simulation.round(number)
                of_number.setdefault("ms", []).append((time.perf_counter() - began) * 1000 / args.repeat)
                after = cpu_by_kind({simulation.pid})
                for kind, seconds in after.items():
                    of_number.setdefault(f"cpu_ms_{kind}", []).append(
                        (seconds - before[kind]) * 1000 / args.repeat
                    )
    finally:
        result["threads_after"] = threading.active_count()
        simulation.end()
        spark.stop()
    for number, of_number in taken.items():
        result[f"partitions {number}"] = {name: shown(values) for name, values in of_number.items()}
    return result


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--workers", type=int, default=100)
    parser.add_argument("--partitions", type=int, nargs="+", default=[0, 10_000])
    parser.add_argument("--exchanges", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--repeat", type=int, default=4, help="rounds of a topology in each measurement")
    parser.add_argument("--warmup", type=int, default=6)
    parser.add_argument("--frame-bytes", type=int, default=100)
    parser.add_argument("--cluster", action="store_true")
    print(json.dumps(run(parser.parse_args())))


if __name__ == "__main__":
    main()
