"""The state of one task, and when its component hears of it (C35, C42).

Three kinds come to the same store: what a `StatefulBolt` puts there, what a `StatefulComponent` does, and the attributes of a
component that knows nothing of state (``topology.state.pickle``). The calls, in order:

    storm     prepare, init_state, execute ..., [pre_prepare, pre_commit] a batch; pre_rollback before a batch comes again
    heron     init_state, open or prepare, ..., [pre_save] a batch, [post_save] once it is committed; pre_restore likewise
    pickle    open or prepare, then its attributes are what they were

What a windowed bolt's windows hold has a store of its own, and is committed with it (C41).

After ``pre_rollback`` or ``pre_restore`` a new instance begins, so that nothing of the batch that failed is left in attributes.
"""

from __future__ import annotations

import io
import pickle
from collections.abc import Iterable, Mapping
from typing import Any

import cloudpickle
import pyarrow as pa

from stormspark.api.state import (
    KeepsState,
    StatefulComponent,
    TransactionalSink,
    TwoPhaseStatefulComponent,
)
from stormspark.checkpoint.key_value_store import KeyValueStore
from stormspark.checkpoint.state_files import WINDOW, TaskChanges
from stormspark.errors import SerializationError
from stormspark.plan.physical import ComponentPlan, TaskPlan
from stormspark.worker.windows.windowed_bolt import WindowedBoltExecutor

__all__ = ["TaskState"]

#: The key of pickled attributes.
_ATTRIBUTES = "attributes"


class TaskState:
    """Of ``task``, called ``name`` in messages; kept over all instances of the task."""

    def __init__(self, component: ComponentPlan, task: TaskPlan, name: str, cache_bytes: int) -> None:
        self._component, self._task, self._name = component, task.id, name
        self._index = task.index
        self._kind = component.kind_of_state
        owner = f"{component.place}, task {task.id} ({name})"
        self.store = KeyValueStore(owner, cache_bytes=cache_bytes)
        #: Of a windowed bolt, for what its windows hold; what of that is in memory the windows themselves know.
        self.windows = KeyValueStore(owner, cache_bytes=0) if component.windowed else None
        #: What belongs to the process and not to the state, by name: collector, context, configuration.
        self._surroundings: Mapping[str, Any] = {}
        self._saved: bytes | None = None  # pickled attributes as they are in the store
        #: The batch that is prepared, and not committed as far as we know.
        self.prepared: int | None = None

    def load(self, rows: Iterable[pa.RecordBatch], windows: Iterable[pa.RecordBatch] = ()) -> None:
        """Hold what the table has, of its state and of its windows."""
        self.store.load(rows)
        self._saved = self.store.get(_ATTRIBUTES) if self._kind == "pickle" else None
        if self.windows is not None:
            self.windows.load(windows)

    def before(self, instance: Any) -> None:
        """An instance is about to be opened or prepared."""
        if self._kind == "heron":
            _of_user(instance).init_state(self.store)

    def after(self, instance: Any, **surroundings: Any) -> None:
        """It has been, with these arguments."""
        if self._kind == "storm":
            _of_user(instance).init_state(self.store)
        elif self._kind == "pickle":
            if isinstance(instance, WindowedBoltExecutor):
                surroundings["collector"] = instance.collector
            self._surroundings = surroundings
            if self._saved is not None:
                _Unpickler(self._saved, surroundings).load_into(_of_user(instance))

    def prepare(self, instance: Any, txid: int) -> list[TaskChanges]:
        """The batch's tuples are done: what the task changed in it.

        Raises what the component's own methods do, and `SerializationError` for a value or an attribute that can't be pickled.
        """
        user = _of_user(instance)
        if isinstance(user, KeepsState):
            user.pre_prepare(txid)
        elif isinstance(user, StatefulComponent):
            user.pre_save(txid)
        elif (
            user is not None and self._kind == "pickle"
        ):  # a spout that was never active is not open yet (B2)
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
        """Batch ``txid`` is committed everywhere: it is so here; false where nothing was prepared of it.

        Who can't do this must end, and begin anew on what the table has.
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

    def tell_committed(self, instance: Any, txid: int) -> None:
        """Raises what ``post_save`` does."""
        user = _of_user(instance)
        if isinstance(user, TwoPhaseStatefulComponent):
            user.post_save(txid)

    def tries_again(self, instance: Any) -> bool:
        """Whether the component is a sink that does by itself what ``post_save`` could not."""
        return isinstance(_of_user(instance), TransactionalSink)

    def rolled_back(self, instance: Any, txid: int) -> None:
        """The batch after ``txid`` comes again, for a new instance; raises what ``pre_rollback`` or ``pre_restore`` does."""
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


def _of_user(instance: Any) -> Any:
    """The user's own component."""
    return instance.bolt if isinstance(instance, WindowedBoltExecutor) else instance


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
