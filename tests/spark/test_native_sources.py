"""Spark's own sources under backpressure: batches that are prolonged, limits that change by planned restarts."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import BasicBolt, Fields, Topology, TopologyBuilder
from stormspark.api import PerTrigger
from stormspark.connectors import DataFrameSpout, FileSpout
from stormspark.spark import SparkTopology, trigger_limits
from tests.conformance.components import EFFECTS, Effects, read_effects
from tests.spark.test_sources import numbers_in, settings, write_numbers
from tests.waiting import PATIENCE_SECS, wait_for, wait_for_acks, wait_until_idle, worker_processes

pytestmark = [pytest.mark.spark, pytest.mark.slow]
Start = Callable[..., SparkTopology]


class Works(BasicBolt):
    """Takes as many milliseconds for a tuple as the file ``pace`` says; writes numbers and ticks down, and at the end how many
    it remembers.
    """

    def prepare(self, conf: Any, context: Any) -> None:
        self.effects, self.pace, self.count = Effects(conf, context), Path(conf[EFFECTS], "pace"), 0
        self.effects.write("prepare", os.getpid())

    def execute(self, tup: Any, collector: Any) -> None:
        if tup.is_tick:
            self.effects.write("tick", time.time())
            return
        time.sleep(float(self.pace.read_text()) / 1000)
        self.count += 1
        self.effects.write("worked", tup["n"])

    def cleanup(self) -> None:
        self.effects.write("count", self.count)

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def working(name: str, spout: Any, tasks: int = 2) -> Topology:
    builder = TopologyBuilder()
    builder.set_spout("numbers", spout, parallelism=2)
    builder.set_bolt("works", Works(), tasks).fields_grouping("numbers", Fields("n"))
    return builder.create_topology(name)


def set_pace(folder: Path, milliseconds: float) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "new-pace").write_text(str(milliseconds))
    (folder / "new-pace").rename(folder / "pace")


def conf_of(folder: Path, **more: Any) -> dict[str, Any]:
    return settings(folder, stormspark_batch_target_ms=300, **more) | {"topology.tick.tuple.freq.secs": 1}


def notes(folder: Path, word: str) -> list[Any]:
    return [note for what, note in read_effects(folder, "works") if what == word]


def worked(folder: Path) -> Counter[int]:
    return Counter(number for what, number in read_effects(folder, "works") if what == "worked")


def wait_for_work(folder: Path, rows: int, running: SparkTopology, timeout: float = 300.0) -> None:
    def done() -> bool:
        assert running.error is None, running.error
        return worked(folder).total() >= rows

    wait_for(done, timeout, f"{rows} rows")


def last_batch(running: SparkTopology) -> int:
    """The last one that is committed."""
    progress = running.query.lastProgress if running.query is not None else None
    return -1 if progress is None else int(progress["batchId"])


def test_a_bite_that_is_much_too_large_is_worked_off_in_one_long_batch(start: Start, tmp_path: Path) -> None:
    """F10, W1, K7: nothing times out, though it takes five message timeouts; ticks go on; then more is read."""
    out = tmp_path / "out"
    set_pace(out, 4)
    write_numbers(tmp_path / "in", "large.json", range(1500))
    spout = DataFrameSpout(numbers_in(tmp_path / "in"), ["n", "text"])
    running = start(working("large", spout), conf=conf_of(out, topology_message_timeout_secs=2))
    wait_for_work(out, 1000, running)
    assert last_batch(running) <= 1, "the batch that brought the rows goes on"
    rounds = running.statistics().batches
    assert rounds >= 5
    wait_for_acks(running, "numbers", 1500)
    write_numbers(tmp_path / "in", "small.json", range(1500, 1600))
    wait_for_acks(running, "numbers", 1600)
    running.stop()
    assert running.error is None
    assert worked(out) == Counter(range(1600))
    numbers = running.statistics().components["numbers"]
    assert (numbers.failed, numbers.emitted, numbers.queued) == (0, 1600, 0)
    ticks = sorted(notes(out, "tick"))
    assert len(ticks) >= 2 * 2, "both tasks went on hearing them; how many is a matter of the machine's speed"
    assert running.planned_restarts == 0, "its function takes no limit"


@pytest.mark.long  # the controller is tested on a simulated clock
def test_a_limit_that_is_wrong_by_a_factor_is_changed_between_two_batches(
    start: Start, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """F10: the query is started again; bolts keep their memory, nothing fails, nothing comes twice."""
    monkeypatch.setattr(trigger_limits, "TOO_MANY_ROUNDS", 5)
    monkeypatch.setattr(trigger_limits, "_ROUNDS", 1)
    monkeypatch.setattr(trigger_limits, "_PATIENCE", {-1: 5, 1: 4})
    out = tmp_path / "out"
    set_pace(out, 12)
    for part in range(90):
        write_numbers(tmp_path / "in", f"{part:02}.json", range(part * 25, part * 25 + 25))

    def read(spark: Any, limit: int) -> Any:
        path = str(tmp_path / "in")
        return spark.readStream.schema("n long, text string").option("maxFilesPerTrigger", limit).json(path)

    spout = DataFrameSpout(read, ["n", "text"], per_trigger=PerTrigger("maxFilesPerTrigger", 40))
    running = start(working("bites", spout), conf=conf_of(out))
    wait_for(lambda: running.planned_restarts, message="a planned restart")
    assert 1 <= running.source_limits["numbers"] <= 10
    pids = {worker: process.pid for worker, process in worker_processes("bites").items()}
    set_pace(out, 0)
    wait_for_acks(running, "numbers", 2250)
    wait_until_idle(running)
    assert {worker: process.pid for worker, process in worker_processes("bites").items()} == pids
    running.stop()
    assert running.error is None
    assert worked(out) == Counter(range(2250)), "each row once"
    assert len(notes(out, "prepare")) == 2
    assert sum(notes(out, "count")) == 2250, "they remember what they did before the restart"
    numbers = running.statistics().components["numbers"]
    assert (numbers.failed, numbers.worker_lost, numbers.acked) == (0, 0, 2250)


@pytest.mark.long
def test_how_many_restarts_a_bolt_costs_that_is_slower_for_a_while(start: Start, tmp_path: Path) -> None:
    """F10: ten times slower for ten seconds, or for ``SLOW_SECS``; with the limits and pauses that users have."""
    slow_secs = float(os.environ.get("SLOW_SECS", "10"))
    out = tmp_path / "out"
    set_pace(out, 1)
    files = int(40 + 3 * slow_secs)
    for part in range(files):
        write_numbers(tmp_path / "in", f"{part:04}.json", range(part * 100, part * 100 + 100))
    spout = FileSpout(
        tmp_path / "in",
        "json",
        schema="n long",
        fields=["n"],
        options={"maxFilesPerTrigger": 10},
    )
    running = start(working("slower", spout), conf=settings(out))
    wait_for_acks(running, "numbers", 2000)
    set_pace(out, 10)
    began = running.statistics()
    time.sleep(slow_secs)  # what is measured is a time
    slow = running.statistics()
    set_pace(out, 1)
    wait_for_acks(running, "numbers", files * 100, PATIENCE_SECS + slow_secs)
    running.stop()
    acked = slow.components["numbers"].acked - began.components["numbers"].acked
    print(
        f"{slow_secs:g} s ten times slower: {running.planned_restarts} planned restarts, limits {running.source_limits}, "
        f"{acked / (slow.seconds - began.seconds):.0f} rows a second meanwhile"
    )
    assert running.error is None
    assert worked(out) == Counter(range(files * 100))
    assert running.statistics().components["numbers"].failed == 0
    assert running.planned_restarts <= 2


def read_at_once(folder: Path, out: Path, rows: int, pace: float) -> DataFrameSpout:
    set_pace(out, pace)
    write_numbers(folder, "all.json", range(rows))
    return DataFrameSpout(numbers_in(folder), ["n", "text"])


@pytest.mark.parametrize("durable", [True, pytest.param(False, marks=pytest.mark.long)])
def test_a_stop_in_a_prolonged_batch_loses_nothing(start: Start, tmp_path: Path, durable: bool) -> None:
    """F10, E15: with the durable acker it ends after the round, without it when the batch is worked off."""
    out = tmp_path / "out"
    spout = read_at_once(tmp_path / "in", out, 1200, 4)
    conf = conf_of(out, stormspark_acker_durable=durable)
    running = start(working("stopped", spout), conf=conf, checkpoint=tmp_path / "checkpoint")
    wait_for_work(out, 300, running)
    running.stop()
    assert running.error is None
    done = worked(out)
    if durable:
        assert done.total() < 1200, "it does not wait for the rest"
    else:
        assert done.total() > 900
    set_pace(out, 0)
    running = start(working("stopped", spout), conf=conf, checkpoint=tmp_path / "checkpoint")
    if durable:
        wait_for_work(out, 1200, running)
    wait_until_idle(running)
    running.stop()
    assert set(worked(out)) >= set(range(1200)) if durable else set(done)
    assert worked(out).total() <= 1200 + 600, "only what was under way may come twice"


def test_a_deactivated_topology_reads_no_more_and_can_be_stopped(start: Start, tmp_path: Path) -> None:
    """B13, W1: rows that nobody takes are not worked off; without a durable acker their batch is read again."""
    out = tmp_path / "out"
    spout = read_at_once(tmp_path / "in", out, 1200, 4)
    conf = conf_of(out, stormspark_acker_durable=False)
    running = start(working("inactive", spout), conf=conf, checkpoint=tmp_path / "checkpoint", active=False)
    wait_for(lambda: running.statistics().batches >= 4, message="rounds")
    assert last_batch(running) < 1
    assert running.statistics().total("emitted") == 0
    running.activate()
    wait_for_work(out, 200, running)
    running.deactivate()
    wait_for(lambda: running.statistics().components["works"].queued == 0, message="nothing under way")
    running.stop()
    assert running.error is None
    assert 200 <= worked(out).total() < 1200
    set_pace(out, 0)
    running = start(working("inactive", spout), conf=conf, checkpoint=tmp_path / "checkpoint")
    wait_for_acks(running, "numbers", 1200)
    running.stop()
    assert set(worked(out)) == set(range(1200))


@pytest.mark.long  # a stop, and the death of a worker, are beside it
def test_a_kill_in_a_prolonged_batch_loses_nothing(start: Start, tmp_path: Path) -> None:
    """E15: it ends at once; the batch runs again."""
    out = tmp_path / "out"
    spout = read_at_once(tmp_path / "in", out, 1200, 4)
    running = start(working("cut", spout), conf=conf_of(out), checkpoint=tmp_path / "checkpoint")
    wait_for_work(out, 300, running)
    began = time.monotonic()
    running.kill()
    assert time.monotonic() - began < 60
    assert worked(out).total() < 1200
    set_pace(out, 0)
    running = start(working("cut", spout), conf=conf_of(out), checkpoint=tmp_path / "checkpoint")
    wait_for_acks(running, "numbers", 1200)
    running.stop()
    assert set(worked(out)) == set(range(1200))


def test_a_worker_that_dies_in_a_prolonged_batch_costs_no_row(start: Start, tmp_path: Path) -> None:
    """E15, E16: its batch is read again, rows that wait in the other worker are not emitted for both."""
    out = tmp_path / "out"
    spout = read_at_once(tmp_path / "in", out, 1500, 4)
    running = start(working("dies", spout), conf=conf_of(out))
    wait_for_work(out, 300, running)
    os.kill(worker_processes("dies")[1].pid, signal.SIGKILL)
    seen = worked(out).total()
    wait_for_work(out, seen + 300, running)
    set_pace(out, 0)
    wait_until_idle(running)
    running.stop()
    assert running.error is None
    assert set(worked(out)) == set(range(1500))
    # What the other worker still did in its turn, which ends after five targets of 300 ms, comes again too; a tuple takes 4 ms.
    assert worked(out).total() <= 1500 + seen + 500
