"""Makes notebooks for Jupyter out of those in Databricks' format, which are the source.

    python -m tools.notebooks          writes notebooks/03_*.ipynb, ...; outputs of cells that did not change stay
    python -m tools.notebooks --run    runs them as well, and keeps the outputs; 04 needs a broker (KAFKA_SERVERS)

Cells that install packages are left out: whoever reads a notebook here has stormspark installed.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Any

__all__ = ["BETWEEN", "FIRST", "FOLDER", "MAGIC", "cells", "for_jupyter", "is_magic", "jupyter_file"]

FOLDER = Path(__file__).parents[1] / "notebooks" / "databricks"
FIRST, BETWEEN, MAGIC = "# Databricks notebook source\n", "\n# COMMAND ----------\n", "# MAGIC"


def cells(path: Path) -> list[str]:
    """Return the cells of a notebook in Databricks' format."""
    text = path.read_text(encoding="utf-8")
    if not text.startswith(FIRST):
        msg = f"{path} is no notebook in Databricks' format: its first line is not {FIRST.strip()!r}"
        raise ValueError(msg)
    return [cell.strip("\n") for cell in text.removeprefix(FIRST).split(BETWEEN)]


def is_magic(cell: str) -> bool:
    """Whether a cell is text or a command, and not Python."""
    return cell.startswith(MAGIC)


def jupyter_file(path: Path) -> Path:
    """Return the place of the notebook for Jupyter."""
    return path.parents[1] / f"{path.stem}.ipynb"


def for_jupyter(path: Path) -> list[tuple[str, str]]:
    """Return the cells for Jupyter, each with its kind."""
    found = []
    for cell in cells(path):
        if not is_magic(cell):
            found.append(("code", cell))
            continue
        lines = [line.removeprefix(MAGIC).removeprefix(" ") for line in cell.splitlines()]
        command, _, rest = lines[0].partition(" ")
        if command == "%md":
            found.append(("markdown", "\n".join([*filter(None, [rest]), *lines[1:]])))
        elif command != "%pip":
            msg = f"{path.name}: Jupyter has no command {command}"
            raise ValueError(msg)
    return found


def notebook(path: Path) -> Any:
    """Return the notebook for Jupyter, with the outputs that its file has for the same code."""
    import nbformat

    place = jupyter_file(path)
    outputs: dict[str, Any] = {}
    if place.exists():
        for cell in nbformat.read(place, as_version=4).cells:
            if cell.cell_type == "code":
                outputs[cell.source] = cell
    made = nbformat.v4.new_notebook()
    made.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    for number, (kind, source) in enumerate(for_jupyter(path)):
        cell = getattr(nbformat.v4, f"new_{kind}_cell")(source, id=f"cell-{number}")
        if (before := outputs.get(source)) is not None:
            cell.outputs, cell.execution_count = before.outputs, before.execution_count
        made.cells.append(cell)
    return made


def main() -> None:
    """Write the notebooks."""
    import nbformat

    for path in sorted(FOLDER.glob("*.py")):
        made = notebook(path)
        if "--run" in sys.argv[1:]:
            from nbclient import NotebookClient

            with tempfile.TemporaryDirectory() as folder:
                NotebookClient(made, timeout=600, resources={"metadata": {"path": folder}}).execute()
        nbformat.write(made, jupyter_file(path))
        print(jupyter_file(path))


if __name__ == "__main__":
    main()
