"""Random topologies in the in-process supersteps, on the local engine and on Spark, all compared with the model.

``FUZZ_TOPOLOGIES`` and ``FUZZ_SPARK`` say how many, ``FUZZ_SEED`` where the seeds begin. One that fails prints itself, and runs
again alone with ``FUZZ_SEED=<seed> FUZZ_TOPOLOGIES=1 FUZZ_SPARK=1``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from pprint import pformat
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stormspark.grouping
from stormspark import Topology
from stormspark.grouping import CustomGrouping, Grouping, LocalWhileHeldGrouping
from stormspark.local import submit
from stormspark.plan import plan_topology
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.spout_task import SpoutTask
from tests.fuzz.attempts import Attempts, RoughClock, small_pieces
from tests.fuzz.components import FOLDER, Notes, begin_run, built
from tests.fuzz.model import Foretold, foretell
from tests.fuzz.spec import (
    FirstAndLast,
    Message,
    TopologySpec,
    random_topology,
    topology_from,
    waiting_topology,
)
from tests.waiting import wait_until_idle

FIRST = int(os.environ.get("FUZZ_SEED") or os.environ.get("TEST_SEED", "1"))
IN_PROCESS = range(FIRST, FIRST + int(os.environ.get("FUZZ_TOPOLOGIES", "60")))
ON_SPARK = range(FIRST, FIRST + int(os.environ.get("FUZZ_SPARK", "3")))
WAITING = range(FIRST, FIRST + int(os.environ.get("FUZZ_WAITING") or len(IN_PROCESS) // 10))
WAITING_ON_SPARK = range(FIRST, FIRST + len(ON_SPARK) // 3)
#: The first ones are for `make test-fast`.
_FAST = 4
SEEDS = [pytest.param(seed, marks=[] if seed < FIRST + _FAST else [pytest.mark.slow]) for seed in IN_PROCESS]

#: Simulated seconds between two batches: ticks of 0.4 s come in nearly every one.
_STEP = 0.35
_MOST_BATCHES = 400
#: After so many the clock jumps no more: else ticks would wait, now and then, for ever.
_ROUGH_BATCHES = 30
#: Batches without anything after which nothing will come: joins give up after eight ticks.
_QUIET_BATCHES = 14


@contextmanager
def shown(spec: TopologySpec) -> Iterator[None]:
    """What fails shows the topology."""
    try:
        yield
    except BaseException as error:
        error.add_note(pformat(spec, width=110))
        raise


def check(spec: TopologySpec, notes: Notes) -> None:
    """The run's verdicts and executions are those of the model."""
    foretold = foretell(spec, notes.emitted)
    assert notes.wrong == []
    newest = newest_lives(notes.emitted)
    whole = sum(life == newest[spout, index] for spout, index, _, life in notes.emitted)
    assert whole == sum(spout.tasks * spout.messages for spout in spec.spouts)
    assert notes.executed == foretold.executed
    for id, messages in foretold.messages.items():
        spout, index, _, life = messages[0]
        heard, expected = notes.verdicts.get(id, Counter()), foretold.verdicts[id]
        if life == newest[spout, index]:
            assert heard == expected
        else:
            assert heard <= expected, "it may have heard before it raised (B10, E35)"
    assert notes.verdicts.keys() <= foretold.verdicts.keys()


def newest_lives(emitted: set[Message]) -> Counter[tuple[str, int]]:
    """The last life of each spout task."""
    newest: Counter[tuple[str, int]] = Counter()
    for spout, index, _, life in emitted:
        newest[spout, index] = max(newest[spout, index], life)
    return newest


class InProcess:
    """A topology on workers in this process.

    ``rough``: tuples leave in small pieces, and deadlines pass anywhere, so that much is left over from one turn to the next.
    (Then the clock says nothing about what is still to come, on which joins rely.)
    """

    def __init__(self, spec: TopologySpec, workers: int, random: Random) -> None:
        self.spec, self.random = spec, random
        self.notes = begin_run()
        self.rough = not spec.joins and random.random() < 0.5
        self.clock = RoughClock(random, 0.03 if self.rough else 0.0)
        conf: dict[str, Any] = {"topology.workers": workers}
        if self.rough:
            conf |= {"stormspark.superstep.deadline.ms": 200, "stormspark.batch.target.ms": 500}
        self.cluster = Attempts(plan_topology(built(spec), conf), self.clock, random)

    def run(self, between_batches: Callable[[], None] = lambda: None) -> None:
        """Batches until nothing happens any more."""
        quiet, seen = 0, (-1, -1)
        with small_pieces(self.random.choice((1, 3, 64))) if self.rough else nullcontext():
            for batch in range(_MOST_BATCHES):
                if batch == _ROUGH_BATCHES:
                    self.clock.chance = 0.0
                between_batches()
                self.clock.advance(_STEP)
                reports = self.cluster.run_batch()
                self.check_books()
                counters = [counter for report in reports for counter in report.counters.values()]
                work = sum(c.emitted + c.executed + c.acked + c.failed for c in counters)
                done = self.cluster.attempt, work
                waits = sum(report.backlog for report in reports)
                quiet = 0 if done != seen or waits else quiet + 1
                seen = done
                if quiet >= _QUIET_BATCHES:
                    return
        pytest.fail(f"not done after {_MOST_BATCHES} batches")

    def check_books(self) -> None:
        """E26, at every moment: emitted = acked + failed + pending."""
        for task in self.cluster.tasks(SpoutTask):
            if self.spec.acking:
                assert task.spout.tracked == task.spout.heard + task.account.pending

    def check_empty(self) -> None:
        """Nothing is left anywhere."""
        for worker in self.cluster.workers:
            ledger = worker.statistics()
            assert (ledger.open, ledger.known_outside, ledger.outgoing, worker.backlog) == (0, 0, 0, 0)


@pytest.mark.parametrize("workers", [1, 2, 3])
@pytest.mark.parametrize("seed", SEEDS)
def test_in_process(seed: int, workers: int) -> None:
    """A15, B4-B9, C2, C3, C5, C9, D1-D13, D15, E14, E17, E20, E22-E27, E29-E32, E34, X68.

    Supersteps as on Spark, without a JVM.
    """
    spec = random_topology(seed)
    with shown(spec):
        run = InProcess(spec, workers, Random(seed))
        run.run()
        check(spec, run.notes)
        run.check_empty()
        if not any(task.counters.restarts for task in run.cluster.tasks(BoltTask)):
            assert all(worker.statistics().parts == 0 for worker in run.cluster.workers)


@given(random=st.randoms(use_true_random=False), workers=st.integers(1, 3))
def test_in_process_made_small(random: Random, workers: int) -> None:
    """The same; what fails comes as the smallest topology that does."""
    spec = topology_from(random, "fuzz")
    with shown(spec):
        run = InProcess(spec, workers, Random(1))
        run.run()
        check(spec, run.notes)
        run.check_empty()


@pytest.mark.parametrize("seed", SEEDS)
def test_in_process_with_lost_workers(seed: int) -> None:
    """B10, E15, E16, E22-E24, E26, E31, E33, E35: attempts fail in random supersteps of random batches, and workers die.

    Spouts that live hear one verdict for each of their messages, ``acked`` only of what was executed whole, and the model's
    of what they emit after the last loss. Spouts of a lost worker are opened anew and emit their messages again. Nothing
    comes twice.
    """
    spec, random = random_topology(seed), Random(seed)
    with shown(spec):
        run = InProcess(spec, random.randint(2, 3), random)
        losses = sorted(random.randint(0, 8) for _ in range(random.randint(1, 3)))
        before: set[Message] = set()

        def lose() -> None:
            while losses and losses[0] == run.cluster.batch:
                losses.pop(0)
                victim = random.choice([None, *range(run.cluster.plan.workers)])
                run.cluster.fail_attempt(random.randint(0, run.cluster.plan.last_superstep), victim)
                before.update(run.notes.emitted)

        run.run(lose)
        assert not losses
        run.check_empty()
        check_after_losses(spec, run.notes, before)


def check_after_losses(spec: TopologySpec, notes: Notes, before: set[Message]) -> None:
    """What must hold although something was lost of the messages ``before`` the last loss."""
    foretold = foretell(spec, notes.emitted)
    assert notes.wrong == []
    newest = newest_lives(notes.emitted)
    for id, messages in foretold.messages.items():
        spout, index, _, life = messages[0]
        heard, expected = notes.verdicts.get(id, Counter()), foretold.verdicts[id]
        if life < newest[spout, index]:
            assert heard.total() <= expected.total()  # its spout is gone; it may have heard before
            continue
        assert heard.total() == expected.total()
        assert heard.keys() <= {"ACKED", "FAILED", "WORKER_LOST"}
        if spec.joins:
            continue  # a partner that was lost takes its fate, and its tuples, with it
        assert heard["ACKED"] <= expected["ACKED"] and heard["FAILED"] <= expected["FAILED"]
        if not before.intersection(messages):
            assert heard == expected
        if heard["ACKED"] == len(messages):
            check_executed(notes, foretold, messages)
    if not spec.joins:
        assert notes.executed <= foretold.executed, "something came twice"


def check_executed(notes: Notes, foretold: Foretold, messages: list[Message]) -> None:
    """E23: acked means that all that was anchored to these messages was executed."""
    keys = {str([list(message)]).replace("'", '"') for message in messages}
    for key, count in foretold.promised.items():
        if key[1] in keys:
            assert notes.executed[key] >= count


def test_all_groupings_are_among_them() -> None:
    """D1-D13: every grouping that users can write comes up. `LocalWhileHeldGrouping` is what planning makes of some of them."""
    public = {getattr(stormspark.grouping, name) for name in stormspark.grouping.__all__}
    there_are = {one for one in public if isinstance(one, type) and issubclass(one, Grouping)}
    there_are -= {Grouping, LocalWhileHeldGrouping}
    met = {
        CustomGrouping if isinstance(one.grouping, FirstAndLast) else type(one.grouping)
        for seed in range(300)
        for bolt in random_topology(seed).bolts
        for one in bolt.inputs
    }
    assert met == there_are


def on_an_engine(spec: TopologySpec, folder: Path, start: Callable[[Topology, dict[str, Any]], Any]) -> None:
    """Run it on real time until it is idle, and compare."""
    folder.mkdir()
    begin_run()
    running = start(built(spec), {FOLDER: str(folder)})
    try:
        wait_until_idle(running)
        statistics = running.statistics()
    finally:
        running.stop()
    assert running.error is None
    check(spec, Notes.read(folder))
    assert statistics.total("pending") == 0


@pytest.mark.slow
@pytest.mark.parametrize("delivery", ["at least once", "exactly once"])
@pytest.mark.parametrize("seed", WAITING)
def test_components_that_wait_on_the_local_engine(seed: int, delivery: str, tmp_path: Path) -> None:
    """A16: as above, with threads of executors, whose calls wait at random."""
    spec = waiting_topology(seed, exactly_once=delivery == "exactly once")
    workers = {"topology.workers": 1 + seed % 3}
    with shown(spec):
        on_an_engine(spec, tmp_path / "local", lambda topology, conf: submit(topology, conf=conf | workers))


@pytest.mark.spark
@pytest.mark.parametrize("delivery", ["at least once", "exactly once"])
@pytest.mark.parametrize("seed", WAITING_ON_SPARK)
def test_components_that_wait_on_spark(
    seed: int, delivery: str, start: Callable[..., Any], tmp_path: Path
) -> None:
    """A16: as on the local engine."""
    spec = waiting_topology(seed, exactly_once=delivery == "exactly once")
    workers = {"topology.workers": 1 + seed % 3}
    with shown(spec):
        on_an_engine(spec, tmp_path / "spark", lambda topology, conf: start(topology, conf=conf | workers))


@pytest.mark.spark
@pytest.mark.parametrize("seed", ON_SPARK)
def test_on_spark_and_on_the_local_engine(seed: int, start: Callable[..., Any], tmp_path: Path) -> None:
    """A15, B4-B9, C2, C3, C5, C9, D1-D13, D15, E14, E17, E20, E22-E27, E29-E32, E34, X68.

    On one, two or three workers, by the seed.
    """
    spec = random_topology(seed)
    workers = {"topology.workers": 1 + seed % 3}
    with shown(spec):
        on_an_engine(spec, tmp_path / "local", lambda topology, conf: submit(topology, conf=conf | workers))
        on_an_engine(spec, tmp_path / "spark", lambda topology, conf: start(topology, conf=conf | workers))
