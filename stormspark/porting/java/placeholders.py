"""Finds something for what a skeleton can't have: ids that only running code knows, and names of fields that are none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stormspark.porting.java.python_text import class_name
from stormspark.porting.java.reading import ReadComponent

__all__ = ["possible", "with_ids"]


def with_ids(components: Sequence[ReadComponent]) -> list[ReadComponent]:
    """Return the components. One without an id is replaced by a copy whose id is the name of its class, or like it."""
    taken = {one.found.id for one in components}
    result = []
    for one in components:
        if one.found.id is None:
            name = class_name(one.found.type_name, one.found.kind.capitalize())
            id_, number = name, 2
            while id_ in taken:
                id_, number = f"{name}-{number}", number + 1
            taken.add(id_)
            result.append(replace(one, found=replace(one.found, id=id_)))
        else:
            result.append(one)
    return result


def possible(fields: Sequence[str]) -> tuple[str, ...]:
    """Return names that differ and are not empty. In Java, a bolt that emits nothing may declare ``new Fields("")``.

    >>> possible(["word", "", "word"])
    ('word', 'value', 'word-2')
    """
    result: list[str] = []
    for field in fields:
        name, number = field or "value", 2
        while name in result:
            name, number = f"{field or 'value'}-{number}", number + 1
        result.append(name)
    return tuple(result)
