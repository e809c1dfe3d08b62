"""Random trees over several workers against a plain model that numbers every edge (E20-E26, E33)."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from stormspark.acker import ACKED, Branch, Ledger, Outcome, Parts, RemoteEdges, SpoutAccount, Tree, Verdict


@dataclass
class Model:
    """A tree as plain as can be: how many tuples are open, whether one was failed."""

    worker: int
    open: int = 0
    failed: bool = False
    lost: bool = False


@dataclass
class OpenTuple:
    """A tuple that waits in a worker: the model's trees, and what the ledger handed out for them."""

    models: list[Model]
    trees: list[Branch]


@dataclass
class Message:
    """Something under way from one worker to another, in no order."""

    target: int
    tuples: list[list[Model]] = field(default_factory=list)
    edges: RemoteEdges | None = None
    references: list[list[int]] = field(default_factory=list)
    parts: Parts | None = None


class LedgerMachine(RuleBasedStateMachine):
    """Tuples are emitted, moved between workers, acked and failed; messages arrive in any order."""

    @initialize(workers=st.integers(1, 4), seed=st.integers(0, 2**32))
    def begin(self, workers: int, seed: int) -> None:
        random = Random(seed)
        self.ledgers = [
            Ledger(i, lambda n: [random.getrandbits(64) for _ in range(n)], timeout=30)
            for i in range(workers)
        ]
        self.accounts = [SpoutAccount(i) for i in range(workers)]
        self.waiting: list[list[OpenTuple]] = [[] for _ in range(workers)]
        self.under_way: list[Message] = []
        self.models: dict[int, Model] = {}
        self.trees: dict[int, Tree] = {}
        self.verdicts: dict[int, Verdict] = {}

    def pick(self, data: st.DataObject, things: list[Any]) -> Any:
        return things.pop(data.draw(st.integers(0, len(things) - 1)))

    @rule(data=st.data(), copies=st.integers(1, 3))
    def spout_emits(self, data: st.DataObject, copies: int) -> None:
        worker = data.draw(st.integers(0, len(self.ledgers) - 1))
        number = len(self.models)
        model = self.models[number] = Model(worker, open=copies)
        tree = self.trees[number] = Tree(self.accounts[worker], number, 0.0)
        tree.count = copies
        self.ledgers[worker].begin(tree)
        self.waiting[worker].extend(OpenTuple([model], [tree]) for _ in range(copies))

    @precondition(lambda self: any(self.waiting))
    @rule(data=st.data(), children=st.integers(0, 3), joined=st.booleans(), fails=st.booleans())
    def bolt_executes(self, data: st.DataObject, children: int, joined: bool, fails: bool) -> None:
        """Take one or two tuples, emit children anchored to both, then ack both, or fail the first and ack
        the second.
        """
        worker = data.draw(st.sampled_from([w for w, tuples in enumerate(self.waiting) if tuples]))
        ledger, tuples = self.ledgers[worker], self.waiting[worker]
        inputs = [self.pick(data, tuples)]
        if joined and tuples:
            inputs.append(self.pick(data, tuples))
        models = {id(m): m for one in inputs for m in one.models}
        trees = list(dict.fromkeys(tree for one in inputs for tree in one.trees))
        for _ in range(children):
            for model in models.values():
                model.open += 1
            for tree in trees:
                tree.count += 1
            tuples.append(OpenTuple(list(models.values()), trees))
        for position, one in enumerate(inputs):
            if fails and position == 0:
                for model in one.models:
                    model.failed = model.failed or model.open > 0
                for tree in one.trees:
                    ledger.fail(tree, Verdict(Outcome.FAILED, "no"))
            self.close(ledger, one)

    def close(self, ledger: Ledger, one: OpenTuple) -> None:
        for model in one.models:
            model.open -= 1
        for tree in one.trees:
            tree.count -= 1
            if not tree.count:
                ledger.drained(tree)

    @precondition(lambda self: len(self.ledgers) > 1 and any(self.waiting))
    @rule(data=st.data(), most=st.integers(1, 5))
    def frame_leaves(self, data: st.DataObject, most: int) -> None:
        source = data.draw(st.sampled_from([w for w, tuples in enumerate(self.waiting) if tuples]))
        target = data.draw(st.sampled_from([w for w in range(len(self.ledgers)) if w != source]))
        sent = [self.pick(data, self.waiting[source]) for _ in range(min(most, len(self.waiting[source])))]
        counts: dict[Branch, int] = {}
        for one in sent:
            for tree in one.trees:
                counts[tree] = counts.get(tree, 0) + 1
        numbers = {tree: number for number, tree in enumerate(counts)}
        self.under_way.append(
            Message(
                target,
                tuples=[one.models for one in sent],
                edges=self.ledgers[source].send(counts),
                references=[[numbers[tree] for tree in one.trees] for one in sent],
            )
        )

    @rule()
    def parts_leave(self) -> None:
        for ledger in self.ledgers:
            for home, parts in ledger.parts_to_send.items():
                self.under_way.append(Message(home, parts=parts))
            ledger.parts_to_send.clear()

    @precondition(lambda self: self.under_way)
    @rule(data=st.data())
    def message_arrives(self, data: st.DataObject) -> None:
        self.deliver(self.pick(data, self.under_way))

    def deliver(self, message: Message) -> None:
        ledger = self.ledgers[message.target]
        if message.parts is not None:
            ledger.take_parts(message.parts)
            return
        assert message.edges is not None
        trees = ledger.receive(message.edges)
        for models, references in zip(message.tuples, message.references, strict=True):
            self.waiting[message.target].append(OpenTuple(models, [trees[number] for number in references]))

    @precondition(lambda self: self.under_way)
    @rule()
    def all_under_way_is_lost(self) -> None:
        """A worker is lost with all that was under way: trees with something outside fail, local ones live
        on.
        """
        outside = [m for message in self.under_way for models in message.tuples for m in models]
        self.under_way.clear()
        for worker, tuples in enumerate(self.waiting):
            outside += [m for one in tuples for m in one.models if m.worker != worker]
        for ledger in self.ledgers:
            ledger.abandon("lost")
        for model in outside:
            model.lost = True
        # Every tree that failed so must have had an open tuple elsewhere, or acks under way: the model can't
        # see the latter.
        for number, model in self.models.items():
            verdict = self.trees[number].verdict
            model.lost = model.lost or (verdict is not None and verdict.outcome is Outcome.WORKER_LOST)

    @invariant()
    def verdicts_are_right(self) -> None:
        if not hasattr(self, "ledgers"):
            return
        for account in self.accounts:
            for tree in account.ended:
                number = tree.message_id
                assert number not in self.verdicts, "two verdicts for one tree (E22)"
                assert tree.verdict is not None
                self.verdicts[number] = tree.verdict  # type: ignore[index]
                model = self.models[number]  # type: ignore[index]
                if tree.verdict is ACKED:
                    assert model.open == 0 and not model.failed, (
                        "acked although something was open or failed (E20, E23)"
                    )
                elif tree.verdict.outcome is Outcome.FAILED:
                    assert model.failed
            account.ended.clear()
        for worker, account in enumerate(self.accounts):
            mine = [n for n, model in self.models.items() if model.worker == worker]
            assert account.pending == len(mine) - sum(n in self.verdicts for n in mine)  # E26
        for ledger in self.ledgers:
            ledger.validate()

    def teardown(self) -> None:
        """Ack all that is left: then every tree has its verdict (E20, E22)."""
        if not hasattr(self, "ledgers"):
            return
        while any(self.waiting) or self.under_way or any(ledger.parts_to_send for ledger in self.ledgers):
            for ledger, tuples in zip(self.ledgers, self.waiting, strict=True):
                for one in tuples:
                    self.close(ledger, one)
                tuples.clear()
            self.parts_leave()
            under_way, self.under_way = self.under_way, []
            for message in under_way:
                self.deliver(message)
        self.verdicts_are_right()
        assert set(self.verdicts) == set(self.models), "a tree without a verdict"
        for number, model in self.models.items():
            if not model.lost:
                assert (self.verdicts[number] is ACKED) == (not model.failed)
        for ledger in self.ledgers:
            statistics = ledger.statistics()
            assert (statistics.open, statistics.known_outside, statistics.parts) == (0, 0, 0)


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(stateful_step_count=60)
