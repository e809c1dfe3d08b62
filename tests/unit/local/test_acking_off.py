"""Without ackers."""

from __future__ import annotations

import logging

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.local import LocalCluster
from stormspark.testing import FixedTupleSpout


def test_a_spout_that_gives_message_ids_hears_once_that_acking_is_off(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """W5: it would see immediate acks without knowing why."""
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout([(n,) for n in range(5)], Fields("n")))
    with LocalCluster(simulated_time=True) as cluster, caplog.at_level(logging.WARNING):
        running = cluster.submit_topology("t", {"topology.acker.executors": 0}, builder.create_topology("t"))
        running.run_until_idle()
    said = [record.getMessage() for record in caplog.records if "acking is off" in record.getMessage()]
    assert len(said) == 1 and "topology.acker.executors is 0" in said[0]
