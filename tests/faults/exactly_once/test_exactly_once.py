"""kill -9 at every step of the commit protocol, and at random moments: state is as if nothing had happened."""

from __future__ import annotations

import json
import os
import pickle
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from stormspark.checkpoint.barriers import BARRIERS
from stormspark.checkpoint.ordered_keys import decode_key
from stormspark.checkpoint.state_table import StateTable
from tests.faults.exactly_once.topology import ENOUGH, KEYS, SENDERS
from tests.waiting import executor_processes, kill_all_of, wait_for, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.faults, pytest.mark.slow]

ROOT = Path(__file__).parents[3]
#: In CI at a few of the barriers; at random, and those of executors, not at all.
KILLS = int(os.environ.get("EXACTLY_ONCE_KILLS", "2"))
ALL = KILLS > 2
SOME = ("driver.before_commit", "worker.rolled_back")
#: To which a worker comes only when its batch is taken back.
ROLLBACKS = ("worker.before_rollback", "worker.rolled_back")
LINES_A_FILE, FILES = 50, 20


class Run:
    """A topology under fire: drivers one after another on one checkpoint."""

    #: The module that builds it.
    topology = "tests.faults.exactly_once.topology"

    def __init__(self, folder: Path, name: str, workers: int, master: str = "local[2]") -> None:
        self.folder, self.name, self.workers, self.master = folder, name, workers, master
        self.barriers = folder / "barriers"
        self.barriers.mkdir()
        (folder / "lines").mkdir()
        for number in range(FILES):
            lines = range(number * LINES_A_FILE, (number + 1) * LINES_A_FILE)
            self._write_lines(number, lines)
        self.table = StateTable(folder / "checkpoint/stormspark/state")
        self.settings: dict[str, object] = {}
        self.drivers = 0
        self.process: subprocess.Popen[bytes] | None = None

    def _write_lines(self, number: int, lines: range) -> None:
        path = self.folder / "lines" / f"{number}.txt"
        path.write_text("".join(f"{line}\n" for line in lines))

    def start(self) -> None:
        self.drivers += 1
        environment = os.environ | {
            "PYTHONPATH": str(ROOT),
            "TMPDIR": str(self.folder),
            "STORMSPARK_BARRIERS": str(self.barriers),
        }
        with (self.folder / "output").open("ab") as output:
            self.process = subprocess.Popen(
                [
                    sys.executable, "-m", "tests.faults.exactly_once.driver",
                    self.topology, str(self.folder), self.name, str(self.workers), self.master, json.dumps(self.settings),
                ],
                cwd=ROOT, env=environment, stdout=output, stderr=output,
            )  # fmt: skip

    @property
    def output(self) -> str:
        return (self.folder / "output").read_text()[-8000:]

    def lives(self) -> bool:
        """Start the next driver if this one was killed; fails where it has given up."""
        assert self.process is not None
        ended = self.process.poll()
        if ended is not None:
            assert ended < 0, self.output
            self.start()
            return False
        return True

    def committed(self) -> int:
        self.table.refresh()
        return self.table.last_txid if self.table.exists else -1

    def goes_on(self, batches: int = 1) -> None:
        """Wait for so many more commits, whoever has to be started for them."""
        wanted = self.committed() + batches
        wait_for(
            lambda: self.lives() and self.committed() >= wanted,
            message=lambda: f"batch {wanted}:\n{self.output}",
        )

    def kill_at(self, barrier: str) -> None:
        armed = self.barriers / barrier
        armed.touch()

        def comes_by() -> bool:
            if barrier in ROLLBACKS:
                self._rolls_back(armed)
            return self.lives()

        wait_for(lambda: comes_by() and not armed.exists(), message=lambda: f"{barrier}:\n{self.output}")

    def _rolls_back(self, armed: Path) -> None:
        """Kill a worker, so that the other one comes to take its part of the batch back; no other before there was a commit."""
        workers = worker_processes(self.name)
        if not self.lives() or not workers:
            return
        before = self.committed()
        workers[min(workers)].kill()
        wait_for(
            lambda: self.lives() and (not armed.exists() or self.committed() > before),
            message=lambda: self.output,
        )

    def executors(self) -> list[psutil.Process]:
        """Spark's, where they are processes of their own."""
        assert self.process is not None
        return executor_processes(psutil.Process(self.process.pid))

    def kill_executor_at(self, barrier: str) -> None:
        """While a process stands at that barrier."""
        armed = self.barriers / barrier
        (self.folder / "armed").write_text("wait")  # an empty one kills
        (self.folder / "armed").rename(armed)
        wait_for(lambda: self.lives() and not armed.exists(), message=lambda: f"{barrier}:\n{self.output}")
        victim = self.executors()[0]
        victim.kill()
        victim.wait(60)
        for held in self.barriers.glob("*.here"):
            held.unlink()

    def end(self) -> None:
        """No more numbers; all is worked off; the driver ends."""
        (self.folder / ENOUGH).touch()
        (self.folder / "done").touch()

        def ended() -> bool:
            assert self.process is not None
            if self.process.poll() == 0:
                return True
            self.lives()
            return False

        wait_for(ended, message=lambda: f"the end:\n{self.output}")

    def state(self, component: str) -> dict[Any, Any]:
        """Of all tasks together; no key may be with two of them."""
        found: dict[Any, Any] = {}
        self.table.refresh()
        for row in self.table.as_arrow(component).read_all().to_pylist():
            key = decode_key(row["key"])
            name = (row["task"], key) if component in ("numbers", "notes") or key == "line" else key
            assert name not in found, f"{key} of {component} is with two tasks"
            found[name] = pickle.loads(row["value"])
        return found

    def check(self) -> int:
        """All has happened once; returns how much that was."""
        emitted = [n for (_, key), n in self.state("numbers").items() if key == "n"]
        drawn = self.state("choose")
        assert len(emitted) == SENDERS
        assert len(drawn) == sum(emitted)
        assert sorted(Counter(sender for sender, _ in drawn).values()) == sorted(emitted)
        totals = self.state("total")
        by_key = {key: value for key, value in totals.items() if not isinstance(key, tuple)}
        expected = {
            key: (
                sum(n % KEYS == key for _, n in drawn),
                sum(number for (_, n), number in drawn.items() if n % KEYS == key),
            )
            for key in range(KEYS)
        }
        assert by_key == {key: value for key, value in expected.items() if value[0]}
        lines = FILES * LINES_A_FILE
        assert [value for key, value in totals.items() if isinstance(key, tuple)] == 2 * [
            (lines, lines * (lines - 1) // 2)
        ]
        notes: Counter[int] = Counter()
        for pickled in self.state("notes").values():
            notes.update(_Notes.read(pickled))
        assert notes == Counter({key: count for key, (count, _) in by_key.items()})
        return len(drawn)


class _Notes(pickle.Unpickler):
    """Attributes, whatever the process around them was."""

    def persistent_load(self, name: str) -> str:
        return name

    @classmethod
    def read(cls, data: bytes) -> Counter[int]:
        import io

        counts: Counter[int] = cls(io.BytesIO(data)).load()["counts"]
        return counts


@contextmanager
def running(
    folder: Path, workers: int, master: str = "local[2]", prepare: Callable[[Run], None] = lambda run: None
) -> Iterator[Run]:
    run = Run(folder, f"once-{os.getpid()}-{folder.name}", workers, master)
    prepare(run)
    run.start()
    try:
        run.goes_on(2)
        yield run
    finally:
        assert run.process is not None
        kill_all_of(run.name, run.process)


def test_killed_at_every_step_of_the_protocol(tmp_path: Path) -> None:
    """C35, C38, C44, G8: each named barrier in turn; nothing is lost, nothing comes twice, also of what was drawn at random."""
    barriers = BARRIERS if ALL else SOME
    with running(tmp_path, 2) as run:
        for barrier in barriers:
            run.kill_at(barrier)
            run.goes_on(2)
        run.end()
        print(f"{len(barriers)} barriers, {run.drivers} drivers, {run.check():,} numbers")


@pytest.mark.skipif(not ALL, reason="executors take their time to come back; `make soak-exactly-once` has it")
def test_an_executor_is_killed_at_every_step(tmp_path: Path) -> None:
    """C35, C44: while a worker or the driver stands at each barrier; its workers go with it."""
    barriers = [barrier for barrier in BARRIERS if barrier not in ROLLBACKS]
    with running(tmp_path, 2, "local-cluster[2,1,1024]") as run:
        for barrier in barriers:
            run.kill_executor_at(barrier)
            run.goes_on(2)
        run.end()
        print(f"{len(barriers)} executors, {run.drivers} drivers, {run.check():,} numbers")


@pytest.mark.skipif(not ALL, reason="at some steps is enough; `make soak-exactly-once` has it")
def test_killed_at_random(tmp_path: Path) -> None:
    """C44: a worker, or the driver, at any moment."""
    _kill_at_random(tmp_path, KILLS, ["worker", "driver"], "local[2]")


@pytest.mark.skipif(not ALL, reason="executors take their time to come back; `make soak-exactly-once` has it")
def test_killed_at_random_in_a_cluster(tmp_path: Path) -> None:
    """C44: the same, and executors; a driver takes its executors along."""
    _kill_at_random(tmp_path, max(1, KILLS // 5), ["worker", "driver", "executor"], "local-cluster[2,1,1024]")


def _kill_at_random(tmp_path: Path, kills: int, whom: list[str], master: str) -> None:
    choice = random.Random(int(os.environ.get("TEST_SEED", "7")))
    killed: Counter[str] = Counter()
    with running(tmp_path, 2, master) as run:
        while killed.total() < kills:
            time.sleep(choice.uniform(0, 2))
            what = choice.choice(whom)
            if what == "driver":
                assert run.process is not None
                run.process.kill()
                run.process.wait()
            else:
                alive = run.executors() if what == "executor" else list(worker_processes(run.name).values())
                if not alive:
                    continue
                choice.choice(alive).kill()
            killed[what] += 1
            run.goes_on()
        run.end()
        print(f"killed {dict(killed)}, {run.drivers} drivers, {run.check():,} numbers")
