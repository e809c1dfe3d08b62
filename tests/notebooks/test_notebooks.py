"""Every notebook runs from its first cell to its last; what is asserted in its cells holds."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs(path, tmp_path):
    import nbformat  # here, because every run of the fast tests imports this module
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    # In a folder of its own, so that nothing that Spark leaves behind lies among the notebooks.
    NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert _pictures(notebook), "a notebook shows something"


def test_there_are_notebooks():
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_tells_nothing_of_the_machine_it_was_run_on(path):
    text = path.read_text(encoding="utf-8")
    assert not [stray for stray in ("/home/", "/root/", "/tmp/", "/Users/", "/work/") if stray in text]


def _pictures(notebook):
    return [
        output
        for cell in notebook.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.get("data", {})
    ]
