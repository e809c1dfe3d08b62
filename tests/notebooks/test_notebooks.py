"""Every notebook runs from its first cell to its last; what is asserted in its cells holds."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
WITH_PICTURES = ["01_word_count", "02_backpressure"]
#: `test_databricks_source` runs all of it that needs no Spark.
LONG = {"03_port_streamparse"}
#: It needs a broker.
KAFKA = "04_kafka_to_delta"
#: A reader of the notebook looks at its progress for a minute, in which a busy machine may do nothing.
UNTIL_ALL_IS_THERE = """
import time
import deltalake

while not (
    deltalake.DeltaTable.is_deltatable(TABLE)
    and deltalake.DeltaTable(TABLE).to_pyarrow_table().num_rows == 300
):
    time.sleep(1)
"""

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.long] if path.stem in LONG else [])
        for path in NOTEBOOKS
        if path.stem != KAFKA
    ],
)
def test_it_runs(path, tmp_path):
    notebook = run(path, tmp_path, timeout=300)
    assert _pictures(notebook) or path.stem not in WITH_PICTURES, "a notebook shows something"


@pytest.mark.long
def test_the_notebook_with_kafka_runs(kafka, tmp_path, monkeypatch):
    import deltalake

    kafka.create_topic("orders")
    orders = [{"customer": f"c{number % 3}", "cents": 100} for number in range(300)]
    kafka.produce("orders", [json.dumps(order).encode() for order in orders])
    monkeypatch.setenv("KAFKA_SERVERS", kafka.bootstrap)
    monkeypatch.setenv("NOTEBOOK_FOLDER", str(tmp_path))
    monkeypatch.setenv("NOTEBOOK_TABLE", str(tmp_path / "totals"))
    run(FOLDER / f"{KAFKA}.ipynb", tmp_path, timeout=900, after={"replace=True": UNTIL_ALL_IS_THERE})
    rows = deltalake.DeltaTable(tmp_path / "totals").to_pyarrow_table().to_pylist()
    assert len(rows) == 300, "each order once"
    assert max(row["cents"] for row in rows) == 100 * 100


def run(path, folder, timeout, after=None):
    """Run a notebook. ``after`` has code for the end of each cell with a text in it."""
    import nbformat  # here, because every run of the fast tests imports this module
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    for text, code in (after or {}).items():
        (cell,) = (cell for cell in notebook.cells if cell.cell_type == "code" and text in cell.source)
        cell.source += code
    # In a folder of its own, so that nothing that Spark leaves behind lies among the notebooks.
    NotebookClient(notebook, timeout=timeout, resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} >= {*WITH_PICTURES, *LONG, KAFKA}


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
