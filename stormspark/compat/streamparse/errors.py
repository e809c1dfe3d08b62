"""The exceptions for mistakes in a topology's class (A36). Each extends the built-in exception that streamparse raises."""

from __future__ import annotations

from stormspark.errors import InvalidTopologyError

__all__ = ["SpecKeyError", "SpecTypeError", "SpecValueError"]


class SpecValueError(InvalidTopologyError):
    """Raised for a value that is not allowed. It is a ValueError."""


class SpecTypeError(InvalidTopologyError, TypeError):
    """Raised for a value of the wrong type. It is a TypeError."""


class SpecKeyError(InvalidTopologyError, KeyError):
    """Raised for the name of an unknown component or stream. It is a KeyError."""

    __str__ = Exception.__str__  # a KeyError's own __str__ puts the message in quotes
