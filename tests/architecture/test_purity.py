"""The pure packages decide from their arguments alone, so what they decide can be tested and replayed.

import-linter (`make layers`) sees which modules are imported; this sees which names, and what they make.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import stormspark

PACKAGE = Path(stormspark.__file__).parent
PURE = ("acker", "backpressure", "grouping", "metrics", "plan", "windowing")
#: A clock, the outside world, other threads of control, Spark.
FORBIDDEN = {
    "asyncio",
    "delta",
    "multiprocessing",
    "os",
    "py4j",
    "pyspark",
    "secrets",
    "signal",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
}
MODULES = sorted(path for name in PURE for path in (PACKAGE / name).rglob("*.py"))


def imported(tree: ast.AST) -> Iterator[tuple[str, str | None, int]]:
    """Module, name in it (None where all of it is imported), line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, None, node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.module, alias.name, node.lineno


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_pure_modules_know_no_outside_world(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    strays = [
        f"line {line}: {module}" for module, _, line in imported(tree) if module.split(".")[0] in FORBIDDEN
    ]
    assert not strays


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_randomness_is_an_argument(path):
    """The type may be named; a source of randomness that nobody handed in may not be used, nor made."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert {name for module, name, _ in imported(tree) if module == "random"} <= {"Random"}
    made = [
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Random"
    ]
    assert not made


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_dates_and_uuids_are_values(path):
    """Both can be hashed and compared here; none is made from a clock or from the system's randomness."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {func.attr if isinstance(func, ast.Attribute) else ast.unparse(func) for func in calls}
    assert names.isdisjoint({"now", "utcnow", "today", "uuid1", "uuid4", "getnode", "urandom"})


def test_there_is_something_to_look_at():
    assert {path.relative_to(PACKAGE).parts[0] for path in MODULES} == set(PURE)
