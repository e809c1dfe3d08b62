"""Tells whose Spark this is: which PySpark this process would import, and who has started Spark for it, if somebody else has.

A program that ``spark-submit`` has started, and a notebook or a job on Databricks, have a Spark already. Such a program takes the
session that is there. It never starts another one, and never stops the one that it was given: on Databricks that is everybody's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import unquote, urlsplit

from stormspark.errors import CheckpointError
from stormspark.extras import version_of

__all__ = [
    "DATABRICKS",
    "SPARK_SUBMIT",
    "in_databricks",
    "is_checkpoint",
    "is_url",
    "on_databricks",
    "only_by_spark",
    "pyspark_found",
    "spark_launcher",
]

DATABRICKS, SPARK_SUBMIT = "Databricks", "spark-submit"


def spark_launcher(environment: Mapping[str, str] | None = None) -> str | None:
    """Return who has started this process's Spark; None if nobody has, so that this process may start one.

    >>> spark_launcher({"DATABRICKS_RUNTIME_VERSION": "19.3"}), spark_launcher({"PYSPARK_GATEWAY_PORT": "4711"})
    ('Databricks', 'spark-submit')
    >>> spark_launcher({})
    """
    given = os.environ if environment is None else environment
    if given.get("DATABRICKS_RUNTIME_VERSION"):
        return DATABRICKS
    return SPARK_SUBMIT if given.get("PYSPARK_GATEWAY_PORT") else None


def pyspark_found() -> tuple[Path, str] | None:
    """Return the folder of the PySpark that this program would import, and its version; None if there is none."""
    try:
        spec = find_spec("pyspark")
    except (ImportError, ValueError):
        return None
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent
    try:
        # A loader also reads from the ``pyspark.zip`` of a Spark.
        text = spec.loader.get_data(str(folder / "version.py")).decode()  # type: ignore[union-attr]
        # Releases have single quotes there, and Spark's sources have double ones.
        told = re.search(r"""__version__[^=]*=\s*["']([^"']+)["']""", text)
    except (OSError, AttributeError):
        told = None
    return folder, told[1] if told else version_of("pyspark") or "of an unknown version"


def on_databricks() -> bool:
    """Whether this process runs on a cluster of Databricks."""
    return spark_launcher() == DATABRICKS


def is_url(location: str) -> bool:
    """Whether a location is a URL, for Spark's file systems, and not a path. Some have no slashes at their beginning.

    >>> [is_url(one) for one in ("s3a://bucket/a", "dbfs:/Volumes/a", "file:/a", "hdfs:///a", "/a:b", "a/b:c", "c:d")]
    [True, True, True, True, False, False, False]
    """
    return re.match(r"\w[\w+.-]+:", location) is not None


def is_checkpoint(name: str) -> bool:
    """Whether a user has named a topology by its checkpoint folder: a path or a URL with a slash, or a folder that is here.

    >>> [is_checkpoint(name) for name in ("words", "checkpoints/words", "hdfs:///checkpoints/words")]
    [False, True, True]
    """
    return "/" in name or Path(name, "stormspark").is_dir()


def in_databricks(location: str) -> str:
    """Return the name under which Spark on Databricks reaches a checkpoint. Raises `CheckpointError` for a workspace folder.

    The driver and the executors see volumes and DBFS as folders, too. But Java can't open files there, and they take neither
    random writes nor appends. So everything goes through Spark's own file system.

    >>> in_databricks("/Volumes/main/default/flows/a"), in_databricks("/dbfs/flows/a"), in_databricks("s3://bucket/a")
    ('dbfs:/Volumes/main/default/flows/a', 'dbfs:/flows/a', 's3://bucket/a')
    """
    path = unquote(urlsplit(location).path) if location.startswith("file:") else location
    top, _, below = path.removeprefix("/").partition("/")
    if not path.startswith("/"):
        return location
    if top == "Workspace":
        msg = (
            f"the checkpoint folder {location} is in the workspace, to which executors can't write: give a folder in a volume, "
            f"such as /Volumes/CATALOG/SCHEMA/VOLUME/flow, or the URL of an external location"
        )
        raise CheckpointError(msg)
    return {"Volumes": f"dbfs:{path}", "dbfs": f"dbfs:/{below}"}.get(top, location)


def only_by_spark(table: str) -> str | None:
    """Return what a place of a Delta table on Databricks is, if only Spark can write there; None if delta-rs can, too.

    To commit, delta-rs gives a file a name that must be free. The mounts of volumes, DBFS and the workspace can't do that.

    >>> only_by_spark("/Volumes/main/default/flows/t"), only_by_spark("main.default.t"), only_by_spark("s3://bucket/t")
    ('in a volume', 'the name of a table', None)
    """
    path = unquote(urlsplit(table).path) if table.startswith(("file:", "dbfs:")) else table
    for top, place in (
        ("/Volumes/", "in a volume"),
        ("/Workspace/", "in the workspace"),
        ("/dbfs/", "in DBFS"),
    ):
        if path.startswith(top):
            return place
    if table.startswith("dbfs:"):
        return "in DBFS"
    return "the name of a table" if re.fullmatch(r"(?:\w+\.){1,2}\w+", table) else None
