"""The page of a file of the repository to which a page of the documentation leads: its text, and for a folder its list."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

__all__ = ["source_page", "source_text"]

# Out of the search, which would find each word of the documentation again in a test of it.
_HEAD = "---\norphan: true\nnosearch: true\n---\n\n"
_LANGUAGES = {
    ".clj": "clojure",
    ".ini": "ini",
    ".java": "java",
    ".json": "json",
    ".py": "python",
    ".sh": "bash",
    ".toml": "toml",
    ".yaml": "yaml",
    ".yml": "yaml",
}


def source_page(file: PurePosixPath) -> str:
    """Return the name of the page.

    >>> source_page(PurePosixPath("examples/join.py"))
    'source/examples/join.py'
    """
    return f"source/{file}"


def source_text(root: Path, file: PurePosixPath) -> str:
    """Return the text of the page. Its links are those of a document in the place of the file."""
    path = root / file
    if path.is_dir():
        inside = [PurePosixPath(one.relative_to(path)) for one in sorted(path.rglob("*")) if one.is_file()]
        shown = [
            one for one in inside if not any(part.startswith((".", "__pycache__")) for part in one.parts)
        ]
        return _page(file, "\n".join(f"- [{one}]({path.name}/{one})" for one in shown))
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        return _HEAD + "\n\n".join(_cell(one) for one in json.loads(text)["cells"]) + "\n"
    return _page(file, _fenced(text, _LANGUAGES.get(path.suffix, "text")))


def _page(file: PurePosixPath, body: str) -> str:
    return f"{_HEAD}# {file}\n\n{body}\n"


def _fenced(text: str, language: str) -> str:
    # Longer than any fence within.
    fence = "`" * 8
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _cell(cell: dict[str, Any]) -> str:
    text = "".join(cell["source"])
    return text if cell["cell_type"] == "markdown" else _fenced(text, "python")
