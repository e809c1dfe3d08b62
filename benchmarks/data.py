"""Seeded data of the same shape as the Storm peer's: see ``peers/storm``."""

from __future__ import annotations

import string
from random import Random

__all__ = ["heron_words", "sentences"]


def _words(count: int, seed: int) -> list[str]:
    """``count`` distinct lower-case words of 3 to 10 letters."""
    random = Random(seed)
    words: dict[str, None] = {}
    while len(words) < count:
        words["".join(random.choices(string.ascii_lowercase, k=3 + random.randrange(8)))] = None
    return list(words)


def sentences() -> list[str]:
    """1000 sentences of 8 to 12 words (mean 10) of a 10,000-word vocabulary."""
    vocabulary = _words(10_000, 42)
    random = Random(43)
    return [" ".join(random.choices(vocabulary, k=8 + random.randrange(5))) for _ in range(1000)]


def heron_words() -> list[str]:
    """The Heron paper's dictionary: 175,000 words."""
    return _words(175_000, 44)
