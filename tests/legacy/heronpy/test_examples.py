"""Heron's own Python examples, as they are: HERON_EXAMPLES names a checkout of apache/incubator-heron."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: Of each file: the component that is looked at, and how its tuples end: acked, failed too, or not tracked.
EXAMPLES = {
    "word_count_topology": ("count_bolt", "acked"),
    "half_acking_topology": ("half_ack_bolt", "failed"),
    "custom_grouping_topology": ("consume_bolt", "untracked"),
    "multi_stream_topology": ("stream_aggregator", "untracked"),
    "stateful_word_count_topology": ("count_bolt", "untracked"),
    # It imports heron.examples, which is called examples by now: an older name here.
    "window_size_topology": ("count_bolt", "held"),
}
CHECKOUT = Path(os.environ.get("HERON_EXAMPLES", "."))

pytestmark = pytest.mark.skipif(
    "HERON_EXAMPLES" not in os.environ,
    reason="HERON_EXAMPLES is not set to a checkout of apache/incubator-heron",
)


def run(name: str, engine: str, seconds: float, tmp_path: Path) -> dict[str, dict[str, int]]:
    """Counters of each component after so many seconds."""
    figures = tmp_path / "figures.json"
    done = subprocess.run(
        [
            *(sys.executable, "-m", "stormspark.cli", "run", f"{CHECKOUT}/examples/src/python/{name}.py"),
            *("--engine", engine, "--seconds", str(seconds), "--json", str(figures)),
        ],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(json.loads(figures.read_text())["components"])


def test_all_of_them_are_here() -> None:
    """A40: the streamlet ones are tested with streamlets."""
    there = {path.stem for path in (CHECKOUT / "examples/src/python").glob("*_topology.py")}
    assert there - {"join_streamlet_topology"} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example(name: str, tmp_path: Path) -> None:
    """A40, B23, C22, C43, D13: each runs without a change."""
    component, end = EXAMPLES[name]
    figures = run(name, "local", 13 if end == "held" else 3, tmp_path)
    spout = next(one for id, one in figures.items() if "spout" in id)
    assert figures[component]["executed"] > 100 and figures[component]["errors"] == 0
    assert (spout["acked"] > 0) == (end in ("acked", "failed", "held"))
    assert (spout["failed"] > 0) == (end == "failed")


@pytest.mark.spark
@pytest.mark.parametrize("name", ["word_count_topology", "stateful_word_count_topology"])
def test_an_example_on_spark(name: str, tmp_path: Path) -> None:
    """A40, C43: the same on Spark."""
    figures = run(name, "spark", 10, tmp_path)
    assert figures["count_bolt"]["executed"] > 100 and figures["count_bolt"]["errors"] == 0
