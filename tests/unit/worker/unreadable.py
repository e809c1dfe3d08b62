"""Values that pickle, and raise or worse while they are unpickled."""

from __future__ import annotations

import copyreg
import sys
import types
from typing import Any

#: How often `Sometimes` still raises.
LEFT = [0]


class NeedsTwo(Exception):  # noqa: N818
    """The classic: pickle calls its class with what `Exception.__init__` was given."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"{code}: {text}")


def _raise(error: type[BaseException], *args: Any) -> Any:
    raise error(*args)


class Raises:
    """Calls a function that raises this."""

    def __init__(self, error: type[BaseException], *args: Any) -> None:
        self.made_of = (error, *args)

    def __reduce__(self) -> Any:
        return _raise, self.made_of


class Silent(Exception):  # noqa: N818
    """An error that can't say what it is."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


class BadState:
    """Can't take its state back."""

    def __init__(self) -> None:
        self.inner = [1, 2]

    def __setstate__(self, state: Any) -> None:
        raise KeyError("inner")


class BadKey:
    """A key whose hash needs what it does not have yet."""

    def __init__(self) -> None:
        self.name = "name"

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, BadKey) and other.name == self.name

    def __getstate__(self) -> Any:
        return None


class Sometimes:
    """Raises as often as `LEFT` says."""

    def __reduce__(self) -> Any:
        return _sometimes, ()


def _sometimes() -> Sometimes:
    if LEFT[0] > 0:
        LEFT[0] -= 1
        raise OSError("not now")
    return Sometimes()


class Node:
    """A tree whose children know their parent."""

    def __init__(self, name: str, *children: Any) -> None:
        self.name, self.parent = name, None
        self.children = list(children)
        for child in children:
            if isinstance(child, Node):
                child.parent = self  # type: ignore[assignment]


class Fine:
    """An ordinary class, with slots and without."""

    def __init__(self, n: int) -> None:
        self.n = n

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Fine) and other.n == self.n

    def __hash__(self) -> int:
        return hash(self.n)


class Bag(list):  # type: ignore[type-arg]
    """A list that takes no more than it has."""

    def extend(self, items: Any) -> None:
        raise ValueError("this bag is full")

    def append(self, item: Any) -> None:
        raise ValueError("this bag is full")


def of_a_module_that_is_gone(after: list[Any]) -> Any:
    """An object of a module that is there while it is pickled; ``after`` gets what takes the module away."""
    module = types.ModuleType("stormspark_test_gone")
    sys.modules[module.__name__] = module
    after.append(lambda: sys.modules.pop(module.__name__, None))
    kind = type("Gone", (), {"__module__": module.__name__})
    module.Gone = kind  # type: ignore[attr-defined]
    return kind()


class Extended:
    """Known by a number that this process does not have any more."""


def with_an_extension_code(after: list[Any]) -> Any:
    """An object whose class is pickled as a number (PEP 307)."""
    place = (Extended.__module__, Extended.__qualname__)
    copyreg.add_extension(*place, 240)

    def remove() -> None:
        copyreg.remove_extension(*place, 240)

    after.append(remove)
    return Extended()


def bag() -> Bag:
    """One with something in it."""
    made = Bag()
    list.append(made, 1)
    return made


#: What pickles and does not unpickle: makers, given a list for what has to happen between the two.
UNREADABLE: dict[str, Any] = {
    "an exception with arguments": lambda after: NeedsTwo(1, "text"),
    "a function that raises": lambda after: Raises(ValueError, "no"),
    "sys.exit": lambda after: Raises(SystemExit, 1),
    "another end of the program": lambda after: Raises(GeneratorExit),
    "an error without a text": lambda after: Raises(Silent),
    "no memory": lambda after: Raises(MemoryError),
    "its state": lambda after: BadState(),
    "a key of a dict": lambda after: {BadKey(): 1},
    "an item of a set": lambda after: {BadKey()},
    "an item of a frozenset": lambda after: frozenset({BadKey()}),
    "a full list": lambda after: bag(),
    "deep inside": lambda after: {"a": [Fine(1), (2, [Node("x", Raises(ValueError, "deep"))])]},
    "a child that knows its parent": lambda after: Node(
        "child", Node("below", Raises(ValueError, "low"))
    ).children[0],
    "a module that is gone": of_a_module_that_is_gone,
    "an extension code that is gone": with_an_extension_code,
    "an argument of a class": lambda after: types.SimpleNamespace(inner=Raises(ValueError, "no")),
}
