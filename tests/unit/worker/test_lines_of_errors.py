"""W22: an error of a component names the line of the user's own code that raised it."""

import json

import pytest

from stormspark import AsyncBolt, BasicBolt, Fields, TopologyBuilder
from stormspark.errors import ComponentError
from stormspark.local import LocalCluster
from stormspark.testing import FixedTupleSpout
from stormspark.ui.log_lines import one_line


def parsed(text):
    return json.loads(text)


LINE = f"{__file__}:{parsed.__code__.co_firstlineno + 1}"


class Parse(BasicBolt):
    def execute(self, tup, collector):
        parsed(tup[0])

    def declare_output_fields(self, declarer):
        pass


class ParseOnThread(Parse):
    waits = True


class ParseAsync(AsyncBolt):
    async def execute(self, tup):
        parsed(tup[0])

    def declare_output_fields(self, declarer):
        pass


class Prepare(BasicBolt):
    def prepare(self, conf, context):
        parsed("{")

    def execute(self, tup, collector):
        pass

    def declare_output_fields(self, declarer):
        pass


def topology(bolt):
    builder = TopologyBuilder()
    builder.set_spout("texts", FixedTupleSpout([("{",)], Fields("text")))
    builder.set_bolt("parse", bolt).shuffle_grouping("texts")
    return builder.create_topology("texts")


@pytest.mark.parametrize(
    "bolt", [Parse(), ParseOnThread(), ParseAsync()], ids=lambda bolt: type(bolt).__name__
)
def test_an_error_begins_with_the_line_in_the_report_and_in_the_log(bolt, caplog):
    with LocalCluster() as cluster:
        running = cluster.submit_topology("texts", {"topology.message.timeout.secs": 30}, topology(bolt))
        while not (text := running.statistics().components["parse"].last_error):
            running.wait(0.01)
    assert f"{LINE}: Traceback (most recent call last):" in text.splitlines()
    assert text.splitlines()[-1].startswith("json.decoder.JSONDecodeError: ")
    shown = [one_line(record) for record in caplog.records if record.name == "stormspark.task.parse"]
    assert f" {LINE}: json.decoder.JSONDecodeError: " in shown[0]


def test_an_error_that_stops_the_topology_names_the_line():
    with (
        LocalCluster(simulated_time=True) as cluster,
        pytest.raises(ComponentError, match="raised in prepare: ") as raised,
    ):
        cluster.submit_topology("texts", {}, topology(Prepare()))
    first = str(raised.value).splitlines()[0]
    assert "raised in prepare: JSONDecodeError: " in first and first.endswith(f" (at {LINE})")
