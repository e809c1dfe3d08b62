"""The durable acker: rows of sources that a bolt holds beyond their batch outlive the worker and the driver."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from stormspark import Bolt, Fields, TopologyBuilder
from stormspark.api import ExponentialBackoff
from stormspark.cli import main
from stormspark.connectors import DataFrameSpout
from stormspark.spark import SparkTopology
from tests.spark.test_sources import numbers_in, write_numbers
from tests.waiting import PATIENCE_SECS, wait_for, wait_for_batches, wait_until_idle, worker_processes
from tests.whole_lines import whole_lines

pytestmark = [pytest.mark.spark, pytest.mark.faults]
FOLDER = "test.folder"
ROWS = 500


class Hold(Bolt):
    """Writes down what it sees and holds it until there is a file "go"; multiples of 10 are acked at once."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.held, self.folder = collector, [], Path(conf[FOLDER])
        self.file = self.folder / f"seen-{context.this_task_id}"
        context.set_timer(0.1, self.look)

    def look(self) -> None:
        if (self.folder / "go").exists():
            for tup in self.held:
                self.collector.ack(tup)
            self.held = []

    def execute(self, tup: Any) -> None:
        with self.file.open("a") as file:
            file.write(f"{tup['n']}\n")
        if tup["n"] % 10:
            self.held.append(tup)
        else:
            self.collector.ack(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def last_commit(running: SparkTopology) -> int:
    progress = running.query.lastProgress if running.query is not None else None
    return -1 if progress is None else int(progress["batchId"])


class Held:
    """A topology that holds its rows, and what can be seen of it."""

    def __init__(self, start: Callable[..., SparkTopology], folder: Path) -> None:
        self.folder, self._start = folder, start
        self.checkpoint: Path | str = folder / "checkpoint"
        write_numbers(folder / "in", "a.json", range(ROWS))
        builder = TopologyBuilder()
        spout = DataFrameSpout(numbers_in(folder / "in"), ["n", "text"], retry=ExponentialBackoff())
        builder.set_spout("numbers", spout, parallelism=2)
        builder.set_bolt("hold", Hold(), 2).fields_grouping("numbers", Fields("n"))
        self.topology = builder.create_topology("held")

    def start(self, times: int = 1, **conf: Any) -> SparkTopology:
        """Until the rows that are open have come so often, and two batches more are committed."""
        settings = {"topology.workers": 2, FOLDER: str(self.folder), "stormspark.acker.interval.ms": 200}
        running = self._start(
            self.topology,
            checkpoint=self.checkpoint,
            conf=settings | {key.replace("_", "."): value for key, value in conf.items()},
        )
        self.wait_for(lambda seen: len(seen) == ROWS and self.replayed(times))
        # Commits, since a batch may be one of many rounds.
        enough = last_commit(running) + 2
        wait_for(lambda: last_commit(running) >= enough, message="two commits")
        return running

    def seen(self) -> Counter[int]:
        lines = (line for file in self.folder.glob("seen-*") for line in whole_lines(file))
        return Counter(map(int, lines))

    def wait_for(self, check: Callable[[Counter[int]], bool]) -> None:
        wait_for(lambda: check(self.seen()), message="the rows")

    def replayed(self, times: int) -> bool:
        """Whether the rows that were open came so often, and the others once."""
        return all(count == (1 if n % 10 == 0 else times) for n, count in self.seen().items())

    def state(self, running: SparkTopology) -> dict[str, Any]:
        """What is known of the acker, for messages of tests that wait in vain."""
        acker = running.acker
        query = None if acker is None else acker.query
        return {
            "pending": running.pending().count(),
            "seen": self.seen().most_common(3),
            "query": None if query is None else (query.isActive, query.status, query.exception()),
            "progress": None if query is None else query.lastProgress,
            "journal": sorted(
                path.name for path in self.folder.glob("checkpoint/stormspark/acker/journal/*")
            )[-3:],
            "components": running.statistics().components,
        }

    def finish(self, running: SparkTopology) -> None:
        (self.folder / "go").touch()
        wait_until_idle(running)
        assert running.acker is not None
        wait_for(lambda: running.pending().count() == 0, message="the acker to see the last acks")
        running.stop()
        assert running.error is None


@pytest.fixture
def held(start: Callable[..., SparkTopology], tmp_path: Path) -> Held:
    return Held(start, tmp_path)


def test_rows_that_a_dead_worker_had_open_are_emitted_again_and_no_others(held: Held) -> None:
    """E15, E16: also those of batches long committed; the rest of the topology keeps what it holds."""
    running = held.start()
    victim = worker_processes("held")[0]
    os.kill(victim.pid, signal.SIGKILL)
    # Rows whose spout or bolt was there; a spout that lives replays its own.
    held.wait_for(lambda seen: seen.total() > ROWS)
    wait_for_batches(running, 3)
    assert {n for n, count in held.seen().items() if count > 1}
    assert all(held.seen()[n] == 1 for n in range(0, ROWS, 10)), "what was acked is not emitted again"
    numbers = running.statistics().components["numbers"]
    assert numbers.pending == ROWS - ROWS // 10
    held.finish(running)


@pytest.mark.long  # with one worker that dies above; `tests/faults/nothing_lost` kills workers too
def test_all_open_rows_outlive_all_workers(held: Held) -> None:
    """Every open tree of a topology was local to what died."""
    running = held.start()
    for process in worker_processes("held").values():
        os.kill(process.pid, signal.SIGKILL)
    held.wait_for(lambda _: held.replayed(2))
    held.finish(running)
    assert held.replayed(2)


@pytest.mark.parametrize("generations", [1, pytest.param(2, marks=pytest.mark.long)])
def test_a_new_driver_goes_on_with_what_was_open(held: Held, generations: int) -> None:
    """Two generations later, too: a row that is open again is open."""
    for times in range(1, generations + 1):
        held.start(times=times).kill()
    running = held.start(times=generations + 1)
    pending = running.pending()
    assert pending.count() == ROWS - ROWS // 10
    assert {row.component for row in pending.select("component").distinct().collect()} == {"numbers"}
    told = CliRunner().invoke(main, ["pending", "held", "--json"])
    assert told.exit_code == 0, told.output
    seen = json.loads(told.output)
    assert (seen["open"], len(seen["oldest"])) == (pending.count(), 20)
    assert {row["component"] for row in seen["by_task"]} == {"numbers"}
    table = CliRunner().invoke(main, ["pending", "held", "--most", "3"])
    assert "450 open trees" in table.output and "the oldest 3 of them" in table.output, table.output
    held.finish(running)
    assert held.replayed(generations + 1)


def test_a_topology_whose_trees_end_in_their_batch_has_neither_table_nor_query(held: Held) -> None:
    (held.folder / "in" / "a.json").unlink()
    write_numbers(held.folder / "in", "b.json", range(0, 10 * ROWS, 10))
    running = held._start(
        held.topology,
        checkpoint=held.folder / "checkpoint",
        # No superstep ends before its work does, however busy the machine is: else trees are left to the next batch. The bolt
        # has no thread of its own although it writes to a file, because a superstep waits only some milliseconds for a thread.
        conf={
            "topology.workers": 2,
            FOLDER: str(held.folder),
            "stormspark.batch.target.ms": 60_000,
            "stormspark.executor.threads": "never",
        },
    )
    held.wait_for(lambda seen: len(seen) == ROWS)
    wait_until_idle(running)
    assert running.acker is not None and running.acker.query is None
    running.stop()
    assert not (held.folder / "checkpoint" / "stormspark" / "acker").exists()


@pytest.mark.long  # rows must grow old for it
def test_records_that_grow_old_are_opened_anew_and_nothing_is_late(held: Held) -> None:
    """The watermark is a few seconds here: it passes what is open if that is not opened anew."""
    running = held.start(topology_message_timeout_secs=1000, stormspark_acker_delay_secs=2)
    assert running.acker is not None
    begun = running.acker.time.at
    numbers = iter(range(ROWS, 10**6))

    def states(what: str) -> int:
        """Its sum over the acker's batches."""
        assert running.acker is not None and running.acker.query is not None
        of_batches = [p["stateOperators"] for p in running.acker.query.recentProgress]
        return sum(operators[0][what] for operators in of_batches if operators)

    waits_until = time.monotonic() + PATIENCE_SECS
    while running.acker.time.at < begun + 8_000_000 or states("numRowsRemoved") <= ROWS / 2:
        assert time.monotonic() < waits_until, "the watermark has not passed what is closed"
        write_numbers(held.folder / "in", f"{(n := next(numbers))}.json", range(n, n + 1))
        wait_for_batches(running, 1)
    assert states("numRowsDroppedByWatermark") == 0
    wait_for(
        lambda: running.statistics().components["numbers"].pending == running.pending().count(),
        message="the acker to know what is open",
    )
    held.finish(running)
    assert set(held.seen().values()) == {1}


def test_pending_says_what_it_needs() -> None:
    told = CliRunner().invoke(main, ["pending", "nobody-knows-it"])
    assert told.exit_code == 2
    assert "this user has started no topology 'nobody-knows-it' on this host" in told.output


@pytest.mark.long
def test_the_delay_stays_that_of_the_table_when_the_setting_changes(held: Held) -> None:
    """What is open is opened anew by the delay that the acker query has, or its watermark would pass it."""
    held.start(topology_message_timeout_secs=1000, stormspark_acker_delay_secs=2).kill()
    running = held.start(topology_message_timeout_secs=1000, stormspark_acker_delay_secs=600)
    held.wait_for(lambda _: held.replayed(2))
    assert running.acker is not None
    assert running.acker.time.delay == 2.0
    begun = running.acker.time.at
    numbers = iter(range(ROWS, 10**6))
    while running.acker.time.at < begun + 6_000_000:
        write_numbers(held.folder / "in", f"{(n := next(numbers))}.json", range(n, n + 1))
        wait_for_batches(running, 1)
    wait_for(
        lambda: running.statistics().components["numbers"].pending == running.pending().count(),
        message="the acker to know what is open",
    )
    held.finish(running)
