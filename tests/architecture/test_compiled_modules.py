"""The tuple path's modules, and what the compiler is told of them, do not drift apart."""

from __future__ import annotations

import ast
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest

from stormspark.tuple_path import MODULES, NEVER_COMPILED, compiled, why_sources
from stormspark.tuple_path.in_place import why_outdated

ROOT = Path(__file__).parents[2]


def test_each_module_of_the_tuple_path_has_its_types_beside_it() -> None:
    """`setup.py` compiles what has a .pxd; `stormspark.tuple_path` knows the same modules."""
    found = {path.relative_to(ROOT).with_suffix("") for path in (ROOT / "stormspark").rglob("*.pxd")}
    assert {".".join(path.parts) for path in found} == {*MODULES, *NEVER_COMPILED}


@pytest.mark.parametrize("module", MODULES)
def test_each_module_says_in_its_first_lines_that_its_types_are_beside_it(module: str) -> None:
    """Who edits one of two files that belong together has to know of the other."""
    source = ROOT / Path(*module.split(".")).with_suffix(".py")
    head = source.read_text().partition("\nfrom __future__")[0]
    assert f"# {source.stem}.pxd beside this module gives " in head


def test_all_is_compiled_or_nothing_is() -> None:
    """Half of it would be slower than none, and a module that was edited would not be the one that runs."""
    if why_outdated(ROOT) is not None:
        pytest.skip("the sources run until `make setup`")
    extensions = list((ROOT / "stormspark").rglob(f"*{EXTENSION_SUFFIXES[0]}"))
    assert len(extensions) in (0, len(MODULES))
    assert compiled() == (bool(extensions) and why_sources() is None)


@pytest.mark.parametrize("module", MODULES)
def test_every_attribute_in_c_is_one_in_python(module: str) -> None:
    """A .pxd names the attributes of the source's ``__slots__``, where the class has some, and no others."""
    source = ROOT / Path(*module.split(".")).with_suffix(".py")
    slots = {
        node.name: {ast.literal_eval(name) for name in ast.walk(value) if isinstance(name, ast.Constant)}
        for node in ast.walk(ast.parse(source.read_text()))
        if isinstance(node, ast.ClassDef)
        for statement in node.body
        if isinstance(statement, ast.Assign) and statement.targets[0].id == "__slots__"  # type: ignore[attr-defined]
        for value in [statement.value]
    }
    name = ""
    declared: dict[str, set[str]] = {}
    for line in source.with_suffix(".pxd").read_text().splitlines():
        words = line.replace("(", " ").replace(":", " ").split()
        if line.startswith("cdef class"):
            name = words[2]
        elif line.startswith("    cdef ") and "(" not in line:
            declared.setdefault(name, set()).add(words[-1])
    for kind, attributes in declared.items():
        if kind in slots:
            assert attributes == slots[kind]
