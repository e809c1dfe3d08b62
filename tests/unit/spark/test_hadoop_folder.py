"""How files of a checkpoint at a URL are replaced; Spark itself is played."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from py4j.protocol import Py4JJavaError

from stormspark.spark.hadoop_folder import BARE_MANAGER, MANAGER, HadoopFolder

OF_SPARK = "Spark's choice"


class Conf(dict[str, str]):
    """Hadoop's configuration."""

    set = dict.__setitem__
    unset = dict.__delitem__


class UnsupportedError(Py4JJavaError):  # type: ignore[misc]
    """What Spark raises if its own choice does not know the file system."""

    def __init__(self) -> None:
        """Ask no JVM."""


@pytest.mark.parametrize(
    ("location", "configured", "knows", "taken", "deletes"),
    [
        ("s3a://bucket/folder", BARE_MANAGER, True, OF_SPARK, False),
        ("hdfs://name/folder", BARE_MANAGER, True, OF_SPARK, False),
        ("dbfs:/folder", BARE_MANAGER, False, BARE_MANAGER, True),
        ("s3a://bucket/folder", "of.the.User", True, "of.the.User", False),
        ("file:///folder", BARE_MANAGER, True, BARE_MANAGER, False),
        ("/folder", BARE_MANAGER, True, BARE_MANAGER, False),
    ],
)
def test_a_file_that_is_there_is_replaced(
    location: str, configured: str, knows: bool, taken: str, deletes: bool
) -> None:
    """HDFS and S3 rename nothing onto a file that is there, and the class for local folders says nothing about it."""
    session, conf, files = MagicMock(), Conf({MANAGER: configured}), MagicMock()
    session._jsparkSession.sessionState().newHadoopConf.return_value = conf

    def create(_: object, conf: Conf) -> MagicMock:
        if MANAGER not in conf and not knows:
            raise UnsupportedError
        files.getClass().getName.return_value = conf.get(MANAGER, OF_SPARK)
        return files

    checkpointing = session.sparkContext._jvm.org.apache.spark.sql.execution.streaming.checkpointing
    checkpointing.CheckpointFileManager.create.side_effect = create
    HadoopFolder(session, location).write("control.json", b"{}", replace=True)
    assert files.getClass().getName() == taken
    assert files.delete.called == deletes
    assert files.createAtomic.called
