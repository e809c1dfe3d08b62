"""``stormspark doctor``: looks for what would keep topologies from running here, and says what to do."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark import doctor
from stormspark.cli.output import wide_enough
from stormspark.config import DELTA_PACKAGE
from stormspark.doctor import Result, Status
from stormspark.errors import StormsparkError
from stormspark.launcher import DATABRICKS, spark_launcher

__all__ = ["examine"]

_STYLES = {Status.OK: "green", Status.NOTE: "", Status.WARNING: "yellow", Status.FAILED: "bold red"}


def examine(
    engine: str | None, master: str | None, checkpoint: str | None, conf: Mapping[str, Any], *, as_json: bool
) -> int:
    """Run the checks, print what they find, and return the exit code: 1 if one has failed, else 0."""
    results = list(_checks(engine, master, checkpoint, conf))
    if as_json:
        sys.stdout.write(json.dumps([result.as_json() for result in results], indent=2) + "\n")
    else:
        _print(results)
    return int(any(result.status is Status.FAILED for result in results))


def _checks(
    engine: str | None, master: str | None, checkpoint: str | None, conf: Mapping[str, Any]
) -> Iterator[Result]:
    yield doctor.check_python()
    yield doctor.check_packages()
    yield doctor.check_extras()
    yield doctor.check_tuple_path()
    yield doctor.check_temporary()
    yield doctor.check_logs(conf.get("stormspark.log.dir"))
    yield doctor.check_disk()
    yield doctor.check_descriptors()
    yield doctor.check_ports()
    found = doctor.check_checkpoint(checkpoint)
    if found is not None:
        yield found
    if engine == "local":
        return
    spark = doctor.check_spark(is_needed=engine == "spark" or master is not None)
    yield spark
    if doctor.pyspark_found() is None:
        return
    on_databricks = spark_launcher() == DATABRICKS
    if not on_databricks:  # it has its own Java, its own jars, and no home to keep some in
        yield (java := doctor.check_java())
        yield (home := doctor.check_spark_home())
        yield doctor.check_jars(delta_package=DELTA_PACKAGE)
        yield doctor.check_home()
        yield doctor.check_host_name()
        if master is not None and Status.FAILED not in {java.status, home.status}:
            yield from _of_executors(master, checkpoint, conf)


def _of_executors(master: str, checkpoint: str | None, conf: Mapping[str, Any]) -> Iterator[Result]:
    try:
        from stormspark import spark
        from stormspark.spark.executor_checks import check_executors

        # Otherwise the first executor that is there would get all tasks.
        waits = {"spark.scheduler.minRegisteredResourcesRatio": "1.0"}
        session = spark.local_session(2, waits | dict(conf), master=master, topology="doctor")
        try:
            yield from check_executors(session, checkpoint)
        finally:
            session.stop()
    except StormsparkError as error:
        text, _, advice = str(error).partition("; ")
        yield Result("cluster", Status.FAILED, text, advice)


def _print(results: Sequence[Result]) -> None:
    console = wide_enough(Console(highlight=False), 100)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for result in results:
        text = Text(result.found)
        if result.advice:
            text.append(f"\n-> {result.advice}")
        shown = result.status.value.upper() if result.status is Status.FAILED else result.status.value
        table.add_row(Text(shown, style=_STYLES[result.status]), result.check, text)
    console.print(table)
    counts = Counter(result.status for result in results)
    failed, warned = counts[Status.FAILED], counts[Status.WARNING]
    warnings = f"{warned} warning{'s' * (warned != 1)}"
    if failed:
        console.print(
            f"{failed} of {len(results)} checks failed, {warnings}: topologies will not run as they should"
        )
    else:
        console.print(f"nothing is in the way ({len(results)} checks, {warnings})")
