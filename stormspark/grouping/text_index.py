"""Computes the task index of a key that is one string, without a memo: for the compiled tuple path.

In plain Python, a look-up in `stormspark.grouping.key_memo` takes a tenth of the time of the loop in this module. Compiled, the
loop takes less time than the look-up, which reads two places in memory that are usually in none of the processor's caches.
"""

# text_index.pxd beside this module gives the function and its variables their C types, with which Cython compiles this
# module. When you add, rename or retype one of them, change both files and check with `make compiled`.

from __future__ import annotations

__all__ = ["COMPILED", "text_index"]

#: Whether this module is compiled.
COMPILED = not __file__.endswith(".py")


def text_index(text: str, targets: int) -> int:
    r"""Return the task index, among ``targets`` tasks, of a key that is this string alone (D1).

    The result equals that of `fields_task_index`. A String's hash is the sum of s[i] * 31**(n-1-i) over UTF-16 units, and the
    hash of a list of one element is 31 more.

    >>> text_index("storm", 4), text_index("\N{GRINNING FACE}", 4)
    (0, 2)
    """
    total = 0
    for character in text:
        unit = ord(character)
        if unit > 0xFFFF:
            total = 31 * total + 0xD800 + ((unit - 0x10000) >> 10)
            unit = 0xDC00 + (unit & 0x3FF)
        total = 31 * total + unit
    total = 31 + total
    # The highest of 32 bits is the sign. No constant here has 32 bits, because it would not be a plain number in C.
    low, sign = total & 0x7FFF_FFFF, (total >> 31) & 1
    return (low - 0x7FFF_FFFF * sign - sign) % targets
