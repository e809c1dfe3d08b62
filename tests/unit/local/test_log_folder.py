"""X53e: the local engine writes a log file per task, and stories, if the user names a folder."""

import logging
import stat

import pytest

from stormspark import BasicBolt, Fields, TopologyBuilder
from stormspark.errors import ComponentError, FailedException, UnsupportedEnvironmentError
from stormspark.local import LocalCluster
from stormspark.testing import FixedTupleSpout

log = logging.getLogger("mine")


class Logs(BasicBolt):
    waits = False

    def prepare(self, conf, context):
        log.info("prepared")

    def execute(self, tup, collector):
        log.info("got %d", tup[0])
        if tup[0] == 2:
            raise FailedException("not a 2")

    def declare_output_fields(self, declarer):
        pass


class LogsOnThread(Logs):
    waits = True


class Raises(Logs):
    def prepare(self, conf, context):
        raise ValueError("no")


def topology(bolt):
    builder = TopologyBuilder()
    builder.set_spout("numbers", FixedTupleSpout([(1,), (2,)], Fields("n")))
    builder.set_bolt("log", bolt).shuffle_grouping("numbers")
    return builder.create_topology("logs")


@pytest.mark.parametrize("simulated", [True, False], ids=["simulated", "real"])
@pytest.mark.parametrize("bolt", [Logs(), LogsOnThread()], ids=["on the worker's thread", "on its thread"])
def test_a_task_has_a_log_file_in_the_folder(bolt, simulated, tmp_path):
    before = logging.getLogger().level, list(logging.getLogger().handlers)
    with LocalCluster(simulated_time=simulated) as cluster:
        conf = {"stormspark.log.dir": str(tmp_path / "logs")}
        running = cluster.submit_topology("logs", conf, topology(bolt))
        running.run_until_idle()
        assert running.log_folder == str(tmp_path / "logs")
        assert any("FailedException: not a 2" in str(story.reason) for story in running.stories())
    text = (tmp_path / "logs" / "log-0.log").read_text()
    assert [line.split("mine: ")[1] for line in text.splitlines() if "mine: " in line] == [
        "prepared",
        "got 1",
        "got 2",
    ]
    assert stat.S_IMODE((tmp_path / "logs" / "log-0.log").stat().st_mode) == 0o600
    assert (tmp_path / "logs" / "stories-0.jsonl").exists()
    assert (logging.getLogger().level, logging.getLogger().handlers) == before


def test_a_topology_that_can_not_start_leaves_no_handler(tmp_path):
    before = list(logging.getLogger().handlers)
    with LocalCluster() as cluster, pytest.raises(ComponentError):
        cluster.submit_topology("logs", {"stormspark.log.dir": str(tmp_path / "logs")}, topology(Raises()))
    assert logging.getLogger().handlers == before


def test_an_unsafe_folder_is_refused(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with LocalCluster() as cluster, pytest.raises(UnsupportedEnvironmentError, match="is a link"):
        cluster.submit_topology("logs", {"stormspark.log.dir": str(tmp_path / "link")}, topology(Logs()))


def test_without_a_folder_nothing_is_written():
    with LocalCluster() as cluster:
        running = cluster.submit_topology("logs", {}, topology(Logs()))
        assert running.log_folder is None
