"""Finds values that an object leads to, but that the search would miss: those of weak references, of ufuncs and of arrays. No
user code runs.
"""

from __future__ import annotations

import gc
import sys
import weakref
from collections.abc import Sequence
from typing import Any

__all__ = ["hidden_values"]


def hidden_values(value: Any) -> Sequence[object] | None:
    """Return the values that an object hides. Most objects hide none. None if the values can't be read.

    >>> import weakref
    >>> class Client:
    ...     pass
    >>> client = Client()
    >>> hidden_values(weakref.ref(client)) == (client,), hidden_values(weakref.proxy(client)), hidden_values([client])
    (True, None, ())
    """
    kind = type(value)
    if issubclass(kind, weakref.ReferenceType):
        return (weakref.ReferenceType.__call__(value),)
    if issubclass(kind, weakref.ProxyTypes):
        return None  # reading its object would call the object's code
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return ()
    if kind is numpy.ufunc and "(vectorized)" in value.__name__:  # made by numpy.frompyfunc
        functions = [one for one in gc.get_referents(value) if callable(one)]
        return functions or None
    if issubclass(kind, numpy.ndarray) and numpy.ndarray.dtype.__get__(value).hasobject:
        return (numpy.ndarray.tolist(numpy.ndarray.view(value, numpy.ndarray)),)
    return ()
