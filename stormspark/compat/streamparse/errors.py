"""The exceptions for mistakes in a topology's class, of the types that streamparse raises (A36), with the user's line."""

from __future__ import annotations

from stormspark.errors import InvalidTopologyError

__all__ = ["SpecKeyError", "SpecTypeError", "SpecValueError"]


class SpecValueError(InvalidTopologyError):
    """A value is not allowed. This is a ValueError."""


class SpecTypeError(InvalidTopologyError, TypeError):
    """A value has the wrong type. This is a TypeError."""


class SpecKeyError(InvalidTopologyError, KeyError):
    """There is no component or stream of that name. This is a KeyError."""

    __str__ = Exception.__str__  # a KeyError's own __str__ puts the message in quotes
