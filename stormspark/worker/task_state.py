"""The state of one task, and when its component hears of it (C35, C42).

Three kinds come to the same store: what a `StatefulBolt` puts there, what a `StatefulComponent` does, and the attributes of a
component that knows nothing of state (``topology.state.pickle``). The calls, in order:

    storm     prepare, init_state, execute ..., [pre_prepare, pre_commit] a batch; pre_rollback before a batch comes again
    heron     init_state, open or prepare, ..., [pre_save] a batch, [post_save] once it is committed; pre_restore likewise
    pickle    open or prepare, then its attributes are what they were

After ``pre_rollback`` or ``pre_restore`` a new instance begins, so that nothing of the batch that failed is left in attributes.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import cloudpickle
import pyarrow as pa

from stormspark.api.state import StatefulBolt, StatefulComponent, TwoPhaseStatefulComponent
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.checkpoint.state_table import TaskChanges
from stormspark.errors import SerializationError
from stormspark.plan.physical import ComponentPlan, TaskPlan

__all__ = ["TaskState"]

#: The key of pickled attributes.
_ATTRIBUTES = "attributes"


class TaskState:
    """Of ``task``, called ``name`` in messages; kept over all instances of the task."""

    def __init__(self, component: ComponentPlan, task: TaskPlan, name: str, cache_bytes: int) -> None:
        self._component, self._task, self._name = component, task.id, name
        self._index = task.index
        self._kind = component.kind_of_state
        self.store = KeyValueStore(f"{component.place}, task {task.id} ({name})", cache_bytes=cache_bytes)
        #: What belongs to the process and not to the state, by name: collector, context, configuration.
        self._surroundings: Mapping[str, Any] = {}
        self._saved: bytes | None = None  # pickled attributes as they are in the store
        #: The batch that is prepared, and not committed as far as we know.
        self.prepared: int | None = None

    def load(self, rows: Iterable[pa.RecordBatch]) -> None:
        """Hold what the table has."""
        self.store.load(rows)
        self._saved = self.store.get(_ATTRIBUTES) if self._kind == "pickle" else None

    def before(self, instance: Any) -> None:
        """An instance is about to be opened or prepared."""
        if self._kind == "heron":
            instance.init_state(self.store)

    def after(self, instance: Any, **surroundings: Any) -> None:
        """It has been, with these arguments."""
        if self._kind == "storm":
            instance.init_state(self.store)
        elif self._kind == "pickle":
            self._surroundings = surroundings
            if self._saved is not None:
                _Unpickler(self._saved, surroundings).load_into(instance)

    def prepare(self, instance: Any, txid: int) -> TaskChanges:
        """The batch's tuples are done: what the task changed in it.

        Raises what the component's own methods do, and `SerializationError` for a value or an attribute that can't be pickled.
        """
        if isinstance(instance, StatefulBolt):
            instance.pre_prepare(txid)
        elif isinstance(instance, StatefulComponent):
            instance.pre_save(txid)
        elif instance is not None:  # a spout that was never active is not open yet (B2)
            attributes = self._pickled(instance)
            if attributes != self._saved:
                self.store.put(_ATTRIBUTES, attributes)
        self.store.prepare_commit(txid)
        self.prepared = txid
        if isinstance(instance, StatefulBolt):
            instance.pre_commit(txid)
        return TaskChanges(self._component.id, self._index, self.store.changes())

    def committed(self, instance: Any, txid: int) -> None:
        """Batch ``txid`` is committed everywhere; raises what ``post_save`` does."""
        if self.prepared != txid:
            return
        self.prepared = None
        self.store.commit(txid)
        if self._kind == "pickle":
            self._saved = self.store.get(_ATTRIBUTES)
        if isinstance(instance, TwoPhaseStatefulComponent):
            instance.post_save(txid)

    def rolled_back(self, instance: Any, txid: int) -> None:
        """The batch after ``txid`` comes again, for a new instance; raises what ``pre_rollback`` or ``pre_restore`` does."""
        self.prepared = None
        try:
            if isinstance(instance, StatefulBolt):
                instance.pre_rollback()
            elif isinstance(instance, TwoPhaseStatefulComponent):
                instance.pre_restore(txid)
        finally:
            self.store.rollback()

    def _pickled(self, instance: Any) -> bytes:
        attributes = _attributes_of(instance)
        try:
            return self._dumps(attributes)
        except Exception as error:
            culprits = ", ".join(map(repr, self._culprits(attributes))) or "its attributes"
            msg = (
                f"{self._component.place}, task {self._task} ({self._name}): topology.state.pickle can't keep {culprits}: "
                f"{error}; leave it out by __getstate__ and make it again in __setstate__, or make the component a StatefulBolt"
            )
            raise SerializationError(msg) from error

    def _dumps(self, value: Any) -> bytes:
        sink = io.BytesIO()
        _Pickler(sink, self._surroundings).dump(value)
        return sink.getvalue()

    def _culprits(self, attributes: Any) -> list[str]:
        culprits = []
        for name, value in attributes.items() if isinstance(attributes, dict) else ():
            try:
                self._dumps(value)
            except Exception:
                culprits.append(name)
        return culprits


def _attributes_of(instance: Any) -> Any:
    """What the component itself says that its state is, else its attributes."""
    own: Any = type(instance).__getstate__
    return vars(instance) if own is object.__getstate__ else instance.__getstate__()


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    """Pickles with classes of notebooks and scripts, and with ``surroundings`` left out, by their names."""

    def __init__(self, sink: io.BytesIO, surroundings: Mapping[str, Any]) -> None:
        super().__init__(sink, 5)
        self._names = {id(thing): name for name, thing in surroundings.items()}

    def persistent_id(self, thing: object) -> str | None:
        """The name of what is left out."""
        return self._names.get(id(thing))


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, surroundings: Mapping[str, Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._surroundings = surroundings

    def persistent_load(self, name: str) -> Any:
        """What has that name now."""
        return self._surroundings[name]

    def load_into(self, instance: Any) -> None:
        state = self.load()
        if hasattr(instance, "__setstate__"):
            instance.__setstate__(state)
        else:
            vars(instance).update(state)
