"""The process that submits the topology, made to be killed. Argument: a JSON file with the fields of `Plan`.

It writes `Status` to ``status.json`` in the folder of effects, again and again, and ends when ``stop`` appears there.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from stormspark.checkpoint.acker_journal import AckerJournal
from stormspark.metrics import Quiet
from stormspark.spark import local_session, submit
from stormspark.spark.durable_acker import DurableAcker
from stormspark.spark.spark_state_table import reads_delta
from tests.faults.nothing_lost.topology import FOLDER, build

__all__ = ["Plan", "Status"]


@dataclass
class Plan:
    """What a driver is to run."""

    name: str
    bootstrap: str
    folder: str
    checkpoint: str
    master: str | None = None
    workers: int = 2
    window_secs: float = 2.0
    poison: list[int] = field(default_factory=list)
    max_retries: int | None = None
    conf: dict[str, Any] = field(default_factory=dict)


@dataclass
class Status:
    """What it says of itself: counters are those of this life."""

    pid: int
    batches: int
    quiet: bool
    error: str | None
    counters: dict[str, dict[str, int]]
    #: Batches of the acker query that were looked at, and the rows that its watermark has dropped: there must never be one.
    acker_batches: int = 0
    dropped: int = 0
    ended: bool = False


_COUNTERS = ("emitted", "executed", "acked", "failed", "failed_by_bolt", "timed_out", "worker_lost", "pending",
             "queued", "restarts", "dead_letters")  # fmt: skip


def die_after_write(order: Path) -> None:
    """Where the file ``order`` is there, the process kills itself when the durable acker has written a batch that Spark has not
    committed yet.
    """
    write, commit = DurableAcker.write, AckerJournal.append
    wrote = threading.Event()

    def append(*args: Any) -> None:
        commit(*args)
        wrote.set()

    def write_and_die(acker: DurableAcker, reports: Any, attempt: int) -> None:
        wrote.clear()
        write(acker, reports, attempt)
        if wrote.is_set() and order.exists():
            order.unlink()
            os.kill(os.getpid(), signal.SIGKILL)

    for owner, name, method in ((AckerJournal, "append", append), (DurableAcker, "write", write_and_die)):
        setattr(owner, name, method)


def main(file: str) -> None:
    plan = Plan(**json.loads(Path(file).read_text()))
    folder = Path(plan.folder)
    topology = build(
        plan.name,
        plan.bootstrap,
        window_secs=plan.window_secs,
        poison=frozenset(plan.poison),
        max_retries=plan.max_retries,
    )
    conf = {
        "topology.workers": plan.workers,
        "stormspark.log.dir": str(folder / "logs"),
        "stormspark.dead.letter.dir": str(folder / "dead"),
        FOLDER: plan.folder,
        **plan.conf,
    }
    conf_of_spark = {"spark.executor.memory": "1024m"}
    spark = local_session(max(2, plan.workers), {**conf, **conf_of_spark}, master=plan.master)
    assert not reads_delta(spark), "nothing is lost by default: the durable acker needs no jars"
    die_after_write(folder / "die-after-write")
    running = submit(topology, spark, conf=conf, checkpoint=plan.checkpoint)
    quiet = Quiet()
    dropped: dict[tuple[str, int], int] = {}

    def tell(ended: bool) -> None:
        now = running.statistics()
        counters = {
            name: {counter: getattr(component, counter) for counter in _COUNTERS}
            for name, component in now.components.items()
        }
        acker = None if running.acker is None or running.acker.query is None else running.acker.query
        if not ended and acker is not None and (progress := acker.lastProgress) is not None:
            key = (progress["runId"], progress["batchId"])
            dropped[key] = sum(one["numRowsDroppedByWatermark"] for one in progress["stateOperators"])
        error = None if running.error is None else f"{type(running.error).__name__}: {running.error}"
        status = Status(
            os.getpid(),
            now.batches,
            quiet.reached(now),
            error,
            counters,
            len(dropped),
            sum(dropped.values()),
            ended,
        )
        new = folder / "status.new"
        new.write_text(json.dumps(asdict(status)))
        new.replace(folder / "status.json")

    while not running.wait(0.1):
        tell(ended=False)
        if (folder / "stop").exists():
            running.stop()
    tell(ended=True)
    spark.stop()
    sys.exit(0 if running.error is None else 3)


if __name__ == "__main__":
    main(sys.argv[1])
