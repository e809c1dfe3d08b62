"""E20-E28, E32, E33, E35: ledgers of several workers against a plain model.

The machine emits, joins, moves, acks, fails, resets and forgets tuples, lets time pass, restarts spout tasks and kills
workers; messages between workers arrive in any order. The model knows where each tuple is, and nothing of counts, edges or
values.
"""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stormspark.acker import ACKED, Branch, Ledger, Outcome, Parts, RemoteEdges, SpoutAccount, Tree, Verdict

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
    told: list[Emit] = field(
        default_factory=list
    )  # emits that were failed, or of which the sender holds no more
    resets: list[Emit] = field(default_factory=list)


class LedgerMachine(RuleBasedStateMachine):
    """E20-E28, E30, E32, E33, E35: emits, executes, acks, fails, resets, time, lost workers, in any order."""

    @initialize(workers=st.integers(1, 4), seed=st.integers(0, 2**32))
    def begin(self, workers: int, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0
        self.ledgers = [self.new_ledger(worker) for worker in range(workers)]
        self.accounts = [[SpoutAccount(worker), SpoutAccount(worker)] for worker in range(workers)]
        self.emits: list[Emit] = []
        self.waiting: list[list[OpenTuple]] = [[] for _ in range(workers)]
        self.dropped: list[list[OpenTuple]] = [[] for _ in range(workers)]
        self.under_way: list[Message] = []
        self.untold: list[dict[Emit, None]] = [{} for _ in range(workers)]
        self.resets: list[dict[Emit, None]] = [{} for _ in range(workers)]
        self.callbacks: Counter[int] = Counter()

    def new_ledger(self, worker: int) -> Ledger:
        ledger = Ledger(worker, lambda n: [self.random.getrandbits(64) for _ in range(n)], TIMEOUT)
        ledger.rotate(self.now)  # as a worker does before its first tuple
        return ledger

    def workers_with_tuples(self) -> list[int]:
        return [worker for worker, tuples in enumerate(self.waiting) if tuples]

    def pick(self, data: st.DataObject, things: list[Any]) -> Any:
        return things.pop(data.draw(st.integers(0, len(things) - 1)))

    # -- spouts ----------------------------------------------------------------------------------------------

    def emit(self, data: st.DataObject, copies: int, grouped: bool) -> None:
        home = data.draw(st.integers(0, len(self.ledgers) - 1))
        number = data.draw(st.integers(0, 1))
        account = self.accounts[home][number]
        message_id = len(self.emits) // 3  # the same one for several emits: each has its own verdict (E32)
        tree = Tree(account, message_id, 0.0)
        emit = Emit(home, number, message_id, tree, touched=self.now, open=copies, grouped=grouped)
        self.emits.append(emit)
        tree.count = copies + grouped
        self.ledgers[home].begin(tree)
        if not tree.count:
            self.ledgers[home].drained(tree)
        self.waiting[home].extend(OpenTuple([emit], [tree]) for _ in range(copies))

    @rule(data=st.data(), copies=st.integers(0, 3))
    def spout_emits(self, data: st.DataObject, copies: int) -> None:
        """E30: also to nobody."""
        self.emit(data, copies, grouped=False)

    @rule(data=st.data())
    def group_begins(self, data: st.DataObject) -> None:
        """X68: one message of several tuples; frames may leave before its end."""
        self.emit(data, 0, grouped=True)

    def groups(self) -> list[Emit]:
        return [emit for emit in self.emits if emit.grouped and not emit.gone]

    @precondition(lambda self: self.groups())
    @rule(data=st.data(), copies=st.integers(0, 2), ends=st.booleans())
    def group_goes_on(self, data: st.DataObject, copies: int, ends: bool) -> None:
        emit = data.draw(st.sampled_from(self.groups()))
        emit.open += copies
        emit.tree.count += copies
        self.waiting[emit.home].extend(OpenTuple([emit], [emit.tree]) for _ in range(copies))
        if ends:
            emit.grouped = False
            self.close(self.ledgers[emit.home], emit.tree)

    @rule(data=st.data())
    def spout_task_begins_anew(self, data: st.DataObject) -> None:
        """B10, E35."""
        home = data.draw(st.integers(0, len(self.ledgers) - 1))
        number = data.draw(st.integers(0, 1))
        mine = [e for e in self.unsettled() if (e.home, e.account) == (home, number)]
        assert self.ledgers[home].forget(self.accounts[home][number]) == len(mine)
        for emit in mine:
            emit.gone = True

    # -- bolts -----------------------------------------------------------------------------------------------

    @precondition(lambda self: any(self.waiting))
    @rule(data=st.data(), inputs=st.integers(1, 3), children=st.integers(0, 3), fails=st.integers(0, 7))
    def bolt_executes(self, data: st.DataObject, inputs: int, children: int, fails: int) -> None:
        """Take some tuples, emit children anchored to all of them, then ack each, or fail it.

        Tuples that were joined before bring several emits, and several tuples may belong to one emit (E4, E17).
        """
        worker = data.draw(st.sampled_from(self.workers_with_tuples()))
        ledger, tuples = self.ledgers[worker], self.waiting[worker]
        taken = [self.pick(data, tuples) for _ in range(min(inputs, len(tuples)))]
        emits = list(dict.fromkeys(emit for one in taken for emit in one.emits))
        branches = list(dict.fromkeys(branch for one in taken for branch in one.branches))
        for _ in range(children):
            for emit in emits:
                emit.open += 1
            for branch in branches:
                branch.count += 1
            tuples.append(OpenTuple(emits, branches))
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

    @precondition(lambda self: any(self.waiting))
    @rule(data=st.data())
    def bolt_drops_a_tuple(self, data: st.DataObject) -> None:
        """E16: nobody will ever ack it."""
        worker = data.draw(st.sampled_from(self.workers_with_tuples()))
        self.dropped[worker].append(self.pick(data, self.waiting[worker]))

    @precondition(lambda self: any(self.waiting))
    @rule(data=st.data())
    def bolt_resets_a_timeout(self, data: st.DataObject) -> None:
        """C11."""
        worker = data.draw(st.sampled_from(self.workers_with_tuples()))
        one = data.draw(st.sampled_from(self.waiting[worker]))
        for branch in one.branches:
            self.ledgers[worker].reset_timeout(branch)
        for emit in one.emits:
            if emit.home == worker:
                self.touch(emit)
            else:
                self.resets[worker][emit] = None

    def touch(self, emit: Emit) -> None:
        if emit.verdict is None:
            emit.touched, emit.old_at = self.now, None

    # -- messages --------------------------------------------------------------------------------------------

    @precondition(lambda self: len(self.ledgers) > 1 and any(self.waiting))
    @rule(data=st.data(), most=st.integers(1, 5))
    def frame_leaves(self, data: st.DataObject, most: int) -> None:
        source = data.draw(st.sampled_from(self.workers_with_tuples()))
        target = data.draw(st.sampled_from([w for w in range(len(self.ledgers)) if w != source]))
        tuples = self.waiting[source]
        sent = [self.pick(data, tuples) for _ in range(min(most, len(tuples)))]
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

    @rule(data=st.data(), split=st.booleans())
    def parts_leave(self, data: st.DataObject, split: bool) -> None:
        """E5, E21: what one worker has to say may come in any order, too."""
        sender = data.draw(st.integers(0, len(self.ledgers) - 1))
        self.send_parts(sender, split)

    def send_parts(self, sender: int, split: bool = False) -> None:
        held = {emit for one in self.waiting[sender] + self.dropped[sender] for emit in one.emits}
        told = [emit for emit in self.untold[sender] if emit not in held]
        for emit in told:
            del self.untold[sender][emit]
        homes = {emit.home for emit in told} | {emit.home for emit in self.resets[sender]}
        sent = self.ledgers[sender].parts_to_send
        by_root = {emit.tree.root_id: emit for emit in self.emits if emit.tree.root_id}
        for home in sorted(homes | set(sent)):
            parts = sent.pop(home, None) or Parts()
            whole = Message(
                home,
                parts=parts,
                told=[emit for emit in told if emit.home == home]
                + [by_root[root] for root, _ in parts.fails],
                resets=[emit for emit in self.resets[sender] if emit.home == home],
            )
            self.under_way.extend(split_up(whole) if split else [whole])
        self.resets[sender].clear()

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def message_arrives(self, data: st.DataObject) -> None:
        self.deliver(self.pick(data, self.under_way))

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

    @rule(data=st.data(), seconds=st.integers(0, 50))
    def time_passes(self, data: st.DataObject, seconds: int) -> None:
        """E10, E28: some workers look at their clock, others are busy for longer."""
        self.now += seconds
        for worker in data.draw(st.sets(st.integers(0, len(self.ledgers) - 1))):
            self.look(worker)

    def look(self, worker: int) -> None:
        self.ledgers[worker].rotate(self.now)
        self.hear()
        for emit in self.unsettled():
            if emit.home == worker and self.now >= emit.touched + TIMEOUT:
                # By this look it must be in the older bucket, so a look one timeout later ends it.
                if emit.old_at is None:
                    emit.old_at = self.now
                # A reset that comes after a fail in the same worker is not sent: no need to be exact then.
                assert emit.failed or self.now < emit.old_at + TIMEOUT, f"{emit} has not timed out (E28)"

    # -- losses ----------------------------------------------------------------------------------------------

    @rule(data=st.data(), dies=st.booleans())
    def attempt_ends(self, data: st.DataObject, dies: bool) -> None:
        """Spark failed, or a worker died: all that was under way is lost. Trees that lived at home go on."""
        outside = self.outside()
        self.hear()
        expected = {emit for emit in self.unsettled() if emit in outside}
        self.under_way.clear()
        for resets in self.resets:
            resets.clear()
        if dies:
            dead = data.draw(st.integers(0, len(self.ledgers) - 1))
            for emit in self.unsettled():
                emit.gone = emit.home == dead
            self.ledgers[dead] = self.new_ledger(dead)
            self.accounts[dead] = [SpoutAccount(dead), SpoutAccount(dead)]
            for tables in (self.waiting, self.dropped, self.untold):
                tables[dead].clear()  # type: ignore[attr-defined]
        for ledger in self.ledgers:
            ledger.abandon("lost")
        expected = {emit for emit in expected if not emit.gone}
        lost = {emit for emit in self.emits if emit.tree.verdict is not None and emit.verdict is None}
        assert {emit for emit in lost if not emit.gone} == expected
        assert all(emit.tree.verdict == Verdict(Outcome.WORKER_LOST, "lost") for emit in expected)

    def outside(self) -> set[Emit]:
        """The emits of which something is not at home: tuples, or acks that their home has not heard of."""
        found: set[Emit] = set()
        for worker in range(len(self.ledgers)):
            found.update(self.untold[worker])
            found.update(
                emit
                for one in self.waiting[worker] + self.dropped[worker]
                for emit in one.emits
                if emit.home != worker
            )
        for message in self.under_way:
            found.update(message.told)
            found.update(emit for emits in message.tuples for emit in emits)
        return found

    # -- what must hold --------------------------------------------------------------------------------------

    def unsettled(self) -> Iterator[Emit]:
        return (emit for emit in self.emits if emit.verdict is None and not emit.gone)

    def hear(self) -> None:
        """Take the verdicts, as spout tasks do."""
        for accounts in self.accounts:
            for account in accounts:
                for tree in account.ended:
                    (emit,) = (emit for emit in self.emits if emit.tree is tree)
                    assert emit.verdict is None, "two verdicts for one tree (E22)"
                    assert not emit.gone, "a verdict for a spout that has begun anew (E35)"
                    assert tree.verdict is not None
                    emit.verdict = tree.verdict
                    self.callbacks[emit.message_id] += 1
                    if tree.verdict is ACKED:
                        assert not emit.open and not emit.grouped, "acked while something is open (E20, E23)"
                        assert not emit.failed, "acked although a bolt failed it (E24)"
                    elif tree.verdict.outcome is Outcome.FAILED:
                        assert emit.failed, "failed, but by nobody (E25)"
                    elif tree.verdict.outcome is Outcome.TIMED_OUT:
                        assert self.now >= emit.touched + TIMEOUT, "timed out too early (E28)"
                account.ended.clear()

    @invariant()
    def books_are_right(self) -> None:
        if not hasattr(self, "ledgers"):
            return
        self.hear()
        outside = self.outside()
        for emit in self.unsettled():
            assert emit.open or emit.grouped or emit in outside, f"{emit} is done, but not acked (E20)"
            assert not (emit.failed and emit not in outside), f"{emit} was failed at home (E24)"
        for worker, accounts in enumerate(self.accounts):
            for number, account in enumerate(accounts):
                mine = sum((emit.home, emit.account) == (worker, number) for emit in self.unsettled())
                assert account.pending == mine, "emitted = acked + failed + pending (E26)"
        for ledger in self.ledgers:
            ledger.validate()

    def teardown(self) -> None:
        """Ack all that is left: then every emit has its verdict, and no table holds anything."""
        if not hasattr(self, "ledgers"):
            return
        for emit in self.groups():
            emit.grouped = False
            self.close(self.ledgers[emit.home], emit.tree)
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
        self.books_are_right()
        never = {emit for dropped in self.dropped for one in dropped for emit in one.emits}
        assert {emit for emit in self.unsettled() if emit not in never} == set()
        for _ in range(3):
            self.now += TIMEOUT
            for worker in range(len(self.ledgers)):
                self.look(worker)
        assert not list(self.unsettled()), "E22: a verdict for each"
        emitted = Counter(emit.message_id for emit in self.emits if emit.verdict is not None)
        assert self.callbacks == emitted, "as many verdicts as emits, whatever their ids (E32)"
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


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(stateful_step_count=60)
