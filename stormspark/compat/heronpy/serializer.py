"""Serializers turn values into bytes. The setting ``topology.serializer.classname`` names a serializer's class (A45)."""

from __future__ import annotations

import pickle
from abc import abstractmethod
from typing import Any

import cloudpickle

__all__ = ["IHeronSerializer", "PythonSerializer", "default_serializer"]


class IHeronSerializer:
    """The base class of users' serializers."""

    @abstractmethod
    def initialize(self, config: Any) -> None:
        """Do nothing. As in Heron, nobody calls this method. Use ``__init__`` instead."""

    @abstractmethod
    def serialize(self, obj: Any) -> bytes:
        """Turn a value into bytes."""
        raise NotImplementedError

    @abstractmethod
    def deserialize(self, input_str: bytes) -> Any:
        """Turn bytes back into a value."""
        raise NotImplementedError


class PythonSerializer(IHeronSerializer):
    """Serializes with cloudpickle.

    >>> PythonSerializer().deserialize(PythonSerializer().serialize({"word": 1}))
    {'word': 1}
    """

    def initialize(self, config: Any = None) -> None:
        """Do nothing."""

    def serialize(self, obj: Any) -> bytes:
        """Pickle a value."""
        return bytes(cloudpickle.dumps(obj))

    def deserialize(self, input_str: bytes) -> Any:
        """Unpickle a value."""
        return pickle.loads(input_str)


default_serializer = PythonSerializer()
