"""State of bolts and spouts that outlives their processes (C35, C42)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, MutableMapping
from typing import Any, Generic, TypeVar

from stormspark.api.components import Bolt

__all__ = [
    "KeepsState",
    "KeyValueState",
    "State",
    "StatefulBolt",
    "StatefulComponent",
    "TransactionalSink",
    "TwoPhaseStatefulComponent",
    "kind_of_state",
]

K = TypeVar("K")
V = TypeVar("V")
S = TypeVar("S", bound="State")


class State(ABC):
    """What a task keeps from batch to batch (C35). Its methods are called by the framework, not by components."""

    @abstractmethod
    def prepare_commit(self, txid: int) -> None:
        """Make ready to commit what has changed, as transaction ``txid``.

        The same transaction may be prepared again, and then comprises what has changed since. Raises `StateError` while
        another one is prepared.
        """

    @abstractmethod
    def commit(self, txid: int | None = None) -> None:
        """What was prepared as ``txid`` is committed; without a number, what has changed until now.

        Raises `StateError` if another transaction, or none, is prepared.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Return to what was committed last; what has changed since, prepared or not, is gone."""


class KeyValueState(State, MutableMapping[K, V]):
    """State as a map (C35), in which each task has its own keys.

    Storm's methods are `put`, `get`, `delete` and `iterate`; those of a Python dict are there too. Keys and values may be
    anything that can be pickled; which keys have an order, and so prefixes, is told at `iterate`. None is a value.

    >>> from stormspark.checkpoint.key_value_store import KeyValueStore
    >>> state: KeyValueState = KeyValueStore()
    >>> state.put("spark", 1)
    >>> state["storm"] = state.get("storm", 0) + 2
    >>> list(state.iterate("st")), "heron" in state, state.delete("spark"), len(state)
    ([('storm', 2)], False, 1, 1)

    The state may hold more keys than fit into memory, so values go out and come back: **put again what you have changed in
    place**. A list that was appended to and not put again keeps its old contents in the table, and what `get` returns then
    depends on whether it was still in memory.
    """

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of ``key``. The same as ``state[key] = value``.

        Raises `SerializationError` for a key that can't be one; a value is pickled at the end of the batch.
        """

    @abstractmethod
    def delete(self, key: K) -> V | None:
        """Remove ``key`` and return its value, None if it had none. ``del state[key]`` raises KeyError then."""

    @abstractmethod
    def iterate(self, prefix: str | bytes | tuple[Any, ...] | None = None) -> Iterator[tuple[K, V]]:
        """Keys and values in the order of the keys, of all or of those that begin with ``prefix``.

        A text is a prefix of texts, bytes of bytes, and a tuple of tuples, by whole items: ``iterate(("user", 7))`` gives
        ``("user", 7, "name")`` and not ``("user", 70)``. The order is None, False, True, ints, floats, bytes, texts, tuples, each
        in Python's order, and then all other keys in an order that says nothing.

        The state may be changed meanwhile: what is given is how it was when the first pair was asked for.
        """

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self.iterate())


class KeepsState(ABC, Generic[S]):
    """What a `StatefulBolt` and a `StatefulWindowedBolt` share (C35, Storm's IStatefulComponent)."""

    @abstractmethod
    def init_state(self, state: S) -> None:
        """Called after ``prepare``, before any tuple, with the state as it was committed last: empty at first."""

    def pre_prepare(self, txid: int) -> None:
        """The batch's tuples are done; what is put into the state now is still part of transaction ``txid``."""

    def pre_commit(self, txid: int) -> None:
        """Transaction ``txid`` is prepared and about to be committed; the state may not change any more."""

    def pre_rollback(self) -> None:
        """The batch did not commit and comes again: forget what attributes know of it. The state returns by itself."""


class StatefulBolt(KeepsState[S], Bolt):
    """A bolt that has a `State` (C35, Storm's BaseStatefulBolt).

    The order of calls is ``prepare``, `init_state`, then ``execute`` for every tuple; at the end of each batch `pre_prepare` and
    `pre_commit`; before a batch is run again in the same process, `pre_rollback`.

    >>> from stormspark import Fields
    >>> class Count(StatefulBolt[KeyValueState[str, int]]):
    ...     def prepare(self, conf, context, collector):
    ...         self.collector = collector
    ...     def init_state(self, state):
    ...         self.counts = state
    ...     def execute(self, tup):
    ...         count = self.counts.get(tup["word"], 0) + 1
    ...         self.counts.put(tup["word"], count)
    ...         self.collector.emit((tup["word"], count), anchors=[tup])
    ...         self.collector.ack(tup)
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(Fields("word", "count"))
    """


class StatefulComponent(ABC):
    """Mixed into a spout or a bolt, gives it a state as Heron does (C42).

    `init_state` comes before ``open`` or ``prepare``, other than for a `StatefulBolt`.

    >>> from stormspark import BasicBolt
    >>> class Total(StatefulComponent, BasicBolt):
    ...     def init_state(self, state):
    ...         self.state, self.total = state, state.get("total", 0)
    ...     def execute(self, tup, collector):
    ...         self.total += tup["amount"]
    ...     def pre_save(self, checkpoint_id):
    ...         self.state["total"] = self.total
    """

    @abstractmethod
    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        """Called before anything else, with the state as it was saved last: empty at first. Keep it, to save into it."""

    @abstractmethod
    def pre_save(self, checkpoint_id: int) -> None:
        """The state is about to be saved: put into it whatever is kept elsewhere."""


class TwoPhaseStatefulComponent(StatefulComponent):
    """A `StatefulComponent` that also acts on something outside when a checkpoint is complete (C42)."""

    @abstractmethod
    def post_save(self, checkpoint_id: int) -> None:
        """Checkpoint ``checkpoint_id`` is complete everywhere; no tuple ran since `pre_save`.

        It may never be called for a checkpoint, if its process dies before, or raise half way: then the component begins anew,
        and `init_state` sees in the state what is still to be done.
        """

    @abstractmethod
    def pre_restore(self, checkpoint_id: int) -> None:
        """The component returns to checkpoint ``checkpoint_id``: undo outside what came after it."""


class TransactionalSink(TwoPhaseStatefulComponent):
    """Mixed into a bolt that writes to something outside, so that it takes part in batches that are transactions (C42).

    Where the topology's batches are not, it is an ordinary bolt: nothing of this is called, and it acks a tuple when that
    is safe. Where they are, `init_state` comes before ``prepare``. It may then ack at once, since all of the batch comes
    again if it fails; what has to be written by then is written, or put into the state, in `pre_save`, which raises where
    it can't be. What is in the state then is committed with the batch, and delivered in `post_save`.
    `stormspark.connectors.Outbox` is the state of such a sink. What `post_save` raises is told, and the instance goes on: the
    outbox tries again after the next batch.
    """

    @property
    def needs_transactions(self) -> bool:
        """Whether the topology's batches are to be transactions because of this sink."""
        return False

    def pre_restore(self, checkpoint_id: int) -> None:
        """Nothing was delivered of what comes again."""


def kind_of_state(component: object) -> str:
    """How a component asks for state: ``storm`` (`KeepsState`), ``heron`` (`StatefulComponent`), ``sink`` (a
    `TransactionalSink` that makes do without), or not at all: ``""``.
    """
    if isinstance(component, KeepsState):
        return "storm"
    if isinstance(component, TransactionalSink) and not component.needs_transactions:
        return "sink"
    return "heron" if isinstance(component, StatefulComponent) else ""
