"""``stormspark doctor``: looks for what would keep topologies from running here, and says what to do."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark import doctor
from stormspark.cli.output import wide_enough
from stormspark.config import DELTA_PACKAGE, Settings
from stormspark.doctor import Result, Status
from stormspark.errors import StormsparkError
from stormspark.launcher import DATABRICKS, spark_launcher

__all__ = ["examine"]

_Result = TypeVar("_Result", Result, Result | None)
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
    is_needed = engine == "spark" or master is not None
    on_spark = engine != "local" and (is_needed or doctor.pyspark_found() is not None)
    yield _result("Python", doctor.check_python)
    yield _result("packages", lambda: doctor.check_packages(on_spark=on_spark))
    yield _result("extras", doctor.check_extras)
    yield _result("tuple path", doctor.check_tuple_path)
    yield _result("temporary folder", doctor.check_temporary)
    yield _result("logs", lambda: doctor.check_logs(conf.get("stormspark.log.dir")))
    yield _result("disk", doctor.check_disk)
    yield _result("descriptors", doctor.check_descriptors)
    yield _result("ports", doctor.check_ports)
    folder = _result("checkpoint", lambda: doctor.check_checkpoint(checkpoint))
    if folder is not None:
        yield folder
    if engine == "local":
        return
    yield (spark := _result("Spark", lambda: doctor.check_spark(is_needed=is_needed)))
    if doctor.pyspark_found() is None or spark_launcher() == DATABRICKS:
        return  # that has its own Java, its own jars, and no home to keep some in
    yield (java := _result("Java", doctor.check_java))
    yield (home := _result("SPARK_HOME", doctor.check_spark_home))
    python = _result("PYSPARK_PYTHON", doctor.check_executors_python)
    if python is not None:
        yield python
    yield _result("jars", lambda: doctor.check_jars(delta_package=DELTA_PACKAGE))
    yield _result("home", doctor.check_home)
    yield _result("host name", doctor.check_host_name)
    if master is None:
        return
    wrong = [
        one for one in (folder, spark, java, home, python) if one is not None and one.status is Status.FAILED
    ]
    if wrong:
        because = (
            f"Spark was not started, because of what is wrong above ({', '.join(one.check for one in wrong)})"
        )
        yield Result("executors", Status.NOTE, because, "put that right, and run this again")
    else:
        yield from _of_executors(master, checkpoint, conf)


def _result(name: str, check: Callable[[], _Result]) -> _Result | Result:
    """Run a check. If it fails itself, that is its result, so that those of the other checks are printed."""
    try:
        return check()
    except Exception as error:
        return Result(name, Status.FAILED, f"this could not be checked ({type(error).__name__}: {error})")


def _of_executors(master: str, checkpoint: str | None, conf: Mapping[str, Any]) -> Iterator[Result]:
    try:
        wait_secs = Settings.read(conf).executors_wait_secs
        from stormspark import spark
        from stormspark.spark.executor_checks import check_executors

        # Otherwise the first executor that is there would get all tasks.
        waits = {
            "spark.scheduler.minRegisteredResourcesRatio": "1.0",
            "spark.scheduler.maxRegisteredResourcesWaitingTime": f"{int(wait_secs)}s",
        }
        session = spark.local_session(2, waits | dict(conf), master=master, topology="doctor")
        try:
            yield from check_executors(session, checkpoint, wait_secs)
        finally:
            session.stop()
    except StormsparkError as error:
        text, _, advice = str(error).partition("; ")
        yield Result("cluster", Status.FAILED, text, advice)
    except Exception as error:  # Spark may end at any time
        yield Result("cluster", Status.FAILED, f"Spark could not be asked ({type(error).__name__}: {error})")


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
