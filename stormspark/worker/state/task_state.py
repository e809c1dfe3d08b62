"""The state of one task, and the calls by which its component restores, saves and rolls back this state (C35, C42).

Three kinds of components use the same store. `StatefulBolt` is Storm's kind, and `StatefulComponent` is Heron's. The third kind
knows nothing of state, so its attributes are stored (``topology.state.pickle``). A task makes these calls, in this order:

    storm     prepare, init_state, execute ...; per batch: pre_prepare, pre_commit; before a batch runs again: pre_rollback
    heron     init_state, open or prepare, execute ...; per batch: pre_save, and post_save once it is committed;
              before a batch runs again: pre_restore
    pickle    open or prepare; then the attributes are restored; per batch: the attributes are stored

Only a `TwoPhaseStatefulComponent` gets ``post_save`` and ``pre_restore``.

The windows of a windowed bolt are kept in a second store, which is committed together with the first store (C41).

Before a batch runs again, a task makes a new instance of its component, so that no attribute keeps anything of the failed
batch.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import cloudpickle

from stormspark.api.state import (
    KeepsState,
    StatefulComponent,
    TransactionalSink,
    TwoPhaseStatefulComponent,
)
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.checkpoint.state_files import WINDOW, TaskChanges
from stormspark.errors import SerializationError
from stormspark.extras import pyarrow as pa
from stormspark.plan.physical import ComponentPlan, TaskPlan
from stormspark.worker.windows.windowed_bolt import WindowedBoltExecutor

__all__ = ["TaskState"]

#: The key of pickled attributes.
_ATTRIBUTES = "attributes"


class TaskState:
    """The state of ``task``. Error messages call the task ``name``. The state outlives the task's instances."""

    def __init__(self, component: ComponentPlan, task: TaskPlan, name: str, cache_bytes: int) -> None:
        self._component, self._task, self._name = component, task.id, name
        self._index = task.index
        self._kind = component.kind_of_state
        owner = f"{component.place}, task {task.id} ({name})"
        self.store = KeyValueStore(owner, cache_bytes=cache_bytes)
        #: The store for the windows of a windowed bolt. It has no cache, because the windows keep in memory what they need.
        self.windows = KeyValueStore(owner, cache_bytes=0) if component.windowed else None
        #: The objects, by name, that belong to the process and not to the state: collector, context and configuration.
        self._surroundings: Mapping[str, Any] = {}
        self._saved: bytes | None = None  # the pickled attributes that are in the store
        #: The batch that is prepared, as long as the task does not know whether it is committed; else None.
        self.prepared: int | None = None

    def load(self, rows: Iterable[pa.RecordBatch], windows: Iterable[pa.RecordBatch] = ()) -> None:
        """Fill the stores with rows of the state table. ``rows`` are the state, and ``windows`` are the windows."""
        self.store.load(rows)
        self._saved = self.store.get(_ATTRIBUTES) if self._kind == "pickle" else None
        if self.windows is not None:
            self.windows.load(windows)

    def before(self, instance: Any) -> None:
        """Call ``init_state`` of a component of Heron's kind. Call this before ``open`` or ``prepare``."""
        if self._kind == "heron":
            _of_user(instance).init_state(self.store)

    def after(self, instance: Any, **surroundings: Any) -> None:
        """Call ``init_state`` of a component of Storm's kind, or restore attributes. Call this after ``open`` or ``prepare``.

        ``surroundings`` are the context, the collector and the configuration.
        """
        if self._kind == "storm":
            _of_user(instance).init_state(self.store)
        elif self._kind == "pickle":
            if isinstance(instance, WindowedBoltExecutor):
                surroundings["collector"] = instance.collector
            self._surroundings = surroundings
            if self._saved is not None:
                _Unpickler(self._saved, surroundings).load_into(_of_user(instance))

    def prepare(self, instance: Any, txid: int) -> list[TaskChanges]:
        """Prepare the batch, and return the changes that the task has made in the batch. All tuples of the batch must be done.

        Raises any error of the component's own methods, and `SerializationError` for a value or an attribute that can't be
        pickled.
        """
        user = _of_user(instance)
        if isinstance(user, KeepsState):
            user.pre_prepare(txid)
        elif isinstance(user, StatefulComponent):
            user.pre_save(txid)
        # If ``user`` is None, the instance is a spout that was never active, and so is not open yet (B2).
        elif user is not None and self._kind == "pickle":
            attributes = self._pickled(user)
            if attributes != self._saved:
                self.store.put(_ATTRIBUTES, attributes)
        self.store.prepare_commit(txid)
        changes = [TaskChanges(self._component.id, self._index, self.store.changes())]
        if self.windows is not None:
            if isinstance(instance, WindowedBoltExecutor):
                instance.save()
            self.windows.prepare_commit(txid)
            changes.append(TaskChanges(self._component.id, self._index, self.windows.changes(), WINDOW))
        self.prepared = txid
        if isinstance(user, KeepsState):
            user.pre_commit(txid)
        return changes

    def take_over(self, txid: int) -> bool:
        """Make the prepared changes of batch ``txid`` final, because the batch is committed.

        Returns false, and changes nothing, if this object has not prepared the batch.
        """
        if self.prepared != txid:
            return False
        self.store.commit(txid)
        if self.windows is not None:
            self.windows.commit(txid)
        if self._kind == "pickle":
            self._saved = self.store.get(_ATTRIBUTES)
        self.prepared = None
        return True

    def call_post_save(self, instance: Any, txid: int) -> None:
        """Call ``post_save``, if the component has this method. Raises any error of the call."""
        user = _of_user(instance)
        if isinstance(user, TwoPhaseStatefulComponent):
            user.post_save(txid)

    def tries_again(self, instance: Any) -> bool:
        """Return whether the component is a sink. If a delivery has failed in ``post_save``, a sink repeats it by itself."""
        return isinstance(_of_user(instance), TransactionalSink)

    def rolled_back(self, instance: Any, txid: int) -> None:
        """Take the stores back to batch ``txid``, because the batch after that one runs again.

        Raises any error of ``pre_rollback`` or ``pre_restore``, after the stores are rolled back.
        """
        self.prepared = None
        user = _of_user(instance)
        try:
            if isinstance(user, KeepsState):
                user.pre_rollback()
            elif isinstance(user, TwoPhaseStatefulComponent):
                user.pre_restore(txid)
        finally:
            self.store.rollback()
            if self.windows is not None:
                self.windows.rollback()

    def _pickled(self, instance: Any) -> bytes:
        attributes = _attributes_of(instance)
        try:
            return self._dumps(attributes)
        except Exception as error:
            culprits = ", ".join(map(repr, self._culprits(attributes))) or "its attributes"
            msg = (
                f"{self._component.place}, task {self._task} ({self._name}): topology.state.pickle can't keep {culprits}: "
                f"{error}; leave such attributes out in __getstate__ and make them again in __setstate__, or make the component "
                f"a StatefulBolt"
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


def _of_user(instance: Any) -> Any:
    """Return the user's own component."""
    return instance.bolt if isinstance(instance, WindowedBoltExecutor) else instance


def _attributes_of(instance: Any) -> Any:
    """Return the component's attributes, or the result of its own ``__getstate__``, if it has one."""
    own: Any = type(instance).__getstate__
    return vars(instance) if own is object.__getstate__ else instance.__getstate__()


class _Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
    """A pickler that can also pickle classes of notebooks and scripts. Objects in ``surroundings`` are stored by name only."""

    def __init__(self, sink: io.BytesIO, surroundings: Mapping[str, Any]) -> None:
        super().__init__(sink, 5)
        self._names = {id(thing): name for name, thing in surroundings.items()}

    def persistent_id(self, thing: object) -> str | None:
        """Return the name of an object that is stored by name only; None for any other object."""
        return self._names.get(id(thing))


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, surroundings: Mapping[str, Any]) -> None:
        super().__init__(io.BytesIO(data))
        self._surroundings = surroundings

    def persistent_load(self, name: str) -> Any:
        """Return the object that has this name now."""
        return self._surroundings[name]

    def load_into(self, instance: Any) -> None:
        state = self.load()
        if hasattr(instance, "__setstate__"):
            instance.__setstate__(state)
        else:
            vars(instance).update(state)
