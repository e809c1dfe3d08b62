"""E20-E28, E30, E32, E33, E35: ledgers of several workers against a plain model.

Tuples are emitted, joined, moved, acked, failed and dropped, timeouts reset, time passes, spout tasks begin anew and workers
die; messages between workers arrive in any order. The model knows where each tuple is, and nothing of counts, edges or values.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from stormspark.acker import (
    ACKED,
    Branch,
    Ledger,
    Outcome,
    Part,
    Parts,
    RemoteEdges,
    SpoutAccount,
    TracedPart,
    TracedTree,
    Tree,
    Verdict,
)

TIMEOUT = 30


@dataclass(eq=False)
class Emit:
    """One tracked emit of a spout, as the model sees it."""

    home: int
    account: int
    message_id: int
    tree: Tree
    touched: int  # when it began, or its home last heard of a reset
    open: int = 0  # tuples that are neither acked nor failed, wherever they are
    grouped: bool = False  # the spout still emits tuples of this message (X68)
    failed: bool = False
    old_at: int | None = None  # the first look at the clock that found it a timeout old
    verdict: Verdict | None = None
    gone: bool = False  # its spout task has begun anew


@dataclass(eq=False)
class Sum:
    """A trace (W6) that adds up what it is told."""

    root_id: int
    open: int = 0
    verdicts: list[Verdict] = field(default_factory=list)

    def changed(self, branch: Branch, by: int) -> None:
        self.open += by

    def arrived(self, task: int, tuples: int) -> None:
        """It is the worker that tells this."""

    def ended(self, branch: Branch, verdict: Verdict) -> None:
        self.verdicts.append(verdict)


@dataclass(eq=False)
class OpenTuple:
    """A tuple that waits in a worker: the emits it belongs to, and what the ledger handed out for them."""

    emits: list[Emit]
    branches: list[Branch]


@dataclass(eq=False)
class Message:
    """Something under way from one worker to another."""

    target: int
    tuples: list[list[Emit]] = field(default_factory=list)
    edges: RemoteEdges | None = None
    references: list[list[int]] = field(default_factory=list)
    parts: Parts | None = None
    #: Emits that it speaks of, and those of which the sender holds nothing any more.
    told: list[Emit] = field(default_factory=list)
    resets: list[Emit] = field(default_factory=list)


class World:
    """Ledgers of several workers, and the model. ``choose(n)`` draws a number below n; it decides all that is open."""

    def __init__(self, workers: int, seed: int) -> None:
        self.choose: Callable[[int], int]
        self.random = Random(seed)
        self.now = 0
        self.ledgers = [self.new_ledger(worker) for worker in range(workers)]
        self.accounts = [[SpoutAccount(worker), SpoutAccount(worker)] for worker in range(workers)]
        self.emitted = 0
        self.by_tree: dict[Tree, Emit] = {}
        self.unsettled: dict[Emit, None] = {}
        self.groups: list[Emit] = []
        self.waiting: list[list[OpenTuple]] = [[] for _ in range(workers)]
        self.dropped: list[list[OpenTuple]] = [[] for _ in range(workers)]
        self.under_way: list[Message] = []
        self.untold: list[dict[Emit, None]] = [{} for _ in range(workers)]
        self.resets: list[dict[Emit, None]] = [{} for _ in range(workers)]
        self.callbacks: Counter[int] = Counter()

    def new_ledger(self, worker: int) -> Ledger:
        ledger = Ledger(worker, lambda n: [self.random.getrandbits(64) for _ in range(n)], TIMEOUT, Sum)
        ledger.rotate(self.now)  # as a worker does before its first tuple
        return ledger

    def any_worker(self) -> int:
        return self.choose(len(self.ledgers))

    def worker_with_tuples(self) -> int | None:
        busy = [worker for worker, tuples in enumerate(self.waiting) if tuples]
        return busy[self.choose(len(busy))] if busy else None

    def pick(self, things: list[Any]) -> Any:
        return things.pop(self.choose(len(things)))

    # -- spouts ----------------------------------------------------------------------------------------------

    def spout_emits(self) -> None:
        """E30: also to nobody."""
        self.emit(self.choose(4), grouped=False)

    def group_begins(self) -> None:
        """X68: one message of several tuples; frames may leave before its end."""
        self.emit(0, grouped=True)

    def emit(self, copies: int, grouped: bool) -> None:
        home, number = self.any_worker(), self.choose(2)
        message_id = self.emitted // 3  # the same one for several emits: each has its own verdict (E32)
        self.emitted += 1
        account = self.accounts[home][number]
        if self.choose(2):
            trace = Sum(self.ledgers[home].new_root(traced=True))
            tree: Tree = TracedTree(account, message_id, 0.0, trace)
        else:
            tree = Tree(account, message_id, 0.0)
        emit = Emit(home, number, message_id, tree, touched=self.now, open=copies, grouped=grouped)
        self.by_tree[tree] = emit
        self.unsettled[emit] = None
        if grouped:
            self.groups.append(emit)
        tree.count = copies + grouped
        self.ledgers[home].begin(tree)
        if not tree.count:
            self.ledgers[home].drained(tree)
        self.waiting[home].extend(OpenTuple([emit], [tree]) for _ in range(copies))

    def group_goes_on(self) -> None:
        """An open group emits some more tuples, and may end (X68)."""
        if not self.groups:
            return
        emit, copies = self.groups[self.choose(len(self.groups))], self.choose(3)
        emit.open += copies
        emit.tree.count += copies
        self.waiting[emit.home].extend(OpenTuple([emit], [emit.tree]) for _ in range(copies))
        if self.choose(2):
            self.group_ends(emit)

    def group_ends(self, emit: Emit) -> None:
        self.groups.remove(emit)
        emit.grouped = False
        self.close(self.ledgers[emit.home], emit.tree)

    def spout_task_begins_anew(self) -> None:
        """A spout's task starts again, and its ledger forgets the trees of that task (B10, E35)."""
        home, number = self.any_worker(), self.choose(2)
        mine = [e for e in self.unsettled if (e.home, e.account) == (home, number)]
        assert self.ledgers[home].forget(self.accounts[home][number]) == len(mine)
        self.forget(mine)

    def forget(self, emits: list[Emit]) -> None:
        for emit in emits:
            emit.gone = True
            del self.unsettled[emit]
        self.groups = [emit for emit in self.groups if not emit.gone]

    # -- bolts -----------------------------------------------------------------------------------------------

    def bolt_executes(self) -> None:
        """Take some tuples, emit children anchored to all of them, then ack each, or fail one.

        Tuples that were joined before bring several emits, and several tuples may belong to one emit (E4, E17).
        """
        worker = self.worker_with_tuples()
        if worker is None:
            return
        ledger, tuples = self.ledgers[worker], self.waiting[worker]
        taken = [self.pick(tuples) for _ in range(min(1 + self.choose(3), len(tuples)))]
        emits = list(dict.fromkeys(emit for one in taken for emit in one.emits))
        branches = list(dict.fromkeys(branch for one in taken for branch in one.branches))
        for _ in range(self.choose(4)):
            for emit in emits:
                emit.open += 1
            for branch in branches:
                branch.count += 1
            tuples.append(OpenTuple(emits, branches))
        fails = self.choose(16)
        for position, one in enumerate(taken):
            if fails == position:
                for emit in one.emits:
                    emit.failed = True
                for branch in one.branches:
                    ledger.fail(branch, Verdict(Outcome.FAILED, "no"))
            for emit in one.emits:
                emit.open -= 1
            for branch in one.branches:
                self.close(ledger, branch)

    def close(self, ledger: Ledger, branch: Branch) -> None:
        branch.count -= 1
        if not branch.count:
            ledger.drained(branch)

    def bolt_drops_a_tuple(self) -> None:
        """E16: nobody will ever ack it."""
        worker = self.worker_with_tuples()
        if worker is not None:
            self.dropped[worker].append(self.pick(self.waiting[worker]))

    def bolt_resets_a_timeout(self) -> None:
        """A bolt resets the timeout of a tuple that it holds; ledgers of other workers hear of it later (C11)."""
        worker = self.worker_with_tuples()
        if worker is None:
            return
        one = self.waiting[worker][self.choose(len(self.waiting[worker]))]
        for branch in one.branches:
            self.ledgers[worker].reset_timeout(branch)
        for emit in one.emits:
            if emit.home == worker:
                self.touch(emit)
            else:
                self.resets[worker][emit] = None

    def touch(self, emit: Emit) -> None:
        emit.touched, emit.old_at = self.now, None

    # -- messages --------------------------------------------------------------------------------------------

    def frame_leaves(self) -> None:
        source = self.worker_with_tuples()
        if source is None or len(self.ledgers) == 1:
            return
        target = (source + 1 + self.choose(len(self.ledgers) - 1)) % len(self.ledgers)
        tuples = self.waiting[source]
        sent = [self.pick(tuples) for _ in range(min(1 + self.choose(5), len(tuples)))]
        counts = Counter(branch for one in sent for branch in one.branches)
        numbers = {branch: number for number, branch in enumerate(counts)}
        self.under_way.append(
            Message(
                target,
                tuples=[one.emits for one in sent],
                edges=self.ledgers[source].send(counts),
                references=[[numbers[branch] for branch in one.branches] for one in sent],
            )
        )

    def parts_leave(self) -> None:
        """E5, E21: what one worker has to say may come in any order, too."""
        self.send_parts(self.any_worker(), split=bool(self.choose(2)))

    def send_parts(self, sender: int, split: bool = False) -> None:
        held = {emit for one in self.waiting[sender] + self.dropped[sender] for emit in one.emits}
        told = [emit for emit in self.untold[sender] if emit not in held]
        for emit in told:
            del self.untold[sender][emit]
        homes = {emit.home for emit in told} | {emit.home for emit in self.resets[sender]}
        sent = self.ledgers[sender].parts_to_send
        by_root = {tree.root_id: emit for tree, emit in self.by_tree.items() if tree.root_id}
        for home in sorted(homes | set(sent)):
            parts = sent.pop(home, None) or Parts()
            spoken_of = [by_root[root] for root in [*parts.roots, *(root for root, _ in parts.fails)]]
            whole = Message(
                home,
                parts=parts,
                told=list(dict.fromkeys([*(emit for emit in told if emit.home == home), *spoken_of])),
                resets=[emit for emit in self.resets[sender] if emit.home == home],
            )
            self.under_way.extend(split_up(whole) if split else [whole])
        self.resets[sender].clear()

    def message_arrives(self) -> None:
        if self.under_way:
            self.deliver(self.pick(self.under_way))

    def deliver(self, message: Message) -> None:
        ledger = self.ledgers[message.target]
        for emit in message.resets:
            self.touch(emit)
        if message.parts is not None:
            ledger.take_parts(message.parts)
        if message.edges is not None:
            branches = ledger.receive(message.edges)
            for emits, references in zip(message.tuples, message.references, strict=True):
                self.waiting[message.target].append(OpenTuple(emits, [branches[n] for n in references]))
                self.untold[message.target].update(
                    (emit, None) for emit in emits if emit.home != message.target
                )

    # -- time ------------------------------------------------------------------------------------------------

    def time_passes(self) -> None:
        """E10, E28: some workers look at their clock, others are busy for longer."""
        self.now += self.choose(TIMEOUT)
        for worker in range(len(self.ledgers)):
            if self.choose(2):
                self.look(worker)

    def look(self, worker: int) -> None:
        self.ledgers[worker].rotate(self.now)
        self.hear()
        for emit in self.unsettled:
            # A reset that comes after a fail in the same worker is not sent, so time is not exact then.
            if emit.home == worker and self.now >= emit.touched + TIMEOUT and not emit.failed:
                # By this look it must be in the older bucket, so a look one timeout later ends it.
                if emit.old_at is None:
                    emit.old_at = self.now
                assert self.now < emit.old_at + TIMEOUT, f"{emit} has not timed out (E28)"

    # -- losses ----------------------------------------------------------------------------------------------

    def attempt_ends(self) -> None:
        """Spark failed, or a worker died: all that was under way is lost. Trees that lived at home go on."""
        outside = self.outside()
        expected = {emit for emit in self.unsettled if emit in outside}
        self.under_way.clear()
        for resets in self.resets:
            resets.clear()
        if self.choose(2):
            dead = self.any_worker()
            gone = [emit for emit in self.unsettled if emit.home == dead]
            self.forget(gone)
            expected.difference_update(gone)
            self.ledgers[dead] = self.new_ledger(dead)
            self.accounts[dead] = [SpoutAccount(dead), SpoutAccount(dead)]
            self.waiting[dead].clear()
            self.dropped[dead].clear()
            self.untold[dead].clear()
        for ledger in self.ledgers:
            ledger.abandon("lost")
        lost = {emit for emit in self.unsettled if emit.tree.verdict is not None}
        assert lost == expected
        assert all(emit.tree.verdict == Verdict(Outcome.WORKER_LOST, "lost") for emit in expected)

    def outside(self) -> set[Emit]:
        """The emits of which something is not at home: tuples, or acks that their home has not heard of."""
        found: set[Emit] = set()
        for worker, untold in enumerate(self.untold):
            found.update(untold)
            for one in self.waiting[worker] + self.dropped[worker]:
                found.update(emit for emit in one.emits if emit.home != worker)
        for message in self.under_way:
            found.update(message.told)
            found.update(emit for emits in message.tuples for emit in emits)
        return found

    # -- what must hold --------------------------------------------------------------------------------------

    def hear(self) -> None:
        """Take the verdicts, as spout tasks do."""
        for account in (account for accounts in self.accounts for account in accounts):
            for tree in account.ended:
                emit = self.by_tree[tree]
                assert emit.verdict is None, "two verdicts for one tree (E22)"
                assert not emit.gone, "a verdict for a spout that has begun anew (E35)"
                assert tree.verdict is not None
                emit.verdict = tree.verdict
                del self.unsettled[emit]
                self.callbacks[emit.message_id] += 1
                if tree.verdict is ACKED:
                    assert not emit.open and not emit.grouped, "acked while something is open (E20, E23)"
                    assert not emit.failed, "acked although a bolt failed it (E24)"
                elif tree.verdict.outcome is Outcome.FAILED:
                    assert emit.failed, "failed, but by nobody (E25)"
                elif tree.verdict.outcome is Outcome.TIMED_OUT:
                    assert emit.failed or self.now >= emit.touched + TIMEOUT, "timed out too early (E28)"
            account.ended.clear()

    def check(self) -> None:
        self.hear()
        outside = self.outside()
        pending: Counter[tuple[int, int]] = Counter()
        for emit in self.unsettled:
            pending[emit.home, emit.account] += 1
            assert emit.open or emit.grouped or emit in outside, f"{emit} is done, but not acked (E20)"
            assert not emit.failed or emit in outside, f"{emit} was failed at home (E24)"
        for worker, accounts in enumerate(self.accounts):
            for number, account in enumerate(accounts):
                assert account.pending == pending[worker, number], "emitted = acked + failed + pending (E26)"
        for ledger in self.ledgers:
            ledger.validate()
        self.check_traces()

    def check_traces(self) -> None:
        """W6: a trace knows what its tree knows, and every worker knows which trees are traced."""
        for tree in self.by_tree:
            traced = isinstance(tree, TracedTree)
            assert not tree.root_id or traced == (tree.root_id % 2 == 0)
            if isinstance(tree, TracedTree):
                assert isinstance(tree.trace, Sum)
                assert tree.trace.open == tree.count
                assert tree.trace.verdicts == ([] if tree.verdict is None else [tree.verdict])
        for worker, tuples in enumerate(self.waiting):
            for branch in (branch for one in tuples for branch in one.branches):
                if isinstance(branch, Part) and branch.home != worker:
                    assert isinstance(branch, TracedPart) == (branch.root_id % 2 == 0)

    def end(self) -> None:
        """Ack all that is left: then every emit has its verdict, and no table holds anything."""
        for emit in list(self.groups):
            self.group_ends(emit)
        while any(self.waiting) or self.under_way or any(ledger.parts_to_send for ledger in self.ledgers):
            for ledger, tuples in zip(self.ledgers, self.waiting, strict=True):
                for one in tuples:
                    for emit in one.emits:
                        emit.open -= 1
                    for branch in one.branches:
                        self.close(ledger, branch)
                tuples.clear()
            for sender in range(len(self.ledgers)):
                self.send_parts(sender)
            under_way, self.under_way = self.under_way, []
            for message in under_way:
                self.deliver(message)
        self.check()
        never = {emit for dropped in self.dropped for one in dropped for emit in one.emits}
        assert set(self.unsettled) <= never
        for _ in range(3):
            self.now += TIMEOUT
            for worker in range(len(self.ledgers)):
                self.look(worker)
        assert not self.unsettled, "E22: a verdict for each"
        heard = Counter(emit.message_id for emit in self.by_tree.values() if emit.verdict is not None)
        assert self.callbacks == heard, "as many verdicts as emits, whatever their ids (E32)"
        for ledger in self.ledgers:
            statistics = ledger.statistics()
            assert (statistics.open, statistics.known_outside, statistics.parts) == (0, 0, 0)


def split_up(whole: Message) -> Iterator[Message]:
    """Each part, fail and reset as a message of its own."""
    assert whole.parts is not None
    for root, value in zip(whole.parts.roots, whole.parts.values, strict=True):
        yield Message(
            whole.target, parts=Parts(array("Q", [root]), array("Q", [value])), told=among(whole.told, root)
        )
    for root, verdict in whole.parts.fails:
        yield Message(whole.target, parts=Parts(fails=[(root, verdict)]), told=among(whole.told, root))
    for root in whole.parts.resets:
        yield Message(whole.target, parts=Parts(resets={root}), resets=among(whole.resets, root))


def among(emits: list[Emit], root: int) -> list[Emit]:
    return [emit for emit in emits if emit.tree.root_id == root]


#: What may happen, the more often the likelier.
ACTIONS = [
    *["spout_emits"] * 6,
    *["bolt_executes"] * 12,
    *["frame_leaves"] * 9,
    *["message_arrives"] * 12,
    *["parts_leave"] * 8,
    *["bolt_resets_a_timeout"] * 3,
    *["time_passes"] * 3,
    *["group_goes_on"] * 3,
    "group_begins",
    "bolt_drops_a_tuple",
    "spout_task_begins_anew",
    "attempt_ends",
]


class LedgerMachine(RuleBasedStateMachine):
    """E20-E28, E30, E32, E33, E35, B10, C11, X68: in any order, and small where it fails."""

    @initialize(workers=st.integers(1, 4), seed=st.integers(0, 2**32))
    def begin(self, workers: int, seed: int) -> None:
        self.world = World(workers, seed)

    @rule(data=st.data(), action=st.sampled_from(ACTIONS))
    def happens(self, data: st.DataObject, action: str) -> None:
        self.world.choose = lambda n: data.draw(st.integers(0, n - 1)) if n > 1 else 0
        getattr(self.world, action)()

    @invariant()
    def books_are_right(self) -> None:
        if hasattr(self, "world"):
            self.world.check()

    def teardown(self) -> None:
        if hasattr(self, "world"):
            self.world.end()


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(stateful_step_count=60)


@pytest.mark.slow
@settings(max_examples=4 * settings().max_examples)  # it takes milliseconds
@given(seed=st.integers(0, 2**32), workers=st.integers(1, 4), steps=st.integers(200, 500))
def test_long_walks(seed: int, workers: int, steps: int) -> None:
    """E4, E5, E16, E17, E20-E28, E32, E33, E35, B10, C11, X68: hundreds of steps, where chance alone decides."""
    world, random = World(workers, seed), Random(seed)
    world.choose = random.randrange
    for _ in range(steps):
        getattr(world, random.choice(ACTIONS))()
        world.check()
    world.end()
