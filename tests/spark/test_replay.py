"""A batch that ran on Spark, run again on the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

import stormspark
from stormspark.cli import main
from tests.spark.test_state import topology
from tests.waiting import wait_until_idle

pytestmark = pytest.mark.spark


def test_a_batch_is_replayed_by_the_name_of_its_topology(start, tmp_path: Path):
    """C35: all batches and tasks that are retained do what they did."""
    conf = {
        "topology.workers": 2,
        "test.effects": str(tmp_path),
        "stormspark.record.inputs": True,
        "stormspark.state.retain.txids": 1000,
        "stormspark.batch.target.ms": 100,
    }
    running = start(topology(3000, 2), checkpoint=tmp_path / "checkpoint", conf=conf)
    wait_until_idle(running)
    running.stop()
    assert running.error is None
    last = stormspark.state(tmp_path / "checkpoint", "sums").attrs["txid"]
    replayed = 0
    for batch in range(min(last + 1, 5)):
        for index in range(2):
            said = CliRunner().invoke(
                main, ["replay", "sums", "--batch", str(batch), "--task", f"sums[{index}]", "--limit", "3"]
            )
            if "no recorded inputs" in said.output:
                continue
            assert said.exit_code == 0, said.output
            replayed += (
                "The task did the same as in the recorded batch." in said.output
                and " 0 inputs" not in said.output
            )
    assert replayed >= 2
