"""streamparse's decorators."""

from functools import lru_cache

__all__ = ["memoized"]

memoized = lru_cache(maxsize=None)
