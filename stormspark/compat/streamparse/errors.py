"""What is wrong with a topology's class, in the exceptions that streamparse raises for it (A36), with the user's line."""

from __future__ import annotations

from stormspark.errors import InvalidTopologyError

__all__ = ["SpecKeyError", "SpecTypeError", "SpecValueError"]


class SpecValueError(InvalidTopologyError):
    """A ValueError: something has a value that it can't have."""


class SpecTypeError(InvalidTopologyError, TypeError):
    """A TypeError: something is of another type than it must be."""


class SpecKeyError(InvalidTopologyError, KeyError):
    """A KeyError: there is no component or stream of that name."""

    __str__ = Exception.__str__  # a KeyError's own quotes its message
