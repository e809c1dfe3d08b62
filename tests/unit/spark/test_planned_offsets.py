"""What is read of Spark's log of offsets before Spark 4.2, where sources are not told at which offset a batch starts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark import TopologyBuilder
from stormspark.connectors import DataFrameSpout
from stormspark.errors import CheckpointError
from stormspark.plan import plan_topology
from stormspark.spark import checkpoint_folder, durable_acker, sources
from stormspark.spark.checkpoint_folder import PlannedOffset, planned_offsets
from stormspark.spark.durable_acker import DurableAcker
from stormspark.spark.range_source import range_stream
from stormspark.spark.sources import open_sources

SETTINGS = '{"batchWatermarkMs":0,"batchTimestampMs":1764288000000,"conf":{}}'
WHOLE = f'v1\n{SETTINGS}\n{{"offset":1}}\n-\n{{"t":{{"0":7}}}}'


class Folder:
    """A folder of this machine, in the place of one that Spark reads."""

    def __init__(self, session: Any, location: str) -> None:
        self.location = location

    def names(self) -> list[str]:
        return [path.name for path in Path(self.location).glob("*")]

    def read(self, name: str) -> bytes:
        return Path(self.location, name).read_bytes()


@pytest.fixture
def offsets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(checkpoint_folder, "HadoopFolder", Folder)
    (tmp_path / "offsets").mkdir()
    return tmp_path / "offsets"


def read(offsets: Path) -> list[PlannedOffset | None]:
    return planned_offsets(MagicMock(), str(offsets.parent))


def test_the_last_batch_counts(offsets: Path) -> None:
    assert read(offsets) == []
    (offsets / "9").write_text(WHOLE)
    (offsets / "10").write_text(WHOLE.replace("7", "8"))
    (offsets / ".10.crc").write_bytes(b"crc")
    ticks, nothing, kafka = read(offsets)
    assert ticks is not None
    assert kafka is not None
    assert (ticks.positions(), nothing, kafka.positions()) == ({"offset": 1}, None, {"t": {"0": 8}})


@pytest.mark.parametrize("length", range(len(WHOLE) - 1))
def test_a_log_that_is_cut_off_is_told_wherever_it_ends(offsets: Path, length: int) -> None:
    """Unless what is left has fewer sources: that is for Spark to tell, which knows how many there are."""
    (offsets / "4").write_text(WHOLE[:length])
    left = WHOLE[:length].split("\n")
    try:
        # What other sources write is theirs, and so nobody looks at it.
        [offset.positions() for offset in read(offsets) if offset]
    except CheckpointError as error:
        told = str(error)
    else:
        assert len(left) > 2
        assert left[2:] == WHOLE.split("\n")[2 : len(left)]
        return
    if length > 1:
        assert f"{offsets}/4 is cut off: expected " in told
        assert f"If there is no {offsets.parent}/commits/4, delete the file and .4.crc beside it" in told


def test_a_log_of_another_version_is_refused(offsets: Path) -> None:
    (offsets / "4").write_text(WHOLE.replace("v1", "v2"))
    with pytest.raises(
        CheckpointError, match=r"offsets/4 is of version 'v2', .* only 'v1' is known: go on "
    ) as error:
        read(offsets)
    assert "\n" not in str(error.value)


def test_a_log_that_can_not_be_read_is_named(offsets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (offsets / "4").write_text(WHOLE)

    def fails(self: Folder, name: str) -> bytes:
        raise OSError("org.apache.hadoop.fs.ChecksumException: Checksum error")

    monkeypatch.setattr(Folder, "read", fails)
    with pytest.raises(
        CheckpointError, match=r"offsets/4 can't be read: .*Checksum error\. .* delete the file"
    ):
        read(offsets)
    monkeypatch.setattr(Folder, "names", lambda self: fails(self, ""))
    with pytest.raises(CheckpointError, match=r"offsets can't be read: .*Checksum error$"):
        read(offsets)


def test_the_acker_tells_what_is_cut_off(offsets: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(durable_acker, "TELLS_STARTS", False)
    acker = DurableAcker.__new__(DurableAcker)
    acker._session, acker._folder = MagicMock(), MagicMock(acker_query=str(offsets.parent))
    (offsets / "0").write_text(f'v1\n{SETTINGS}\n{{"commit": 7}}')
    assert acker._planned() == {"commit": 7}
    (offsets / "0").write_text(f'v1\n{SETTINGS}\n{{"com')
    with pytest.raises(
        CheckpointError, match=r"offsets/0 is cut off: expected an offset in JSON, but got '{.com'"
    ):
        acker._planned()


def test_a_spout_s_offset_that_is_cut_off_is_an_error_of_the_checkpoint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Not of the topology, though it is the spout's stream that finds it."""
    monkeypatch.setattr(sources, "TELLS_STARTS", False)
    builder = TopologyBuilder()
    builder.set_spout("ranges", DataFrameSpout(lambda spark: range_stream(spark, None, "n int"), ["n"]))  # type: ignore[arg-type]
    plan = plan_topology(builder.create_topology("cut"))
    conf: dict[str, Any] = {}
    session = MagicMock()
    session.conf.set, session.conf.get = conf.__setitem__, conf.get
    ticks, cut = PlannedOffset("offsets/4", "{}"), PlannedOffset("offsets/4", '{"t": {"0"')
    with pytest.raises(CheckpointError, match="offsets/4 is cut off"):
        open_sources(plan, session, MagicMock(), [ticks, cut])
    assert json.loads(conf["stormspark.source.planned"]) == ["offsets/4", '{"t": {"0"']
