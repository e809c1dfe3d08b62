"""Brings Delta's jars and settings to a Spark that this process starts.

Spark fetches the jars with Ivy, once per user. A file in the user's cache folder lists them, and later starts put these jars on
the class path without a look at any repository.
"""

from __future__ import annotations

import dis
import inspect
import logging
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any

import cloudpickle
import pyspark

from stormspark.api import SourceSpout
from stormspark.config import DELTA_PACKAGE
from stormspark.plan.physical import PhysicalPlan
from stormspark.spark.jvm import starts_jvm
from stormspark.spark.spark_state_table import is_for_spark
from stormspark.spark.versions import require_delta

__all__ = [
    "conf_of_session",
    "delta_packages",
    "known_jars",
    "remember_jars",
    "who_needs_delta",
    "with_delta",
]

_log = logging.getLogger(__name__)

_PACKAGES, _EXCLUDES, _JARS = "spark.jars.packages", "spark.jars.excludes", "spark.jars"
_EXTENSIONS, _EXTENSION = "spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension"
_CATALOG = {"spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog"}

#: What Delta's jars depend on and Spark has already, mostly in newer versions. Without this, Ivy would fetch 26 jars more.
_IN_SPARK = (
    "com.fasterxml.jackson.core:*,com.fasterxml.jackson.datatype:*,com.github.luben:*,com.google.code.findbugs:*,"
    "commons-logging:*,commons-pool:*,io.airlift:*,javax.annotation:*,org.apache.hadoop:*,org.apache.logging.log4j:*,"
    "org.apache.parquet:*,org.locationtech.jts:*,org.roaringbitmap:*,org.slf4j:*,org.xerial.snappy:*"
)


def who_needs_delta(plan: PhysicalPlan, checkpoint: str | None) -> str | None:
    """Return what needs Delta's jars on Spark: the place of a component, or the state table. None if nothing is known to.

    `DeltaBolt` and other state tables are written with delta-rs, which needs no jars.
    """
    if plan.exactly_once and is_for_spark(plan.settings.state_table, checkpoint or "/"):
        return "the state table (stormspark.state.table)"
    for component in plan.sources:
        try:
            spout: SourceSpout = cloudpickle.loads(component.pickled)
        except Exception:  # raised again, with the user's line, where the source is opened
            continue
        if spout.needs_delta or any(map(_reads_delta, _functions_of(spout))):
            return component.place
    return None


def conf_of_session(plan: PhysicalPlan, conf: Mapping[str, Any], checkpoint: object) -> Mapping[str, Any]:
    """Return the configuration for the session of a topology: with Delta, if that is needed.

    Nothing is added where Spark's JVM runs already, because it gets no more jars.
    """
    if not starts_jvm():
        return conf
    why = who_needs_delta(plan, None if checkpoint is None else str(checkpoint))
    if why is None:
        return conf
    if not _has_jars(conf):
        require_delta(why)
    _log.info("%s: Spark gets Delta (%s), because of %s", plan.topology, DELTA_PACKAGE, why)
    return with_delta(conf)


def with_delta(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a session, with Delta's jars and settings added if they are missing."""
    added = dict(conf)
    if not _has_jars(conf):
        if not conf.get(_PACKAGES) and (jars := known_jars()):
            added[_JARS] = _joined(conf.get(_JARS), jars)
        else:
            added = delta_packages(conf)
    if _EXTENSION not in str(conf.get(_EXTENSIONS, "")):
        added[_EXTENSIONS] = _joined(conf.get(_EXTENSIONS), [_EXTENSION])
    return {**_CATALOG, **added}


def delta_packages(conf: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration with Delta among the packages that Spark fetches."""
    # What is excluded is excluded for all packages, also for those that the user asks for, such as hadoop-aws.
    wanted = {package.strip().partition(":")[0] for package in str(conf.get(_PACKAGES) or "").split(",")}
    excluded = [rule for rule in _IN_SPARK.split(",") if rule.partition(":")[0] not in wanted]
    return {
        **conf,
        _PACKAGES: _joined(conf.get(_PACKAGES), [DELTA_PACKAGE]),
        _EXCLUDES: _joined(conf.get(_EXCLUDES), excluded),
    }


def known_jars() -> list[str]:
    """Return the jars that an earlier start has fetched; an empty list if one of them is gone or was cut off."""
    try:
        jars = _list_of_jars().read_text(encoding="utf-8").splitlines()
    except OSError:
        return []
    return jars if all(map(zipfile.is_zipfile, jars)) else []


def remember_jars(conf: Mapping[str, Any], jars: str) -> None:
    """Write down which ``jars``, with commas between them, Spark has fetched for ``conf``, if Delta's are the only ones."""
    if conf.get(_PACKAGES) != DELTA_PACKAGE:
        return
    given = set(str(conf.get(_JARS, "")).split(","))
    fetched = [
        jar.removeprefix("file://").removeprefix("file:") for jar in jars.split(",") if jar not in given
    ]
    ours = [jar for jar in fetched if Path(jar).name.startswith(("io.delta_", "io.unitycatalog_"))]
    if not any(map(_is_delta, ours)):
        return
    try:
        file = _list_of_jars()
        file.parent.mkdir(parents=True, exist_ok=True)
        new = file.with_suffix(f".{os.getpid()}")
        new.write_text("\n".join(ours) + "\n", encoding="utf-8")
        new.replace(file)
    except OSError:
        return  # then Ivy looks into its own cache next time


def _list_of_jars() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    if not os.path.isabs(base):  # a container's user may have neither a name nor HOME
        msg = "this user has no home"
        raise FileNotFoundError(msg)
    return Path(base, "stormspark", f"{DELTA_PACKAGE.replace(':', '_')}.jars")


def _has_jars(conf: Mapping[str, Any]) -> bool:
    """Whether Delta's main jar is brought already: by the configuration, by the environment, or as one of Spark's own jars."""
    told = [str(conf.get(key, "")) for key in (_PACKAGES, _JARS, "spark.driver.extraClassPath")]
    told.append(os.environ.get("PYSPARK_SUBMIT_ARGS", ""))
    home = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent)
    defaults = Path(os.environ.get("SPARK_CONF_DIR") or home / "conf") / "spark-defaults.conf"
    if defaults.is_file():
        told.append(defaults.read_text(encoding="utf-8", errors="replace"))
    return any(map(_is_delta, told)) or any((home / "jars").glob("*delta-spark_*.jar"))


def _is_delta(text: str) -> bool:
    return "delta-spark_" in text


def _joined(given: object, more: Iterable[str]) -> str:
    return ",".join([*([str(given)] if given else []), *more])


def _functions_of(spout: SourceSpout) -> Iterator[Any]:
    """Yield the functions of users that make the spout's DataFrame."""
    for owner in (vars(spout), {"stream": getattr(type(spout), "stream", None)}):
        for value in owner.values():
            if inspect.isfunction(value) and not value.__module__.startswith("stormspark."):
                yield value


def _reads_delta(function: Any) -> bool:
    """Whether a function names ``delta`` as the format of a source.

    >>> _reads_delta(lambda spark: spark.readStream.format("delta").load("/data"))
    True
    >>> _reads_delta(lambda spark: spark.readStream.format("rate").load().withColumnRenamed("value", "delta"))
    False
    """
    return any(_names_delta(code) for code in _codes(function.__code__))


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _names_delta(code: CodeType) -> bool:
    """Whether the code has ``.format("delta")``, or a call with ``format="delta"``."""
    before = None
    for step in dis.get_instructions(code):
        if step.opname == "LOAD_CONST" and str(step.argval).lower() == "delta" and before == "format":
            return True
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD", "LOAD_CONST"):
            before = step.argval if step.opname != "LOAD_CONST" else None
    by_name = any(isinstance(names, tuple) and "format" in names for names in code.co_consts)
    return by_name and "delta" in code.co_consts
