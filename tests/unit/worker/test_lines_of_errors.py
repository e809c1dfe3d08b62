"""W22: an error of a component names the line of the user's own code that raised it."""

import json
import sys

import pytest

from stormspark import AsyncBolt, AsyncSpout, BasicBolt, Fields, TopologyBuilder
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


class _DeadlockError(RuntimeError):
    """Has the name of the error that Python's import raises; that class has no public name."""


class ImportsLate(Prepare):
    def prepare(self, conf, context):
        raise _DeadlockError("deadlock detected by _ModuleLock('pandas.core')")


def test_an_error_of_imports_on_several_threads_says_what_to_do():
    with LocalCluster() as cluster, pytest.raises(ComponentError) as raised:
        cluster.submit_topology("texts", {}, topology(ImportsLate()))
    hint = str(raised.value).splitlines()[-1]
    assert hint.startswith(
        "another thread was importing the same package: import it at the top of the module of this bolt"
    )


def leave():
    sys.exit(3)


LEAVES_AT = f"{__file__}:{leave.__code__.co_firstlineno + 1}"


class Leave(Parse):
    def execute(self, tup, collector):
        leave()


class LeaveOnThread(Leave):
    waits = True


class LeaveAsync(ParseAsync):
    async def execute(self, tup):
        leave()


@pytest.mark.parametrize(
    "bolt", [Leave(), LeaveOnThread(), LeaveAsync()], ids=lambda bolt: type(bolt).__name__
)
def test_code_that_exits_is_named_with_its_line(bolt):
    with LocalCluster() as cluster:
        running = cluster.submit_topology("texts", {"topology.message.timeout.secs": 30}, topology(bolt))
        while not (text := running.statistics().components["parse"].last_error):
            running.wait(0.01)
    assert f"{LEAVES_AT}: Traceback (most recent call last):" in text.splitlines()
    assert text.splitlines()[-1].endswith("SystemExit: 3")


class LeaveAtEndOnThread(ParseOnThread):
    def execute(self, tup, collector):
        pass

    def cleanup(self):
        leave()


class TimerOnThread(LeaveAtEndOnThread):
    def prepare(self, conf, context):
        context.set_timer(0.001, leave)

    def cleanup(self):
        pass


@pytest.mark.parametrize(
    "bolt", [LeaveAtEndOnThread(), TimerOnThread()], ids=lambda bolt: type(bolt).__name__
)
def test_a_timer_and_a_cleanup_that_exit_are_named_with_their_line(bolt, caplog):
    with LocalCluster() as cluster:
        running = cluster.submit_topology("texts", {}, topology(bolt))
        if isinstance(bolt, TimerOnThread):
            while not running.statistics().components["parse"].last_error:
                running.wait(0.01)
    shown = [one_line(record) for record in caplog.records if record.name == "stormspark.task.parse"]
    assert f" {LEAVES_AT}: RuntimeError: " in shown[0] and shown[0].endswith("raised SystemExit: 3")


class LeaveAsyncSpout(AsyncSpout):
    async def next_tuple(self):
        leave()

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("text"))


def test_an_async_spout_that_exits_is_named_with_its_line():
    builder = TopologyBuilder()
    builder.set_spout("leaves", LeaveAsyncSpout())
    builder.set_bolt("parse", Parse()).shuffle_grouping("leaves")
    with LocalCluster() as cluster:
        running = cluster.submit_topology("texts", {}, builder.create_topology("texts"))
        while not (text := running.statistics().components["leaves"].last_error):
            running.wait(0.01)
    assert f"{LEAVES_AT}: Traceback (most recent call last):" in text.splitlines()
    assert text.splitlines()[-1] == "RuntimeError: next_tuple raised SystemExit: 3"


def test_an_error_that_stops_the_topology_names_the_line():
    with (
        LocalCluster(simulated_time=True) as cluster,
        pytest.raises(ComponentError, match="raised in prepare: ") as raised,
    ):
        cluster.submit_topology("texts", {}, topology(Prepare()))
    first = str(raised.value).splitlines()[0]
    assert "raised in prepare: JSONDecodeError: " in first and first.endswith(f" (at {LINE})")
