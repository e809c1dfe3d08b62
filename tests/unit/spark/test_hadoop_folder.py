"""How files of a checkpoint at a URL are replaced; Spark itself is played."""

from __future__ import annotations

from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark.spark.hadoop_folder import BARE_MANAGER, MANAGER, HadoopFolder, let_spark_choose


class Conf(dict[str, str]):
    """The configuration of a session, or Hadoop's."""

    def unset(self, key: str) -> None:
        del self[key]


@pytest.mark.parametrize("location", ["s3a://bucket/folder", "hdfs://name/folder", "dbfs:/folder"])
def test_spark_chooses_how_files_at_a_url_are_replaced(location: str) -> None:
    """HDFS and S3 rename nothing onto a file that is there, and the class for local folders says nothing about it."""
    conf = Conf({MANAGER: BARE_MANAGER})
    let_spark_choose(conf, location)
    assert not conf
    let_spark_choose(conf, location)  # Spark's default


@pytest.mark.parametrize(
    ("location", "manager"),
    [("/folder", BARE_MANAGER), ("file:///folder", BARE_MANAGER), ("s3a://bucket/folder", "of.the.User")],
)
def test_local_folders_and_the_users_own_choice_stay(location: str, manager: str) -> None:
    conf = Conf({MANAGER: manager})
    let_spark_choose(conf, location)
    assert conf == {MANAGER: manager}


@pytest.mark.parametrize(
    ("location", "manager", "deletes"),
    [
        ("dbfs:/folder", BARE_MANAGER, True),
        ("s3a://bucket/folder", "of.another.Manager", False),
        ("/folder", BARE_MANAGER, False),
    ],
)
def test_a_file_is_deleted_first_where_a_rename_would_not_replace_it(
    location: str, manager: str, deletes: bool
) -> None:
    session = MagicMock()
    streaming = session.sparkContext._jvm.org.apache.spark.sql.execution.streaming.checkpointing
    files = streaming.CheckpointFileManager.create.return_value
    files.getClass.return_value.getName.return_value = manager
    HadoopFolder(session, location).write("control.json", b"{}", replace=True)
    assert files.delete.called == deletes
    assert files.createAtomic.called
