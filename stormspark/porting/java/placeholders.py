"""Gives ids to the components of a skeleton whose ids in Java are only known when the code runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stormspark.porting.java.python_text import class_name
from stormspark.porting.java.reading import ReadComponent

__all__ = ["with_ids"]


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
