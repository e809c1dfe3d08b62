"""What users read names no row of the parity table: nobody who has made a mistake should have to look up an id."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import stormspark
from tests.parity import rows

PACKAGE = Path(stormspark.__file__).parent
IDS = re.compile(rf"\b(?:{'|'.join(sorted(rows(), key=len, reverse=True))})\b")


def _docstrings(tree: ast.AST) -> set[int]:
    """The constants that are statements of their own."""
    return {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}


def _ids_in_texts(source: str) -> Iterator[tuple[int, str]]:
    """The line and the text of each literal that names a row. Comments and docstrings may."""
    tree = ast.parse(source)
    docstrings = _docstrings(tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Constant) or id(node) in docstrings:
            continue
        if isinstance(node.value, str) and IDS.search(node.value):
            yield node.lineno, node.value


def test_no_text_names_a_row() -> None:
    """Put the id into a comment beside the text, or into a docstring."""
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text!r}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line, text in _ids_in_texts(path.read_text(encoding="utf-8"))
    ]
    assert not found


def test_an_id_is_found_in_any_text_but_in_no_comment_and_no_docstring() -> None:
    """The check itself."""
    source = '"""E14."""\nmsg = f"{name} is late (C31)"  # W2\nlog.info("see B4", "K8s", "A100")\n'
    assert [line for line, _ in _ids_in_texts(source)] == [2, 3]
