"""What a session of ours is given by its user."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from tests.spark_jars import connector_conf

pytestmark = pytest.mark.spark


def test_java_options_and_jars_of_the_user_come_beside_ours(spark: SparkSession) -> None:
    """Ours say where logs go, and which file system is used."""
    conf = spark.sparkContext.getConf()
    theirs = connector_conf()
    options = conf.get("spark.driver.extraJavaOptions") or ""
    assert "-Dlog4j2.configurationFile=" in options and theirs["spark.driver.extraJavaOptions"] in options
    jars = conf.get("spark.driver.extraClassPath") or ""
    assert "hadoop-bare-naked-local-fs" in jars and theirs["spark.driver.extraClassPath"] in jars
