"""Writes ``docs/reference/parity.md``: the rows of ``parity.toml``, each with the tests that it names by node id.

A test cites rows in its docstring as well (``E20``, or ``E20-E26``), for whoever reads the test; `cited_by` finds those, which
helps to name them when a row is added.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "reference" / "parity.toml"
PAGE = ROOT / "docs" / "reference" / "parity.md"
#: The words that say how a row is here, and what the page's first lines say of them.
WORDS = {
    "works": "work",
    "differs": "differ on purpose",
    "missing": "are missing",
    "never": "will never be",
    "background": "are no behaviour",
}
#: Tests named on the page for each row; the others are counted.
_NAMED = 4
_CITED = re.compile(r"\b([A-Z])(\d+)(?:-\1(\d+))?\b")
_HEAD = """\
# Does it behave like Storm?

Row by row, from tests: [parity.toml](parity.toml) names the tests of each row, `make parity` writes this page from it, and a test
fails when a row has no test, when a test that it names is gone, or when this page is out of date. Tests in **bold** run on the
local engine with one, two and three workers and on Spark. "works" is the same behaviour, "differs" is another one on purpose,
"missing" is one that is not there yet, "never" is one that will not come, and "background" is a statement of the literature that
is no behaviour of a system. [differences.md](differences.md) lists the differences on purpose that matter most.

"""


def rows() -> dict[str, dict[str, Any]]:
    """The rows by id."""
    groups = tomllib.loads(TABLE.read_text(encoding="utf-8"))["groups"].values()
    return {row: entry for group in groups for row, entry in group["rows"].items()}


def rows_in(text: str) -> set[str]:
    """The ids that a docstring cites.

    >>> sorted(rows_in("E20-E22, W4: like B6, but not X."))
    ['B6', 'E20', 'E21', 'E22', 'W4']
    """
    return {
        f"{letter}{number}"
        for letter, first, last in _CITED.findall(text)
        for number in range(int(first), int(last or first) + 1)
    }


@cache
def tests_in(path: str) -> dict[str, str]:
    """The tests of a file, without their parameters, each with its docstring; empty where there is no such file."""
    file = ROOT / path
    if not file.is_file():
        return {}
    return {f"{path}::{name}": doc for name, doc in _tests(ast.parse(file.read_text(encoding="utf-8")))}


def is_there(node: str) -> bool:
    """Whether a node id, of a test or of a file of tests, names something that pytest runs."""
    path, _, name = node.partition("::")
    found = tests_in(path)
    return node in found if name else bool(found)


def cited_by() -> dict[str, list[str]]:
    """The node ids of the tests whose docstrings cite each row, those that run on every engine first."""
    found: defaultdict[str, list[str]] = defaultdict(list)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node, docstring in tests_in(path.relative_to(ROOT).as_posix()).items():
            for row in rows_in(docstring):
                found[row].append(node)
    return {
        row: sorted(nodes, key=lambda node: (not _on_all_engines(node), node)) for row, nodes in found.items()
    }


def _on_all_engines(node: str) -> bool:
    return node.startswith("tests/conformance/")


def _tests(module: ast.Module) -> Iterator[tuple[str, str]]:
    machines: dict[str, str] = {}  # what state machines and their rules say, by class
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""
        elif isinstance(node, ast.ClassDef):
            methods = [one for one in node.body if isinstance(one, ast.FunctionDef)]
            if any("Machine" in ast.unparse(base) for base in node.bases):
                said = [ast.get_docstring(node), *map(ast.get_docstring, methods)]
                machines[node.name] = " ".join(filter(None, said))
            for method in methods:
                if method.name.startswith("test_"):
                    yield f"{node.name}::{method.name}", ast.get_docstring(method) or ""
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]).startswith("Test"):
            # Hypothesis's way to run a state machine: TestThing = Thing.TestCase.
            for name, docstrings in machines.items():
                if f"{name}.TestCase" in ast.unparse(node.value):
                    yield f"{ast.unparse(node.targets[0])}::runTest", docstrings


def page() -> str:
    """The whole page."""
    groups = tomllib.loads(TABLE.read_text(encoding="utf-8"))["groups"]
    words = [entry["here"] for entry in rows().values()]
    lines = [_HEAD + ", ".join(f"{words.count(word)} rows {text}" for word, text in WORDS.items()) + "."]
    for name, group in groups.items():
        lines += [
            "",
            f"## {name}: {group['title']}",
            "",
            "| row | Storm | here | tests |",
            "| --- | --- | --- | --- |",
        ]
        for row, entry in group["rows"].items():
            here = f"{entry['here']}: {entry['why']}" if entry.get("why") else entry["here"]
            lines.append(f"| {row} | {entry['storm']} | {here} | {_named(entry.get('tests', []))} |")
    return "\n".join(lines) + "\n"


def _named(tests: list[str]) -> str:
    named = []
    for test in tests[:_NAMED]:
        path, _, name = test.partition("::")
        link = f"[{(name or Path(path).stem).removeprefix('test_')}](../../{path})"
        named.append(f"**{link}**" if _on_all_engines(test) else link)
    more = len(tests) - len(named)
    return "; ".join(named) + (f"; {more} more" if more else "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
