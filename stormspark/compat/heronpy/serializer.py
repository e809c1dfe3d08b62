"""How values are turned into bytes, where ``topology.serializer.classname`` names a class for it (A45)."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from typing import Any

import cloudpickle

__all__ = ["IHeronSerializer", "PythonSerializer", "default_serializer"]


class IHeronSerializer:
    """What a serializer of the user's own inherits."""

    @abstractmethod
    def initialize(self, config: Any) -> None:
        """Never called, as in Heron: make what is needed in ``__init__``."""

    @abstractmethod
    def serialize(self, obj: Any) -> bytes:
        """A value as bytes."""
        raise NotImplementedError

    @abstractmethod
    def deserialize(self, input_str: bytes) -> Any:
        """The value."""
        raise NotImplementedError


class PythonSerializer(IHeronSerializer):
    """cloudpickle.

    >>> PythonSerializer().deserialize(PythonSerializer().serialize({"word": 1}))
    {'word': 1}
    """

    def initialize(self, config: Any = None) -> None:
        """Nothing to do."""

    def serialize(self, obj: Any) -> bytes:
        """Pickle it."""
        return bytes(cloudpickle.dumps(obj))

    def deserialize(self, input_str: bytes) -> Any:
        """Unpickle it."""
        return pickle.loads(input_str)


default_serializer = PythonSerializer()
