"""A submit that raises leaves nothing behind, and logs are nobody else's."""

from __future__ import annotations

import gc
import os
import stat
import tempfile
import threading
from pathlib import Path
from typing import Any

import pytest

from stormspark import Fields, TopologyBuilder
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.spark import submit
from stormspark.spark import topology as module
from stormspark.spark.recovery import Recovery
from stormspark.spark.whereabouts import Whereabouts
from stormspark.testing import IdentityBolt, TestWordSpout
from tests.waiting import wait_for_batches

pytestmark = pytest.mark.spark


def words() -> Any:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    builder.set_bolt("end", IdentityBolt(Fields("word"))).shuffle_grouping("words")
    return builder.create_topology("give-back")


def left(spark: Any) -> dict[str, object]:
    """What a topology that begins may leave behind in this process, in the JVM, and on the disk."""
    gc.collect()
    listeners = spark._jsc.sc().listenerBus().listeners()
    scratch = {name for name in os.listdir(tempfile.gettempdir()) if name.startswith("stormspark-")}
    return {
        "threads": sorted(t.name for t in threading.enumerate() if t.name.startswith(("nimbus", "topology"))),
        "sockets": sum("socket" in os.readlink(f"/proc/self/fd/{fd}") for fd in _descriptors()),
        "listeners": listeners.size(),
        "queries": len(spark.streams.active),
        "folders": scratch,
    }


def _descriptors() -> list[str]:
    return [fd for fd in os.listdir("/proc/self/fd") if os.path.lexists(f"/proc/self/fd/{fd}")]


@pytest.mark.parametrize(
    "step", ["durable_acker", "batch_commits", "whereabouts", "feedback", "folder", "shared"]
)
def test_a_submit_that_raises_leaves_nothing(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    def fails(*_: object) -> Any:
        raise OSError("no space left on device")

    conf: dict[str, Any] = {"stormspark.log.dir": str(tmp_path / "logs")}
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))  # where no other test has folders
    checkpoint = tmp_path / "checkpoint"
    if step in ("durable_acker", "batch_commits"):
        monkeypatch.setattr(Recovery, f"_{step}", fails)
    elif step == "whereabouts":
        monkeypatch.setattr(Whereabouts, "write", fails)
    elif step == "feedback":
        monkeypatch.setattr(module, "Feedback", fails)
    elif step == "folder":
        (tmp_path / "logs").symlink_to(tmp_path)
    else:
        checkpoint.mkdir()
        checkpoint.chmod(0o777)
    before = left(spark)
    for _ in range(3):
        with pytest.raises((OSError, UnsupportedEnvironmentError)) as caught:
            submit(words(), spark, checkpoint=checkpoint, conf=conf)
        assert "\n" not in str(caught.value)
        del caught
    after = left(spark)
    # Whatever other topologies of this process have done meanwhile, these three have added nothing.
    assert len(after["threads"]) <= len(before["threads"]), after["threads"]  # type: ignore[arg-type]
    assert after["sockets"] <= before["sockets"] + 1  # type: ignore[operator]
    assert after["listeners"] <= before["listeners"] + 3  # type: ignore[operator]
    assert after["queries"] == before["queries"] and after["folders"] == before["folders"]


def test_the_same_name_can_be_submitted_then(
    start: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And what it writes is for this user alone, whatever the umask."""
    before = os.umask(0)
    try:
        running = start(
            words(), conf={"stormspark.log.dir": str(tmp_path / "a" / "logs"), "topology.workers": 2}
        )
        wait_for_batches(running, 1)
        running.stop()
    finally:
        os.umask(before)
    assert running.error is None
    logs = tmp_path / "a" / "logs"
    names = {path.name: stat.S_IMODE(path.stat().st_mode) for path in logs.iterdir()}
    assert {"topology.json", "worker-0.out", "worker-1.out"} <= set(names)
    assert set(names.values()) == {0o600} and stat.S_IMODE(logs.stat().st_mode) == 0o700
