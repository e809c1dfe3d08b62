"""The components of random topologies: rows and numbers go in, and it shows in states and sinks what became of each."""

from __future__ import annotations

from collections.abc import Hashable, MutableMapping
from functools import partial
from typing import Any

from stormspark import Fields, OutputFieldsDeclarer, Tuple
from stormspark.api import SourceSpout
from stormspark.api.components import Bolt
from stormspark.api.state import KeyValueState, StatefulBolt, TwoPhaseStatefulComponent
from stormspark.connectors.outbox import Outbox
from stormspark.errors import FailedException
from tests.repeatable_spouts import NumbersFromState
from tests.schedules.world import world

__all__ = [
    "FIRST_NUMBER",
    "KEYS",
    "Keep",
    "Noise",
    "Numbers",
    "OutboxSink",
    "Pass",
    "Ring",
    "Rows",
    "StagingSink",
    "Total",
    "Work",
    "copies_of",
]

KEYS = 3
#: Numbers of the spout with a state begin there; rows of the source are below.
FIRST_NUMBER = 100_000


def copies_of(row: int) -> int:
    """How many tuples `Work` makes of a row."""
    return (1, 1, 2, 0, 3)[row % 5]


class Rows(SourceSpout):
    """Rows of a source, which Spark would read: each is a number."""

    def __init__(self) -> None:
        super().__init__(["row"])

    def stream(self, spark: Any) -> Any:
        raise AssertionError

    def ack(self, message_id: Any) -> None:
        world().ack(message_id, message_id[0])
        _may_raise(f"ack of {message_id}")

    def fail(self, message_id: Hashable) -> None:
        pass


class Numbers(NumbersFromState):
    """Some numbers per batch; ``at_once`` in one call of next_tuple."""

    fields = ("row",)

    def __init__(self, at_once: bool) -> None:
        self.at_once = at_once

    def next_tuple(self) -> None:
        until = world().numbers_until(world().now.batch)
        while self.n < until:
            row = FIRST_NUMBER + self.n
            self.n += 1
            self.collector.emit((row,), message_id=row)
            if not self.at_once:
                return

    def ack(self, message_id: Any) -> None:
        committed = world().storage.state("numbers").get("n", 0)
        if message_id - FIRST_NUMBER >= committed:
            world().broken("an ack before its commit", f"number {message_id}, {committed} are committed")
        world().ack(message_id, -1)
        _may_raise(f"ack of {message_id}")

    def fail(self, message_id: Any) -> None:
        world().broken("a spout with a state hears of a fail", f"number {message_id}")


def _may_raise(what: str) -> None:
    """Code of users raises where nothing hangs by it any more."""
    if world().schedule.choose("callback", what, 2):
        raise ValueError(what)


class _Unsendable(int):
    """Fails its tuple where that has to go to another worker: when it is pickled, or when it is unpickled."""

    def __new__(cls, value: int, row: int, kind: int) -> _Unsendable:
        made = super().__new__(cls, value)
        made.row, made.kind = row, kind
        return made

    row: int
    kind: int

    def __reduce__(self) -> Any:
        if self.kind == 1:
            _fail_on_its_way(self.row)
        return _fail_on_its_way, (self.row,)


def _fail_on_its_way(row: int) -> None:
    world().fails(row)
    msg = f"{row} can't be sent"
    raise TypeError(msg)


class _Troubled(Bolt):
    """A bolt that may fail a tuple or raise, before or after its work."""

    name = ""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.task = context.this_task_index
        #: What this instance was given: one that has seen an attempt that was taken back would see rows again.
        self.seen: set[Any] = set()

    def execute(self, tup: Tuple) -> None:
        row, name = tup["row"], self.name
        if not self.is_new(tup) and row not in world().kept:
            world().broken("a row twice", f"{name}[{self.task}] is given {tup.values}, and it had it already")
        trouble = world().trouble(name, row, tup.values[1:3])
        if not trouble:
            self.work(tup)
            self.collector.ack(tup)
            return
        world().fails(row)
        if trouble in (3, 4):
            self.work(tup)
        if trouble in (1, 3):
            self.collector.fail(tup)
            return
        msg = f"no luck with {row}"
        if trouble == 2:
            raise FailedException(msg)
        raise ValueError(msg)

    def is_new(self, tup: Tuple) -> bool:
        key = tup.values[:-1] if len(tup.values) > 1 else tup.values
        new = key not in self.seen
        self.seen.add(key)
        return new

    def work(self, tup: Tuple) -> None:
        raise NotImplementedError


class Pass(_Troubled):
    """Without a state."""

    name = "pass"

    def work(self, tup: Tuple) -> None:
        self.collector.emit(tup.values, anchors=[tup])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("row"))


class Keep(Pass):
    """Keeps some tuples over the end of their batch, or of several, and does its work at a tick."""

    name = "keep"

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        #: With so many ticks to go.
        self.kept: list[tuple[Tuple, int]] = []

    def execute(self, tup: Tuple) -> None:
        if tup.is_tick:
            kept, self.kept = self.kept, []
            for one, ticks in kept:
                if ticks > 1 and not world().schedule.calm:
                    self.kept.append((one, ticks - 1))
                else:
                    super().execute(one)
            return
        ticks = world().schedule.choose("shape", f"{world().schedule.place}: {tup['row']} is kept", 4)
        if ticks:
            self.kept.append((tup, ticks))
            world().kept.add(tup["row"])
        else:
            super().execute(tup)


class Ring(_Troubled):
    """Sends a row around some times, before it goes on."""

    name = "ring"

    def is_new(self, tup: Tuple) -> bool:
        key = tuple(tup.values)
        new = key not in self.seen
        self.seen.add(key)
        return new

    def work(self, tup: Tuple) -> None:
        row = tup["row"]
        left = tup["left"] if len(tup.values) > 1 else row % 3
        if left:
            self.collector.emit((row, left - 1, (row + left) % KEYS), "around", anchors=[tup])
        else:
            self.collector.emit((row,), anchors=[tup])

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("row"))
        declarer.declare_stream("around", Fields("row", "left", "key"))


class Work(_Troubled, StatefulBolt[KeyValueState[Any, Any]]):
    """Draws a number for each row, which its state and all sinks have then to agree on."""

    name = "work"

    def __init__(self, noisy: bool = False) -> None:
        self.noisy = noisy

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        self.state = state

    def work(self, tup: Tuple) -> None:
        row = tup["row"]
        if row in self.state and row not in world().kept:
            world().broken(
                "a row twice", f"work[{self.task}] has {row} in its state, from the batch before or this one"
            )
        nonce = self.state[row] = world().nonce()
        for copy in range(copies_of(row)):
            kind = world().schedule.choose("send", f"{row} {copy} on its way", 3)
            what = _Unsendable(nonce, row, kind) if kind else nonce
            self.collector.emit((row, copy, row % KEYS, what), anchors=[tup])
        self.call_of_a_thread()

    def call_of_a_thread(self) -> None:
        """A thread of its own emits just now, of which nothing is to be seen outside."""
        if self.noisy and not world().schedule.calm:
            # As if this bolt's ``execute`` were not at hand: what a thread calls then is for the next batch.
            world().talks = self
            self.collector._task.mailbox.post(partial(self.collector.emit, (0,), "noise"))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("row", "copy", "key", "nonce"))
        declarer.declare_stream("noise", Fields("row"))


class Noise(Bolt):
    """Takes what the threads of `Work` emit, and by then one has emitted again: there is always a call that waits."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector

    def execute(self, tup: Tuple) -> None:
        self.collector.ack(tup)
        if world().talks is not None:
            world().talks.call_of_a_thread()

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


class _Sink(_Troubled):
    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        self.pending: list[Any] = []

    def work(self, tup: Tuple) -> None:
        self.pending.append((tup["row"], tup["copy"], int(tup["nonce"])))

    def saves(self, txid: int) -> None:
        """May raise, as what writes files does."""
        if world().schedule.choose("store", f"{self.name}[{self.task}] saves {txid}", 2):
            world().failed[world().now].add(-1)
            raise OSError("the disk is full")

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


class OutboxSink(TwoPhaseStatefulComponent, _Sink):
    """As the connectors' sinks: what a batch has for the destination is in the state, and delivered after the commit."""

    name = "outbox"

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        assert isinstance(state, KeyValueState)
        self.box: Outbox[list[Any]] = Outbox(
            state, self.send, clock=world().clock, sleep=lambda seconds: None
        )

    def send(self, txid: int, parcel: list[Any]) -> None:
        world().deliver((self.name, self.box.name), txid, parcel)

    def pre_save(self, checkpoint_id: int) -> None:
        self.saves(checkpoint_id)
        pending, self.pending = self.pending, []
        self.box.save(checkpoint_id, pending or None, len(pending))

    def post_save(self, checkpoint_id: int) -> None:
        world().heard_commit((self.name, self.task), checkpoint_id)
        _may_raise(f"post_save of {self.name}[{self.task}]")
        self.box.deliver(checkpoint_id)

    def pre_restore(self, checkpoint_id: int) -> None:
        pass


class StagingSink(TwoPhaseStatefulComponent, _Sink):
    """As users write one by themselves: a file of the batch is written before the commit and put in place after it."""

    name = "staging"

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        super().prepare(conf, context, collector)
        if "batch" in self.state:  # committed, and maybe nobody has put it in place
            self.put_in_place(self.state["batch"])

    def pre_save(self, checkpoint_id: int) -> None:
        self.saves(checkpoint_id)
        world().staged[self.name, self.task, checkpoint_id] = self.pending
        self.state["batch"] = checkpoint_id
        self.pending = []

    def post_save(self, checkpoint_id: int) -> None:
        world().heard_commit((self.name, self.task), checkpoint_id)
        _may_raise(f"post_save of {self.name}[{self.task}]")
        self.put_in_place(checkpoint_id)

    def put_in_place(self, txid: int) -> None:
        world().delivered[self.name, self.task, txid] = world().staged[self.name, self.task, txid]

    def pre_restore(self, checkpoint_id: int) -> None:
        pass


class Total(_Troubled, StatefulBolt[KeyValueState[Any, Any]]):
    """A sink that is nothing but state."""

    name = "total"

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        self.state = state

    def work(self, tup: Tuple) -> None:
        key = (tup["row"], tup["copy"], int(tup["nonce"]))
        self.state[key] = self.state.get(key, 0) + 1

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass
