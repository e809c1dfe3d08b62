"""Notebooks in the format that Databricks imports: each cell is Python or magic, and what needs no Spark runs."""

from __future__ import annotations

import ast
import json
import subprocess
import sys

import pytest

from tools.notebooks import FOLDER, MAGIC, cells, for_jupyter, is_magic, jupyter_file

NOTEBOOKS = sorted(FOLDER.glob("*.py"))


def test_there_are_notebooks():
    assert [path.stem for path in NOTEBOOKS] == ["03_port_streamparse", "04_kafka_to_delta"]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_cell_is_python_or_magic(path):
    """Databricks would show a cell with some lines of magic as Python, and fail."""
    for cell in cells(path):
        lines = cell.splitlines()
        if is_magic(cell):
            assert all(line.startswith(MAGIC) for line in lines), cell
            assert lines[0].split()[2].startswith("%"), cell
        else:
            assert MAGIC not in cell
            ast.parse(cell)
    assert is_magic(cells(path)[0]), "the first cell says what the notebook is about"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_the_notebook_for_jupyter_has_the_same_cells(path):
    """If not: `python -m tools.notebooks` writes it again."""
    written = json.loads(jupyter_file(path).read_text(encoding="utf-8"))["cells"]
    assert [(cell["cell_type"], "".join(cell["source"])) for cell in written] == for_jupyter(path)


@pytest.mark.slow
def test_the_steps_without_spark_run(tmp_path):
    """All of 03 before its last section."""
    steps = cells(FOLDER / "03_port_streamparse.py")
    end = next(
        number for number, cell in enumerate(steps) if cell.startswith("# MAGIC %md\n# MAGIC ## On Spark")
    )
    program = tmp_path / "notebook.py"
    program.write_text("\n\n".join(cell for cell in steps[:end] if not is_magic(cell)))
    done = subprocess.run(
        [sys.executable, program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "requests: topologies" in done.stdout, "what `stormspark port` says of the project"
