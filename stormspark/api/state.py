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
    """State that a task keeps from batch to batch (C35). The engine calls the methods of this class; components do not."""

    @abstractmethod
    def prepare_commit(self, txid: int) -> None:
        """Prepare to commit all changes, as transaction ``txid``.

        The same transaction may be prepared again. Then it also includes the changes made since the last time. Raises
        `StateError` while another transaction is prepared.
        """

    @abstractmethod
    def commit(self, txid: int | None = None) -> None:
        """Commit what was prepared as ``txid``. If ``txid`` is None, commit all changes made so far.

        Raises `StateError` if another transaction, or none, is prepared.
        """

    @abstractmethod
    def rollback(self) -> None:
        """Return to the last commit. All later changes, prepared or not, are gone."""


class KeyValueState(State, MutableMapping[K, V]):
    """State as a map (C35), in which each task has its own keys.

    Storm's methods are `put`, `get`, `delete` and `iterate`. The methods of a Python dict work, too. Any object that can be
    pickled can be a key or a value, and None is a value. The docstring of `iterate` says which keys have an order, and which can
    have prefixes.

    >>> from stormspark.checkpoint.key_value_store import KeyValueStore
    >>> state: KeyValueState = KeyValueStore()
    >>> state.put("spark", 1)
    >>> state["storm"] = state.get("storm", 0) + 2
    >>> list(state.iterate("st")), "heron" in state, state.delete("spark"), len(state)
    ([('storm', 2)], False, 1, 1)

    The state may hold more keys than fit into memory, so values are written out and read back. **Put a value again after
    you have changed it in place.** If you append to a list and do not put it again, the state table keeps its old contents,
    and the result of `get` depends on whether the list was still in memory.
    """

    @abstractmethod
    def put(self, key: K, value: V) -> None:
        """Set the value of ``key``, as ``state[key] = value`` does.

        Raises `SerializationError` if ``key`` can't be a key. The value is pickled at the end of the batch.
        """

    @abstractmethod
    def delete(self, key: K) -> V | None:
        """Remove ``key`` and return its value. Return None if there is no such key; ``del state[key]`` raises KeyError then."""

    @abstractmethod
    def iterate(self, prefix: str | bytes | tuple[Any, ...] | None = None) -> Iterator[tuple[K, V]]:
        """Yield keys and values in the order of the keys: all of them, or those that begin with ``prefix``.

        A string is a prefix of strings and bytes are a prefix of bytes. A tuple is a prefix of tuples that begin with the same
        items: ``iterate(("user", 7))`` yields ``("user", 7, "name")`` and not ``("user", 70)``. The order is None, False, True,
        ints, floats, bytes, strings, tuples, each in Python's order. All other keys follow in an arbitrary order.

        You may change the state during the iteration. It yields the state as it was when the first pair was requested.
        """

    def __iter__(self) -> Iterator[K]:
        return (key for key, _ in self.iterate())


class KeepsState(ABC, Generic[S]):
    """The base class of `StatefulBolt` and `StatefulWindowedBolt` (C35, Storm's IStatefulComponent)."""

    @abstractmethod
    def init_state(self, state: S) -> None:
        """Called after ``prepare``, before any tuple, with the state of the last commit, which is empty at first."""

    def pre_prepare(self, txid: int) -> None:
        """Called when all tuples of the batch are executed. You may still change the state, as part of transaction ``txid``."""

    def pre_commit(self, txid: int) -> None:
        """Called when transaction ``txid`` is prepared and about to be committed. The state may not change any more."""

    def pre_rollback(self) -> None:
        """Called when the batch was not committed and will run again.

        The engine then rolls the state back and makes a new instance, so attributes need no reset.
        """


class StatefulBolt(KeepsState[S], Bolt):
    """A bolt that has a `State` (C35, Storm's BaseStatefulBolt).

    The order of calls is ``prepare``, `init_state`, then ``execute`` for every tuple. At the end of each batch come
    `pre_prepare` and `pre_commit`. `pre_rollback` is called before a batch is run again in the same process.

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
    """A mixin that gives a spout or a bolt a state, as in Heron (C42).

    `init_state` is called before ``open`` or ``prepare``. For a `StatefulBolt` it is called after ``prepare``.

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
        """Called before anything else, with the state of the last save, which is empty at first.

        Keep the object: `pre_save` has to put values into it.
        """

    @abstractmethod
    def pre_save(self, checkpoint_id: int) -> None:
        """Called before the state is saved. Put into the state everything that has to be saved and is not in it yet."""


class TwoPhaseStatefulComponent(StatefulComponent):
    """A `StatefulComponent` that also acts on something outside of the topology when a checkpoint is complete (C42)."""

    @abstractmethod
    def post_save(self, checkpoint_id: int) -> None:
        """Called when checkpoint ``checkpoint_id`` is complete everywhere. No tuple was executed since `pre_save`.

        If the process dies first, this method is never called for that checkpoint. The method may also raise half way. In both
        cases a new instance starts. Its `init_state` has to find out from the state which work is still to be done.
        """

    @abstractmethod
    def pre_restore(self, checkpoint_id: int) -> None:
        """Called when the component returns to checkpoint ``checkpoint_id``. Undo what it did outside after that checkpoint."""


class TransactionalSink(TwoPhaseStatefulComponent):
    """A mixin for a bolt that writes to a place outside of the topology, and delivers its output only once the batch is committed
    (C42).

    If the topology's batches are not transactions, the bolt works like an ordinary bolt. None of the methods for state is called,
    and the bolt acks a tuple when the tuple's output is safe.

    If batches are transactions, `init_state` is called before ``prepare``. The bolt may then ack at once, since the whole batch
    runs again if the batch fails. `pre_save` writes the batch's output, or puts the output into the state, and raises if it can
    do neither. The state is committed with the batch. Then `post_save` delivers the output. `stormspark.connectors.Outbox` is the
    state of such a sink. An exception in `post_save` is reported, and the instance goes on: the outbox tries to deliver again
    after the next batch.
    """

    @property
    def needs_transactions(self) -> bool:
        """Whether this sink makes the topology's batches transactions."""
        return False

    def pre_restore(self, checkpoint_id: int) -> None:
        """Do nothing, because the output of a batch that runs again has not been delivered."""


def kind_of_state(component: object) -> str:
    """Return how a component asks for state: ``storm`` for a `KeepsState`, ``heron`` for a `StatefulComponent`.

    Return ``sink`` for a `TransactionalSink` that can work without transactions, and ``""`` for any other component.
    """
    if isinstance(component, KeepsState):
        return "storm"
    if isinstance(component, TransactionalSink) and not component.needs_transactions:
        return "sink"
    return "heron" if isinstance(component, StatefulComponent) else ""
