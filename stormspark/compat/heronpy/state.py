"""The state of heronpy's components. They have state only if ``topology.reliability.mode`` is EFFECTIVELY_ONCE (C42-C44)."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from collections.abc import Iterator, MutableMapping
from hashlib import blake2b
from typing import Any

import cloudpickle

__all__ = ["HashMapState", "SavedState", "State", "StatefulComponent"]


class State:
    """The interface of a stateful component's state."""

    @abstractmethod
    def put(self, key: Any, value: Any) -> None:
        """Set the value of ``key``."""

    @abstractmethod
    def get(self, key: Any) -> Any:
        """Return the value of ``key``, or None if the key has no value."""

    @abstractmethod
    def enumerate(self) -> Iterator[tuple[int, Any]]:
        """Return the keys, each with its position."""
        raise NotImplementedError

    @abstractmethod
    def clear(self) -> None:
        """Forget everything."""


class HashMapState(State):
    """A state in a dict. Item access such as ``state["key"]``, which Heron's windowed bolts use, works too (C22).

    >>> state = HashMapState()
    >>> state.put("storm", 1)
    >>> state["heron"] = 2
    >>> state.get("storm"), state["heron"], state.get("flink"), list(state.enumerate())
    (1, 2, None, [(0, 'storm'), (1, 'heron')])
    """

    def __init__(self) -> None:
        self._dict: dict[Any, Any] = {}

    def put(self, key: Any, value: Any) -> None:
        """Set the value of ``key``."""
        self._dict[key] = value

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the value of ``key``, or ``default`` if the key has no value."""
        return self._dict.get(key, default)

    def enumerate(self) -> Iterator[tuple[int, Any]]:
        """Return the keys, each with its position."""
        return enumerate(self._dict)

    def clear(self) -> None:
        """Forget everything."""
        self._dict.clear()

    def __getitem__(self, key: Any) -> Any:
        return self._dict[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._dict[key] = value

    def __delitem__(self, key: Any) -> None:
        del self._dict[key]

    def __contains__(self, key: object) -> bool:
        return key in self._dict

    def __iter__(self) -> Iterator[Any]:
        return iter(self._dict)

    def __len__(self) -> int:
        return len(self._dict)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return str(self._dict)


class SavedState(HashMapState):
    """The state of a task, which `save` writes to the store.

    Heron pickles the whole state at a checkpoint, so values that were changed in place are saved too. For the same effect, `save`
    compares each value with the one that was saved last. The store has copies, and only `save` changes them. So a task that rolls
    back gets exactly the saved values.
    """

    def __init__(self, store: MutableMapping[Any, Any]) -> None:
        super().__init__()
        self._store = store
        self._saved: dict[Any, bytes] = {}
        for key, value in store.items():
            data = cloudpickle.dumps(value)
            self._dict[key] = pickle.loads(data)
            self._saved[key] = _digest(data)

    def save(self) -> None:
        """Write changed values to the store, and delete the store's keys that this state no longer has."""
        now = {}
        for key, value in self._dict.items():
            data = cloudpickle.dumps(value)
            now[key] = digest = _digest(data)
            if self._saved.get(key) != digest:
                self._store[key] = pickle.loads(data)
        for key in self._saved.keys() - now.keys():
            del self._store[key]
        self._saved = now


def _digest(data: bytes) -> bytes:
    return blake2b(data, digest_size=16).digest()


class StatefulComponent:
    """A mixin that gives a spout or a bolt a state (C42). ``init_state`` is called before ``initialize`` (B26)."""

    @abstractmethod
    def init_state(self, state: Any) -> None:
        """Receive the state as it was saved last; at first it is empty. Keep the object, because values are put into it later."""

    @abstractmethod
    def pre_save(self, checkpoint_id: Any) -> None:
        """Put all values that you keep elsewhere into the state. Called before the state is saved."""
