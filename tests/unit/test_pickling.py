"""Executors unpickle their components on threads of their own, and import the components' modules there (A3, A16)."""

from __future__ import annotations

import importlib
import sys
import threading
import time
from collections.abc import Iterator
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import Any

import cloudpickle
import pytest

from stormspark import pickling
from stormspark.errors import SerializationError
from stormspark.pickling import pickled, unpickled

PACKAGE = "of_two_modules"


class SlowLoader:
    """Finds the package. Its import goes on once the test has had time to begin a second import."""

    begun = threading.Event()

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name) if name == PACKAGE else None
        if spec is not None:
            vars(spec.loader)["create_module"] = self.create_module
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        self.begun.set()
        time.sleep(0.1)


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package that imports a module of its own."""
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").write_text(f"class First: pass\nfrom {PACKAGE}.other import Other\n")
    (folder / "other.py").write_text("class Other: pass\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    forget_package()


def forget_package() -> None:
    for module in [module for module in sys.modules if module.split(".")[0] == PACKAGE]:
        del sys.modules[module]


def unpickled_on_two_threads(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], list[BaseException]]:
    """Return the names of the classes, and the errors, of two threads that unpickle at the same time."""
    importlib.import_module(PACKAGE)
    modules = sys.modules[PACKAGE], sys.modules[f"{PACKAGE}.other"]
    data = [cloudpickle.dumps(modules[0].First()), cloudpickle.dumps(modules[1].Other())]
    forget_package()
    monkeypatch.setattr(sys, "meta_path", [SlowLoader(), *sys.meta_path])
    SlowLoader.begun.clear()
    names: list[str] = []
    errors: list[BaseException] = []

    def unpickle(pickle: bytes) -> None:
        try:
            names.append(type(unpickled(pickle)).__name__)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=unpickle, args=(each,)) for each in data]
    threads[0].start()
    assert SlowLoader.begun.wait(10)
    threads[1].start()
    for thread in threads:
        thread.join()
    return names, errors


def test_two_threads_may_unpickle_objects_of_one_package(monkeypatch: pytest.MonkeyPatch) -> None:
    names, errors = unpickled_on_two_threads(monkeypatch)
    assert (sorted(names), errors) == (["First", "Other"], [])


def test_without_turns_python_reports_a_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    """This is why threads take turns, and it shows that the test above can fail."""
    monkeypatch.setattr(pickling, "TURN_SECS", 0.0)
    _, errors = unpickled_on_two_threads(monkeypatch)
    assert "_DeadlockError" in [type(error).__name__ for error in errors]


@pytest.mark.parametrize("by_value", [False, True], ids=["class", "module"])
def test_a_module_that_another_thread_imports_is_used_when_its_import_has_ended(
    by_value: bool, tmp_path: Path
) -> None:
    """Executors of one class start at the same time. What the class uses may be defined below it."""
    (tmp_path / "defines_later.py").write_text(DEFINES_LATER)
    GO_ON.set()
    module = importlib.import_module("defines_later")
    data = (
        cloudpickle.dumps(lambda: module.Early().late())
        if by_value
        else cloudpickle.dumps(module.Early().late)
    )
    del sys.modules["defines_later"]
    GO_ON.clear()
    STARTED.clear()
    said: list[object] = []
    threads = [threading.Thread(target=lambda: said.append(unpickled(data)())) for _ in range(2)]
    threads[0].start()
    assert STARTED.wait(10)
    threads[1].start()
    threads[1].join(0.05)
    assert not said
    GO_ON.set()
    for thread in threads:
        thread.join(10)
    del sys.modules["defines_later"]
    assert said == ["late", "late"]


DEFINES_LATER = """
import sys

class Early:
    def late(self):
        return LATE

test = next(module for name, module in sys.modules.items() if name.endswith("test_pickling"))
test.wait()
LATE = "late"
"""


def test_an_object_that_never_ends_its_unpickling_does_not_hold_up_the_others() -> None:
    begun = threading.Thread(target=unpickled, args=(cloudpickle.dumps(Waits()),), daemon=True)
    begun.start()
    assert STARTED.wait(10)
    assert unpickled(cloudpickle.dumps(3)) == 3
    GO_ON.set()
    begun.join()


STARTED, GO_ON = threading.Event(), threading.Event()


def wait() -> None:
    STARTED.set()
    GO_ON.wait()


class Waits:
    """Its unpickling ends when `GO_ON` is set."""

    def __reduce__(self) -> tuple[object, tuple[()]]:
        return wait, ()


SOURCE = """
import threading
from functools import cached_property
LOCK = threading.Lock()
class Plain:
    def uses(self): return LOCK, Plain
class Property:
    @property
    def uses(self): return LOCK, Property
class Cached:
    @cached_property
    def uses(self): return LOCK
class Static:
    @staticmethod
    def uses(): return LOCK
class OfClass:
    @classmethod
    def uses(cls): return LOCK, __class__
"""


@pytest.mark.parametrize("name", ["Plain", "Property", "Cached", "Static", "OfClass"])
def test_what_a_method_uses_is_named(name: str) -> None:
    """Of a class that is pickled by value, such as one of a notebook; the class itself is no culprit."""
    space: dict[str, Any] = {"__name__": "__main__"}
    exec(SOURCE, space)
    with pytest.raises(SerializationError) as caught:
        pickled(space[name](), "here", "do otherwise")
    assert "can't be pickled because of 'LOCK' in function uses: " in str(caught.value)


def test_a_function_whose_variable_has_no_value_yet_gets_the_same_error() -> None:
    """A2: and not a ValueError about an empty cell, which says nothing about pickling."""

    def uses_both() -> object:
        return lock, later

    lock = threading.Lock()
    with pytest.raises(SerializationError, match=r"here can't be pickled: .*lock"):
        pickled(uses_both, "here", "do otherwise")
    later = 1


class _OfTheDriver:
    """Is refused by PySpark when it is pickled, as a DataFrame is."""

    def __reduce__(self) -> Any:
        raise RuntimeError("[CONTEXT_ONLY_VALID_ON_DRIVER] It appears that ...")


def test_what_belongs_to_sparks_driver_is_told_with_what_to_do() -> None:
    """A2: PySpark's own words speak of broadcast variables and transformations."""
    rows = _OfTheDriver()
    with pytest.raises(SerializationError) as error:
        pickled(lambda: rows, "topology.py:3: bolt 'b'", "make it in prepare()")
    assert str(error.value) == (
        "topology.py:3: bolt 'b' can't be pickled because of 'rows' in function <lambda>: Spark's sessions and DataFrames "
        "stay in the driver; rows of a DataFrame are emitted by DataFrameSpout(lambda spark: ..., fields), which makes it "
        "there"
    )


def test_code_that_is_pickled_by_value_keeps_the_name_of_its_file() -> None:
    """cloudpickle 3.1.3 leaves it out, and errors of a notebook's or a script's components then name no line of the user."""

    def of_a_script(value: int) -> Any:
        return lambda: value

    again = unpickled(pickled(of_a_script, "the function", "import it"))
    assert again.__code__ is not of_a_script.__code__
    assert again.__code__.co_filename == again(1).__code__.co_filename == __file__
