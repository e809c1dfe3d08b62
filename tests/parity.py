"""Writes ``docs/reference/parity.md``: the rows of ``parity.toml`` joined with the tests that cite them in their docstrings.

A test cites a row by its id (``E20``), or several by a range (``E20-E26``); a state machine does so in its own docstring or in
those of its rules. What runs on every engine (``tests/conformance``) comes first.
"""

from __future__ import annotations

import ast
import re
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
TABLE = ROOT / "docs" / "reference" / "parity.toml"
PAGE = ROOT / "docs" / "reference" / "parity.md"
#: Tests named for each row; the others are counted.
_NAMED = 4
_CITED = re.compile(r"\b([A-Z])(\d+)(?:-\1(\d+))?\b")
_HEAD = """\
# Does it behave like Storm?

Row by row, from tests: `make parity` writes this page from [parity.toml](parity.toml) and from the docstrings of the tests, and a
test fails when it is out of date. Tests in **bold** run on the local engine with one, two and three workers and on Spark.
"works" is the same behaviour, "differs" is another one on purpose, "never" is one that will not come.

"""


@dataclass(frozen=True)
class CitedBy:
    """A test and where it is."""

    path: str
    name: str

    @property
    def on_all_engines(self) -> bool:
        """Whether it runs on every engine."""
        return self.path.startswith("tests/conformance/")


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
def citations() -> dict[str, list[CitedBy]]:
    """The tests that cite each row, those of every engine first."""
    found: defaultdict[str, set[CitedBy]] = defaultdict(set)
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        where = path.relative_to(ROOT).as_posix()
        for name, docstring in _tests(ast.parse(path.read_text(encoding="utf-8"))):
            for row in rows_in(docstring):
                found[row].add(CitedBy(where, name))
    return {
        row: sorted(tests, key=lambda test: (not test.on_all_engines, test.path, test.name))
        for row, tests in found.items()
    }


def _tests(module: ast.Module) -> Iterator[tuple[str, str]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, ast.get_docstring(node) or ""
        elif isinstance(node, ast.ClassDef):
            machine = any("Machine" in ast.unparse(base) for base in node.bases)
            if machine:
                yield node.name, ast.get_docstring(node) or ""
            for method in node.body:
                if isinstance(method, ast.FunctionDef) and (machine or method.name.startswith("test_")):
                    yield f"{node.name}.{method.name}", ast.get_docstring(method) or ""


def page() -> str:
    """The whole page."""
    cited = citations()
    groups = tomllib.loads(TABLE.read_text(encoding="utf-8"))["groups"]
    rows = {row: entry for group in groups.values() for row, entry in group["rows"].items()}
    lines = [
        _HEAD
        + ", ".join(
            f"{sum(entry['here'] == word for entry in rows.values())} rows {what}"
            for word, what in (
                ("works", "work"),
                ("differs", "differ on purpose"),
                ("never", "will never be"),
            )
        )
        + "."
    ]
    for name, group in groups.items():
        lines += [
            "",
            f"## {name}: {group['title']}",
            "",
            "| row | Storm | here | tests |",
            "| --- | --- | --- | --- |",
        ]
        for row, entry in group["rows"].items():
            here = f"{entry['here']}: {entry['why']}" if "why" in entry else entry["here"]
            lines.append(f"| {row} | {entry['storm']} | {here} | {_named(cited.get(row, []))} |")
    return "\n".join(lines) + "\n"


def _named(tests: list[CitedBy]) -> str:
    named = []
    for test in tests[:_NAMED]:
        link = f"[{test.name.removeprefix('test_')}](../../{test.path})"
        named.append(f"**{link}**" if test.on_all_engines else link)
    more = len(tests) - len(named)
    return "; ".join(named) + (f"; {more} more" if more else "")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
