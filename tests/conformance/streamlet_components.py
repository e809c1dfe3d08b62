"""Sources that end, and functions that write what they are given."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stormspark.streamlet import Context, Generator, TransformOperator
from tests.whole_lines import whole_lines


class Given(Generator):
    """Gives each of its elements once, shared out over its tasks."""

    def __init__(self, elements: Sequence[Any]) -> None:
        self.elements = elements

    def setup(self, context: Context) -> None:
        self.left = iter(self.elements[context.get_partition_index() :: context.get_num_partitions()])

    def get(self) -> Any:
        return next(self.left, None)


class GivenWithState(Generator):
    """The same, on from where its state says; then None with its time, for ``seconds`` more: so that windows go on firing."""

    def __init__(self, elements: Sequence[Any], seconds: float) -> None:
        self.elements, self.seconds = elements, seconds

    def setup(self, context: Context) -> None:
        state = context.get_state()
        assert state is not None
        self.state = state
        self.state.setdefault("end", time.time() + self.seconds)

    def get(self) -> Any:
        position = self.state.get("position", 0)
        if position < len(self.elements):
            self.state["position"] = position + 1
            return self.elements[position]
        return ("alive", 0) if time.time() < self.state["end"] else None


class Write:
    """Appends elements to a file, whatever process it is in."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __call__(self, element: Any) -> None:
        with open(self.path, "a", encoding="utf-8") as file:
            file.write(json.dumps(element) + "\n")


def read(path: Path) -> list[Any]:
    """What was written, with tuples in the place of lists."""
    if not path.exists():
        return []
    return [_tuples(json.loads(line)) for line in whole_lines(path)]


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


class Partition(TransformOperator):
    """(partition, element) for each element."""

    def setup(self, context: Context) -> None:
        self.context = context

    def transform(self, tup: Any) -> None:
        (element,) = tup.values
        self.context.emit((self.context.get_partition_index(), element))


class RaiseOnce:
    """Raises at an element the first time that it comes, in any process; a file remembers."""

    def __init__(self, element: Any, mark: Path, error: Exception) -> None:
        self.element, self.mark, self.error = element, mark, error

    def __call__(self, element: Any) -> Any:
        if element == self.element and not self.mark.exists():
            self.mark.touch()
            raise self.error
        return element
