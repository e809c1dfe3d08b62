"""Where the durable acker's journal may be, what an earlier stormspark has left in its place, and who else writes there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession, functions

from stormspark.checkpoint.acker_journal import AckerJournal, LocalJournalFiles
from stormspark.errors import CheckpointError
from stormspark.spark import SparkTopology
from stormspark.spark.durable_acker import _session_for_acker, open_records
from stormspark.spark.hadoop_folder import HadoopFolder, HadoopJournalFiles
from tests.spark.test_durable_acker import ROWS, Held
from tests.waiting import wait_for

pytestmark = [pytest.mark.spark, pytest.mark.faults]
OPEN = ROWS - ROWS // 10
ROOT = Path(__file__).parents[2]


@pytest.fixture
def held(start: Callable[..., SparkTopology], tmp_path: Path) -> Held:
    return Held(start, tmp_path)


@pytest.fixture
def url(spark: SparkSession, tmp_path: Path) -> str:
    """A URL that Spark reaches and no Python does; the same is to be seen in ``tmp_path / "disk"``."""
    disk = tmp_path / "disk"
    disk.mkdir()
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    conf.set(f"fs.viewfs.mounttable.{tmp_path.name}.link./disk", disk.as_uri())
    return f"viewfs://{tmp_path.name}/disk"


def test_open_rows_outlive_the_driver_where_only_spark_reaches_the_checkpoint(held: Held, url: str) -> None:
    """E16: hdfs://, dbfs:/, wasbs:// and so on, without a jar."""
    held.checkpoint = f"{url}/checkpoint"
    held.start().kill()
    journal = held.folder / "disk/checkpoint/stormspark/acker/journal"
    assert list(journal.glob("*.arrow"))
    running = held.start(times=2)
    assert running.pending().count() == OPEN
    held.finish(running)
    assert held.replayed(2)


@pytest.mark.long  # the other way round is above
def test_a_local_checkpoint_where_the_default_file_system_is_another(
    held: Held, spark: SparkSession, url: str
) -> None:
    """As on a cluster with HDFS: a path is the driver's all the same."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    before = conf.get("fs.defaultFS")
    conf.set("fs.defaultFS", url)
    try:
        held.start().kill()
        held.finish(held.start(times=2))
    finally:
        conf.set("fs.defaultFS", before)
    assert held.replayed(2)
    assert list((held.folder / "checkpoint/stormspark/acker/journal").glob("*.arrow"))


@pytest.mark.long  # a Spark of its own, which has never had a query
def test_open_trees_are_read_by_a_program_without_queries(held: Held) -> None:
    running = held.start()
    wait_for(lambda: running.pending().count() == OPEN, message="the acker query")
    running.kill()
    command = [sys.executable, "-m", "stormspark", "pending", "held", "--checkpoint", str(held.checkpoint)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)}
    )
    assert done.returncode == 0, done.stderr
    assert f"held: {OPEN} open trees" in done.stdout


def test_a_folder_behind_a_url(spark: SparkSession, url: str, tmp_path: Path) -> None:
    """Files are there whole, once; what is missing, taken or out of reach is told as Python tells it."""
    folder = HadoopFolder(spark, f"{url}/a/b")
    assert folder.names() == []
    with pytest.raises(FileNotFoundError):
        folder.read("one")
    data = bytes(range(256)) * 5000
    folder.write("one", data, replace=False)
    with pytest.raises(FileExistsError):
        folder.write("one", b"other", replace=False)
    assert (folder.read("one"), (tmp_path / "disk/a/b/one").read_bytes()) == (data, data)
    folder.write("one", b"other", replace=True)
    assert folder.read("one") == b"other"
    assert folder.names() == ["one"]
    for _ in range(2):
        folder.delete("one")
    assert folder.names() == []
    shutil.rmtree(tmp_path / "disk/a/b")
    (tmp_path / "disk/a/b").touch()
    with pytest.raises(OSError, match="a/b"):
        folder.write("one", data, replace=False)
    with pytest.raises(OSError, match="nosuchscheme"):
        HadoopFolder(spark, "nosuchscheme://name/folder")


def test_what_another_driver_has_left_behind_a_url_can_be_read_here(
    spark: SparkSession, url: str, tmp_path: Path
) -> None:
    """And what was written while the local disk was full."""
    files = HadoopJournalFiles(spark, f"{url}/journal", tmp_path / "spool-1")
    files.add(1, b"one")
    files.add(2, b"two")
    again = HadoopJournalFiles(spark, f"{url}/journal", tmp_path / "spool-2")
    assert again.numbers() == LocalJournalFiles(again.folder).numbers() == [1, 2]
    (again.folder / "2.arrow").unlink()
    assert again.read(2) == b"two"
    assert (again.folder / "2.arrow").read_bytes() == b"two"
    with pytest.raises(FileExistsError):
        again.add(2, b"other")
    again.delete([1])
    assert again.numbers() == LocalJournalFiles(again.folder).numbers() == [2]


class Earlier:
    """The durable acker as it was: a Delta table, which Spark reads with Delta's jars."""

    def __init__(self, spark: SparkSession, acker: Path) -> None:
        self.log, self.query = str(acker / "log"), (acker / "query").as_uri()
        self._session = _session_for_acker(spark)

    def write(self, changes: pa.Table) -> None:
        """A commit."""
        changes = changes.append_column("epoch", pa.repeat(pa.scalar(7, pa.int64()), changes.num_rows))
        if not DeltaTable.is_deltatable(self.log):
            said = "stormspark.acker.delay=77.0"
            DeltaTable.create(self.log, changes.schema, partition_by=["epoch"], description=said)
        write_deltalake(self.log, changes, mode="append")

    def read(self) -> None:
        """A batch of its query, or several."""
        source = functions.struct("component", "task", "batch", "message_id", "row")
        there = functions.when(functions.col("row").isNotNull(), source)
        query = (
            self._session.readStream.format("delta")
            .option("skipChangeCommits", "true")
            .load(self.log)
            .withWatermark("created", "77 seconds")
            .groupBy("root", "created")
            .agg(
                functions.bit_xor("value").alias("value"),
                functions.first(there, ignorenulls=True).alias("source"),
            )
            .writeStream.outputMode("append")
            .foreachBatch(_look)
            .option("checkpointLocation", self.query)
            .start()
        )
        query.processAllAvailable()
        query.stop()


def _look(frame: DataFrame, number: int) -> None:
    frame.collect()


@pytest.fixture
def commits(held: Held, monkeypatch: pytest.MonkeyPatch) -> list[pa.Table]:
    """The commits of a topology that holds its rows and whose driver has died; its journal is gone."""
    with monkeypatch.context() as patched:
        patched.setattr(AckerJournal, "forget", lambda self, up_to: 0)
        held.start().kill()
    acker = held.folder / "checkpoint/stormspark/acker"
    files = LocalJournalFiles(acker / "journal")
    found = [pa.ipc.open_stream(files.read(number)).read_all() for number in files.numbers()]
    shutil.rmtree(acker)
    return [table.replace_schema_metadata(None) for table in found]


@pytest.mark.parametrize(
    "read",
    ["nothing", pytest.param("some", marks=pytest.mark.long), pytest.param("all", marks=pytest.mark.long)],
)
def test_what_an_earlier_version_has_left_open_comes_again(
    read: str, held: Held, spark: SparkSession, commits: list[pa.Table]
) -> None:
    """Whatever its query had read of it; and once."""
    acker = held.folder / "checkpoint/stormspark/acker"
    earlier = Earlier(spark, acker)
    half = (len(commits) + 1) // 2
    for commit in commits[:half]:
        earlier.write(commit)
    if read != "nothing":
        earlier.read()
    for commit in commits[half:]:
        earlier.write(commit)
    if read == "all":
        earlier.read()
        assert open_records(spark, earlier.query).count() == OPEN
    running = held.start(times=2)
    assert running.acker is not None
    assert running.acker.time.delay == 77.0
    assert running.pending().count() == OPEN
    assert sorted(path.name for path in acker.iterdir()) == ["journal", "records"]
    held.finish(running)
    assert held.replayed(2)


def test_an_earlier_table_that_can_not_be_read_is_refused(
    held: Held, spark: SparkSession, commits: list[pa.Table]
) -> None:
    acker = held.folder / "checkpoint/stormspark/acker"
    earlier = Earlier(spark, acker)
    for commit in commits:
        earlier.write(commit)
    next(iter(Path(earlier.log).glob("epoch=*/*.parquet"))).unlink()
    with pytest.raises(
        CheckpointError,
        match=r"the open rows that an earlier stormspark.* can't be read: .*--trigger available-now",
    ):
        held.start(times=2)
    assert not (acker / "journal").exists()


@pytest.mark.long  # an earlier table is refused above
@pytest.mark.parametrize("gone", ["journal", "records"])
def test_a_journal_and_a_query_that_do_not_belong_together_are_refused(gone: str, held: Held) -> None:
    """Either alone would forget open rows without a word."""
    running = held.start()

    def has_read() -> bool:
        assert not running.wait(0), f"the topology ended: {running.error}"
        return running.pending().count() == OPEN

    wait_for(has_read, message=lambda: f"the query to have read the journal: {held.state(running)}")
    running.kill()
    shutil.rmtree(held.folder / "checkpoint/stormspark/acker" / gone)
    journal = LocalJournalFiles(held.folder / "checkpoint/stormspark/acker/journal")
    if gone == "records":
        last = journal.numbers()[-1]
        journal.add(last + 1, journal.read(last))
        journal.delete(range(1, last + 1))  # read long ago
    with pytest.raises(CheckpointError, match="they do not fit together"):
        held.start(times=2)
