"""E14, E20-E27, E30, E32-E35: spouts and bolts that use their collectors in every way, against a model of a few lines.

Bolts keep every tuple; the test acks, fails and anchors to them as it likes, between batches, so it knows what is open. Tuples
travel as they always do, between one to three workers.
"""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark import Bolt, Fields, Spout, TopologyBuilder, Tuple
from stormspark.errors import EmitError
from stormspark.plan import plan_topology
from stormspark.wire.frames import Frame, FrameKind
from stormspark.worker.bolt_task import BoltTask
from stormspark.worker.core import Worker
from stormspark.worker.spout_task import SpoutTask
from stormspark.worker.step import Step
from tests.fuzz.attempts import exchange

#: What the bolt hears of: by shuffle, in all of its tasks, in a task that is named, and not at all.
STREAMS = ("default", "every", "named", "nobody")


class Told(Spout):
    """Does in each ``next_tuple`` one of the things that it is told."""

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.todo: list[Callable[[Any], None]] = []
        self.heard: list[tuple[str, Any]] = []
        self.most_pending = 0

    def next_tuple(self) -> None:
        if self.todo:
            self.todo.pop(0)(self.collector)
            self.most_pending = max(self.most_pending, self.collector.pending_count)

    def ack(self, message_id: Any) -> None:
        self.heard.append(("ACKED", message_id))

    def fail(self, message_id: Any) -> None:
        self.heard.append((self.collector.verdict.outcome.name, message_id))

    def declare_output_fields(self, declarer: Any) -> None:
        declare(declarer)


class Keep(Bolt):
    """Keeps its tuples; raises at the next one where it is told to."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.task = context.this_task_id
        self.kept: list[Tuple] = []
        self.raises: Callable[[Keep, Tuple], None] | None = None

    def execute(self, tup: Any) -> None:
        if self.raises is not None:
            self.raises(self, tup)
            raise KeyError(tup["uid"])
        self.kept.append(tup)

    def declare_output_fields(self, declarer: Any) -> None:
        declare(declarer)


def declare(declarer: Any) -> None:
    for stream in STREAMS:
        declarer.declare_stream(stream, Fields("uid"), direct=stream == "named")


@dataclass(frozen=True)
class MessageId:
    """Equal to the ids of other emits, but for us."""

    key: int
    number: int = field(compare=False)


@dataclass(eq=False)
class Emit:
    """A tracked emit: how many of its tuples are open, and where its spout is."""

    task: int
    open: int = 0
    failed: bool = False


class Play:
    """Workers, what their components were told to do, and what must come of it."""

    def __init__(self, workers: int, seed: int, *, acking: bool = True) -> None:
        self.acking = acking
        self.random = random = Random(seed)
        self.limit = random.choice([None, None, 1, 3])
        builder = TopologyBuilder()
        builder.set_spout("told", Told(), 2)
        keep = builder.set_bolt("keep", Keep(), 3)
        for source in ("told", "keep"):
            keep.shuffle_grouping(source).all_grouping(source, "every").direct_grouping(source, "named")
        conf = {
            "topology.workers": workers,
            "topology.acker.executors": None if acking else 0,
            "topology.enable.message.timeouts": False,
            "topology.max.spout.pending": self.limit,
            "stormspark.task.max.restarts.in.row": 1_000_000,
            "stormspark.story.sample": 2,  # tracing changes nothing (W6)
            "stormspark.story.samples.per.sec": 1_000_000,
        }
        self.plan = plan_topology(builder.create_topology("play"), conf)
        self.keepers = self.plan.components["keep"].tasks
        self.workers = [self.new_worker(index, 0) for index in range(workers)]
        self.batch = self.attempt = self.uids = 0
        self.emits: dict[int, Emit] = {}
        self.unsettled: dict[int, Emit] = {}
        self.never = MessageId(0, -1)
        self.roots: dict[int, list[int]] = {-1: []}  # of a tuple: the numbers of its emits, by its uid
        self.settled: dict[int, list[Tuple]] = {task: [] for task in self.keepers}
        self.largest_burst = 1

    def new_worker(self, index: int, incarnation: int) -> Worker:
        random = Random(self.random.getrandbits(64))
        worker = Worker(
            self.plan, index, incarnation=incarnation, clock=lambda: 0.0, epoch=0.0, random=random
        )
        worker.open()
        return worker

    def tasks(self, kind: type) -> list[Any]:
        return [task for worker in self.workers for task in worker.tasks.values() if isinstance(task, kind)]

    def any_bolt(self) -> Any:
        return self.random.choice(self.tasks(BoltTask)).bolt

    # -- what spouts are told --------------------------------------------------------------------------------

    def spout_emits(self) -> None:
        """Tuples with ids of their own or the same one, without one, to everybody or nobody (E30, E32)."""
        task = self.random.choice(self.tasks(SpoutTask))
        key, kinds = (
            self.random.randrange(5),
            [self.random.choice("mmmu") for _ in range(self.random.choice([1, 1, 3]))],
        )
        self.largest_burst = max(self.largest_burst, kinds.count("m"))

        def emit(collector: Any) -> None:
            for kind in kinds:
                if kind == "u":
                    self.send(collector, [])
                    continue
                number = self.new_emit(task.id)
                self.send(collector, [number], message_id=MessageId(key, number))
                self.heard_at_once(task, number)

        task.spout.todo.append(emit)

    def spout_emits_a_group(self) -> None:
        """A spout emits some tuples as one group, which has one verdict (X68)."""
        task, tuples = self.random.choice(self.tasks(SpoutTask)), self.random.randrange(4)

        def emit(collector: Any) -> None:
            number = self.new_emit(task.id)
            with collector.group(MessageId(0, number)) as group:
                for _ in range(tuples):
                    self.send(group, [number])
            self.heard_at_once(task, number)

        task.spout.todo.append(emit)

    def spout_raises(self) -> None:
        """A spout raises in next_tuple, perhaps after an emit, and hears no verdict of what it emitted (B10, E35)."""
        task = self.random.choice(self.tasks(SpoutTask))

        def fall(collector: Any) -> None:
            self.check_verdicts(task.spout.heard)
            self.forget(task.id)
            if self.random.random() < 0.5:
                collector.emit((-1,), message_id=self.never)  # nobody will hear of it, unless it is at once
            raise KeyError("told to")

        task.spout.todo.append(fall)

    def heard_at_once(self, task: SpoutTask, number: int) -> None:
        """E29: without ackers."""
        heard = task.spout.heard  # type: ignore[attr-defined]
        if self.acking:
            assert all(message.number != number for _, message in heard), "no ack comes inside emit"
        else:
            what, message = heard.pop()
            assert (what, message.number) == ("ACKED", number)
            del self.unsettled[number]

    def new_emit(self, task: int) -> int:
        number = len(self.emits)
        self.emits[number] = self.unsettled[number] = Emit(task)
        return number

    def forget(self, task: int) -> None:
        for number in [number for number, emit in self.unsettled.items() if emit.task == task]:
            del self.unsettled[number]

    def send(self, collector: Any, roots: list[int], **how: Any) -> None:
        """Emit on some stream, and count the copies."""
        uid, stream = self.uids, self.random.choice(STREAMS)
        self.uids += 1
        self.roots[uid] = roots
        if stream == "named":
            target = self.random.choice([*self.keepers, 0])  # B9: a task that does not subscribe gets nothing
            collector.emit_direct(target, (uid,), stream, **how)
            copies = int(target != 0)
        else:
            copies = len(collector.emit((uid,), stream, **how))
        for number in roots:
            self.emits[number].open += copies

    # -- what bolts are told ---------------------------------------------------------------------------------

    def bolt_emits(self) -> None:
        """Anchored to some of what it keeps, of the same message or of several; or to nothing (E4, E17, E34)."""
        bolt = self.any_bolt()
        anchors = self.random.sample(bolt.kept, min(len(bolt.kept), self.random.randrange(4)))
        roots = list(dict.fromkeys(number for tup in anchors for number in self.roots[tup["uid"]]))
        self.send(bolt.collector, roots, anchors=anchors * self.random.choice([1, 2]))

    def bolt_acks(self) -> None:
        """In any order."""
        bolt = self.any_bolt()
        if bolt.kept:
            tup = self.settle(bolt)
            bolt.collector.ack(tup)
            self.close(tup)

    def bolt_fails(self) -> None:
        """E24, E25: exactly the tuple's messages."""
        bolt = self.any_bolt()
        if bolt.kept:
            tup = self.settle(bolt)
            bolt.collector.fail(tup, "told to")
            self.close(tup, fail=True)

    def settle(self, bolt: Any) -> Any:
        tup = bolt.kept.pop(self.random.randrange(len(bolt.kept)))
        self.settled[bolt.task].append(tup)
        return tup

    def close(self, tup: Any, fail: bool = False) -> None:
        for number in self.roots[tup["uid"]]:
            self.emits[number].open -= 1
            self.emits[number].failed |= fail

    def bolt_settles_twice(self) -> None:
        """E14: it is reported, and changes nothing; and nothing can be anchored there."""
        task = self.random.choice(self.tasks(BoltTask))
        if self.settled[task.id]:
            tup, errors = self.random.choice(self.settled[task.id]), task.counters.errors
            self.random.choice([task.bolt.collector.ack, task.bolt.collector.fail])(tup)
            assert task.counters.errors == errors + 1
            with pytest.raises(EmitError, match="anchored to"):
                task.bolt.collector.emit((0,), anchors=[tup])

    def bolt_resets_a_timeout(self) -> None:
        """C11: no verdict changes."""
        bolt = self.any_bolt()
        for tup in self.random.sample(bolt.kept, min(len(bolt.kept), 2)):
            bolt.collector.reset_timeout(tup)

    def bolt_raises(self) -> None:
        """W22: at the next tuple; that one and all that it keeps fail."""

        def lose(bolt: Keep, tup: Tuple) -> None:
            for one in [*bolt.kept, tup]:
                self.close(one, fail=True)
            # A tuple without a tree concerns nobody, so nobody has closed it.
            self.settled[bolt.task] += [one for one in bolt.kept if one.roots is not None]

        self.any_bolt().raises = lose

    # -- what befalls workers --------------------------------------------------------------------------------

    def one_batch(self) -> None:
        inbound: list[list[Frame]] = [[] for _ in self.workers]
        for superstep in range(self.plan.last_superstep + 1):
            step = Step(self.batch, self.attempt, superstep)
            replies = [worker.run(step, inbound[worker.index]) for worker in self.workers]
            inbound = exchange(replies, len(self.workers))
        reports = [
            pickle.loads(f.payload) for frames in inbound for f in frames if f.kind == FrameKind.REPORT
        ]
        self.backlog = sum(report.backlog for report in reports)
        self.batch += 1
        for worker in self.workers:
            worker.validate()
        for task in self.tasks(SpoutTask):
            self.check_verdicts(task.spout.heard)
            task.spout.heard.clear()
            if self.limit is not None:
                assert task.spout.most_pending <= self.limit + self.largest_burst - 1, "E27"
        self.check_books()

    def quiet(self) -> None:
        """Until all that was sent has arrived, and every verdict with it."""
        for _ in range(1000):
            self.one_batch()
            more = any(task.spout.todo and task.may_emit for task in self.tasks(SpoutTask))
            if not self.backlog and not more:
                break
        else:
            raise AssertionError("not quiet after 1000 batches")
        for number, emit in self.unsettled.items():
            assert emit.open and not emit.failed, f"{number}: {emit} has no verdict (E20, E22, E24)"

    def worker_dies(self) -> None:
        """E15, E16: what was at home goes on, what had something elsewhere fails at once; late acks change nothing (E33)."""
        self.quiet()
        dead = self.random.randrange(len(self.workers))
        outside: set[int] = set()
        for worker in self.workers:
            for task in worker.tasks.values():
                if isinstance(task, SpoutTask) and worker.index == dead:
                    self.forget(task.id)
                elif isinstance(task, BoltTask):
                    bolt: Any = task.bolt
                    numbers = {number for tup in bolt.kept for number in self.roots[tup["uid"]]}
                    outside.update(
                        n for n in numbers if self.plan.tasks[self.emits[n].task].worker != worker.index
                    )
            self.settled.update({task: [] for task in worker.tasks if worker.index == dead})
        self.attempt += 1
        self.workers[dead] = self.new_worker(dead, self.attempt)
        for worker in self.workers:
            if worker.index != dead:
                worker.begin_attempt("it died")
        expected = Counter(number for number in outside if number in self.unsettled)
        lost = Counter(
            tree.message_id.number for task in self.tasks(SpoutTask) for tree in task.account.ended
        )
        assert lost == expected
        self.one_batch()

    # -- what must hold --------------------------------------------------------------------------------------

    def check_verdicts(self, heard: Iterable[tuple[str, MessageId]]) -> None:
        for what, message in heard:
            emit = self.unsettled.pop(message.number, None)
            assert emit is not None, f"{message} has two verdicts, or its spout is gone (E22, E35)"
            if what == "ACKED":
                assert not emit.open and not emit.failed, f"{message}: {emit} (E20, E23)"
            elif what == "FAILED":
                assert emit.failed, f"{message}: {emit} (E25)"

    def check_books(self) -> None:
        """E26: emitted = acked + failed + pending, of each spout task."""
        pending = Counter(emit.task for emit in self.unsettled.values())
        for task in self.tasks(SpoutTask):
            assert task.account.pending == pending[task.id] == task.spout.collector.pending_count

    def end(self) -> None:
        """All is acked: nothing is left."""
        while True:
            self.quiet()
            bolts = [task.bolt for task in self.tasks(BoltTask)]
            kept = [(bolt, tup) for bolt in bolts for tup in bolt.kept]
            if not kept:
                break
            for bolt, tup in kept:
                bolt.kept.remove(tup)
                bolt.collector.ack(tup)
                self.close(tup)
        assert not self.unsettled
        for worker in self.workers:
            ledger = worker.statistics()
            assert (ledger.open, ledger.known_outside, ledger.parts, ledger.outgoing) == (0, 0, 0, 0)


ACTIONS = [
    *["spout_emits"] * 8,
    *["bolt_emits"] * 10,
    *["bolt_acks"] * 12,
    *["one_batch"] * 8,
    *["spout_emits_a_group"] * 2,
    *["bolt_settles_twice"] * 2,
    "bolt_fails",
    "bolt_resets_a_timeout",
    "bolt_raises",
    "spout_raises",
    "quiet",
    "worker_dies",
]


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 3), steps=st.integers(50, 250))
def test_every_use_of_the_collectors_has_the_verdicts_of_the_model(
    seed: int, workers: int, steps: int
) -> None:
    """B4-B7, B9, B10, C2, E4, E14-E17, E20, E22-E27, E30, E32-E35, X68: in any order, with restarts and lost workers."""
    play = Play(workers, seed)
    for _ in range(steps):
        getattr(play, play.random.choice(ACTIONS))()
    play.end()


@given(seed=st.integers(0, 2**32), workers=st.integers(1, 3), steps=st.integers(1, 100))
def test_without_ackers_the_ack_comes_inside_emit_and_nothing_ever_fails(
    seed: int, workers: int, steps: int
) -> None:
    """B8, C3, E29, X68: whatever bolts do; a group's comes at its end."""
    play = Play(workers, seed, acking=False)
    for _ in range(steps):
        getattr(play, play.random.choice(ACTIONS))()
    play.end()
