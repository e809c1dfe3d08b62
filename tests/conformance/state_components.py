"""Components with state, which write down what is called, and what their state is at the end."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Mapping, MutableMapping
from pathlib import Path
from typing import Any

from stormspark import (
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    FailedException,
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    Spout,
    SpoutOutputCollector,
    TopologyContext,
    Tuple,
)
from stormspark.api.state import KeyValueState, StatefulBolt, StatefulComponent, TwoPhaseStatefulComponent
from tests.conformance.components import EFFECTS, Effects


class Once:
    """True once, whatever process asks, and however often the batch comes again."""

    def __init__(self, conf: Mapping[str, Any], name: str) -> None:
        self._mark = Path(conf[EFFECTS]) / f"{name}.mark"

    def __call__(self) -> bool:
        try:
            self._mark.touch(exist_ok=False)
        except FileExistsError:
            return False
        return True


class Sequence(StatefulComponent, Spout):
    """Emits 0..n-1, shared out over its tasks; its position is its state, so it needs no ``fail``."""

    def __init__(self, n: int) -> None:
        self.n = n

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state = state

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector, self.effects = collector, Effects(conf, context)
        self.step = len(context.component_tasks(context.this_component_id))
        self.next = self.state.get("next", context.this_task_index)

    def next_tuple(self) -> None:
        if self.next < self.n:
            self.collector.emit((self.next,), message_id=self.next)
            self.next += self.step

    def pre_save(self, checkpoint_id: int) -> None:
        self.state["next"] = self.next

    def ack(self, message_id: Hashable) -> None:
        self.effects.write("ack", message_id)

    def fail(self, message_id: Hashable) -> None:
        self.effects.write("fail", message_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class Keeps(StatefulBolt[KeyValueState[Any, Any]]):
    """Its state is written down at the end."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.conf, self.collector, self.effects = conf, collector, Effects(conf, context)

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        self.state = state

    def cleanup(self) -> None:
        for key, value in self.state.iterate():
            self.effects.write("state", key, value)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields("n"))


class Counts(Keeps):
    """How often each number came; fails, or raises for, one of them the first time that it comes."""

    def __init__(self, fails: int = -1, raises: int = -1, loses: int = -1) -> None:
        self.fails, self.raises, self.loses = fails, raises, loses

    def execute(self, tup: Tuple) -> None:
        number = tup["n"]
        self.state[number] = self.state.get(number, 0) + 1
        if number == self.fails and Once(self.conf, "fails")():
            self.collector.fail(tup, "not this one")
            return
        if number == self.raises and Once(self.conf, "raises")():
            raise KeyError(number)
        self.emit(tup)
        self.collector.ack(tup)

    def emit(self, tup: Tuple) -> None:
        self.collector.emit((tup["n"],), anchors=[tup])


class CountsWithoutAnchors(Counts):
    """Its emits belong to no tree."""

    def emit(self, tup: Tuple) -> None:
        self.collector.emit((tup["n"],))


class CallsOfStorm(Keeps):
    """Writes down every call."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        super().prepare(conf, context, collector)
        self.effects.write("prepare")

    def init_state(self, state: KeyValueState[Any, Any]) -> None:
        super().init_state(state)
        self.effects.write("init_state", dict(state))

    def execute(self, tup: Tuple) -> None:
        self.effects.write("execute", tup["n"])
        self.state["last"] = tup["n"]
        if tup["n"] == 1 and Once(self.conf, "raises")():
            raise KeyError(1)
        self.collector.ack(tup)

    def pre_prepare(self, txid: int) -> None:
        self.effects.write("pre_prepare", txid)

    def pre_commit(self, txid: int) -> None:
        self.effects.write("pre_commit", txid)

    def pre_rollback(self) -> None:
        self.effects.write("pre_rollback")


class CallsOfHeron(TwoPhaseStatefulComponent, Bolt):
    """The same for Heron's methods; ``init_state`` comes when there is no place yet to write to."""

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state, self.was = state, dict(state)
        self.prepared_before = hasattr(self, "collector")

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.conf, self.collector, self.effects = conf, collector, Effects(conf, context)
        self.effects.write("init_state and prepare", self.was, self.prepared_before)
        self.last = self.state.get("last")

    def execute(self, tup: Tuple) -> None:
        self.effects.write("execute", tup["n"])
        self.last = tup["n"]
        if tup["n"] == 1 and Once(self.conf, "raises")():
            raise KeyError(1)
        self.collector.ack(tup)

    def pre_save(self, checkpoint_id: int) -> None:
        self.effects.write("pre_save", checkpoint_id)
        self.state["last"] = self.last

    def post_save(self, checkpoint_id: int) -> None:
        self.effects.write("post_save", checkpoint_id)

    def pre_restore(self, checkpoint_id: int) -> None:
        self.effects.write("pre_restore", checkpoint_id)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        pass


class Oblivious(BasicBolt):
    """Knows nothing of state: what it has seen is in an attribute."""

    def __init__(self, raises: int = -1) -> None:
        self.raises = raises

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        self.conf, self.context, self.effects = conf, context, Effects(conf, context)
        self.seen: list[int] = []

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        self.seen.append(tup["n"])
        if tup["n"] == self.raises and Once(self.conf, "raises")():
            raise KeyError(tup["n"])

    def cleanup(self) -> None:
        self.effects.write("seen", sorted(self.seen))


class WithLock(Oblivious):
    """Has something that can't be pickled."""

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext) -> None:
        super().prepare(conf, context)
        self.lock = threading.Lock()


class WithoutLock(WithLock):
    """Says itself what is to be kept."""

    def __getstate__(self) -> dict[str, Any]:
        attributes = dict(vars(self))
        attributes.pop("lock", None)  # not there yet when the topology is submitted
        return attributes

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.lock = threading.Lock()

    def execute(self, tup: Tuple, collector: BasicOutputCollector) -> None:
        with self.lock:
            super().execute(tup, collector)


class KeyRange(Keeps):
    """Puts, deletes, and looks up by prefix; more than its cache holds."""

    def execute(self, tup: Tuple) -> None:
        number = tup["n"]
        self.state.put(f"user-{number % 3}-{number:04}", "x" * 200 + str(number))
        self.state.put(("pair", number), number)
        if number % 2:
            self.state.delete(("pair", number))
        self.collector.ack(tup)

    def cleanup(self) -> None:
        for user in range(3):
            keys = list(self.state.iterate(f"user-{user}-"))
            assert keys == sorted(keys)
            self.effects.write(user, [int(value[200:]) for _, value in keys])
        self.effects.write("pairs", [value for _, value in self.state.iterate(("pair",))])
        self.effects.write("all", len(self.state), self.state.get(("pair", 1)))


class Round(Keeps):
    """Sends each number round until it is at zero; the state counts the rounds."""

    def execute(self, tup: Tuple) -> None:
        number, left = tup.values if len(tup) == 2 else (tup["n"], 5)
        self.state[number] = self.state.get(number, 0) + 1
        if left == 2 and number == 3 and Once(self.conf, "round")():
            raise KeyError("in the middle of a loop")
        if left:
            self.collector.emit((number, left - 1), "again", anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare_stream("again", Fields("n", "left"))


class Poisoned(Keeps):
    """Can't bear one line."""

    def execute(self, tup: Tuple) -> None:
        line = tup["line"]
        self.state[line] = self.state.get(line, 0) + 1
        if line == "poison":
            msg = "this is poison"
            raise FailedException(msg)
        self.collector.ack(tup)
