"""The pure packages decide from their arguments alone, so what they decide can be tested and replayed.

import-linter (`make layers`) sees which modules are imported; this sees which names, and what they make.
"""

import ast
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

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


def found_in_modules(search: Callable[[ast.Module], Iterable[object]]) -> dict[str, list[object]]:
    """What a search finds in each module of the pure packages; modules in which it finds nothing are left out."""
    found = {str(path.relative_to(PACKAGE)): list(search(tree)) for path, tree in trees().items()}
    return {path: strays for path, strays in found.items() if strays}


@cache
def trees() -> dict[Path, ast.Module]:
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}


def test_pure_modules_know_no_outside_world():
    def strays(tree):
        return [
            f"line {line}: {module}"
            for module, _, line in imported(tree)
            if module.split(".")[0] in FORBIDDEN
        ]

    assert found_in_modules(strays) == {}


def test_randomness_is_an_argument():
    """The type may be named; a source of randomness that nobody handed in may not be used, nor made."""

    def strays(tree):
        for module, name, line in imported(tree):
            if module == "random" and name != "Random":
                yield f"line {line}: random.{name or ''}"
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Random":
                yield f"line {node.lineno}: Random is made"

    assert found_in_modules(strays) == {}


def test_dates_and_uuids_are_values():
    """Both can be hashed and compared here; none is made from a clock or from the system's randomness."""

    def strays(tree):
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                func = node.func
                name = func.attr if isinstance(func, ast.Attribute) else ast.unparse(func)
                if name in {"now", "utcnow", "today", "uuid1", "uuid4", "getnode", "urandom"}:
                    yield f"line {node.lineno}: {name}"

    assert found_in_modules(strays) == {}


def test_there_is_something_to_look_at():
    assert {path.relative_to(PACKAGE).parts[0] for path in MODULES} == set(PURE)
