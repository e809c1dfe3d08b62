"""Changes the version of Spark under a topology that counts exactly once, and looks whether anything is missing or there twice.

    python -m tools.upgrade --environments FOLDER [4.0 4.1 4.2 4.1 4.0]

The topology reads Kafka and files, has state, and writes a Delta table (`tests/spark/versions_driver.py`). The driver of each
version is killed with its workers when it has written half of what is new, and the driver of the next version goes on with the
same checkpoint. The environments are those of `tools.matrix`, which makes them if need be.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import deltalake

from tests.kafka_broker import KafkaBroker
from tests.waiting import STARTED_BY, kill_all_of
from tools.matrix import ROWS, Row, environment, python_for, release

__all__ = ["problems", "row_for"]

_ROOT = Path(__file__).parents[1]
_EACH = 1000
_PATIENCE_SECS = 1800


def row_for(spark: str, environments: Path) -> Row:
    """Return a row with this Spark: one that has an environment, or the newest one for a Python of this machine.

    Raises `LookupError` if there is none.
    """
    rows = [
        row
        for row in ROWS[::-1]
        if release(row) == tuple(map(int, spark.split("."))) and python_for(row.python)
    ]
    if not rows:
        msg = f"no row has Spark {spark} and a Python that is on this machine"
        raise LookupError(msg)
    return next((row for row in rows if (environments / row.name / "installed").exists()), rows[0])


def problems(rows: Sequence[tuple[str, int, int, int]], numbers: int) -> list[str]:
    """Return what is wrong with a table that should have each number of each source once.

    A row is source, number, task, and how many rows the task has had.

    >>> problems([("lines", 0, 0, 1), ("numbers", 0, 1, 1)], 1)
    []
    >>> problems([("lines", 0, 0, 1), ("lines", 0, 0, 1)], 1)
    ['lines: 1 are there twice, 0 are missing', 'numbers: 0 are there twice, 1 are missing', 'task 0 counted to 1 in 2 rows']
    """
    found = []
    for source in ("lines", "numbers"):
        seen = Counter(row[1] for row in rows if row[0] == source)
        twice, missing = sum(count > 1 for count in seen.values()), numbers - len(seen)
        if twice or missing:
            found.append(f"{source}: {twice} are there twice, {missing} are missing")
    for task in sorted({row[2] for row in rows}):
        counts = sorted(row[3] for row in rows if row[2] == task)
        if counts != list(range(1, len(counts) + 1)):
            found.append(f"task {task} counted to {counts[-1]} in {len(counts)} rows")
    return found


def _rows(folder: Path) -> list[tuple[str, int, int, int]]:
    if not (folder / "table" / "_delta_log").exists():
        return []
    found = deltalake.DeltaTable(folder / "table").to_pyarrow_table().to_pylist()
    return [(row["source"], row["number"], row["task"], row["nth"]) for row in found]


class _Run:
    """One topology, and the drivers that run it one after another."""

    def __init__(self, folder: Path, broker: KafkaBroker, environments: Path) -> None:
        self.folder, self.broker, self.environments = folder, broker, environments
        self.count = 0
        (folder / "lines").mkdir()
        broker.create_topic("numbers", partitions=2)

    def leg(self, spark: str, *, last: bool) -> None:
        """Run the topology with this Spark until half of what is new is there, or all of it if it is the last one."""
        row = row_for(spark, self.environments)
        python = python_for(row.python)
        assert python
        interpreter = environment(row, python, self.environments)
        new = range(self.count, self.count + _EACH)
        self.broker.produce("numbers", [str(number).encode() for number in new])
        hidden = self.folder / f".{self.count}"
        hidden.write_text("".join(f"{number}\n" for number in new))
        hidden.rename(self.folder / "lines" / f"{self.count}.txt")
        self.count += _EACH
        if last:
            (self.folder / "done").touch()
        before, began = len(_rows(self.folder)), time.monotonic()
        env = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"} | {
            "PYTHONPATH": str(_ROOT)
        }
        command = [
            str(interpreter), "-m", "tests.spark.versions_driver", str(self.folder), self.broker.bootstrap
        ]  # fmt: skip
        with (self.folder / "output").open("ab") as output:
            driver = subprocess.Popen(command, cwd=_ROOT, env=env, stdout=output, stderr=output)
        try:
            while driver.poll() is None and (last or len(_rows(self.folder)) < 2 * self.count - _EACH):
                if time.monotonic() > began + _PATIENCE_SECS:
                    msg = f"Spark {spark} wrote {len(_rows(self.folder)) - before} rows in {_PATIENCE_SECS} s"
                    raise TimeoutError(msg)
                time.sleep(0.2)
            ended = driver.poll()
        finally:
            kill_all_of("versions", driver)
        if ended not in ((0,) if last else (None,)):
            msg = f"the driver of Spark {spark} ended with {ended}"
            raise RuntimeError(msg)
        rows = len(_rows(self.folder))
        how = "ended" if last else "killed"
        print(
            f"{row.name}: rows {before} to {rows}, {how} after {time.monotonic() - began:.0f} s", flush=True
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 1 if something is missing or there twice, or a driver has failed."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.upgrade", description="Spark changes under a topology"
    )
    parser.add_argument("--environments", required=True, metavar="FOLDER", help="where environments are kept")
    parser.add_argument("spark", nargs="*", metavar="SPARK", help="versions, in order")
    options = parser.parse_args(arguments)
    versions = options.spark or ["4.0", "4.1", "4.2", "4.1", "4.0"]
    os.environ["TMPDIR"] = tempfile.tempdir = tempfile.mkdtemp(prefix="upgrade-")
    folder = Path(tempfile.tempdir)
    os.environ[STARTED_BY] = str(folder)
    try:
        with KafkaBroker(folder / "kafka") as broker:
            run = _Run(folder, broker, Path(options.environments).absolute())
            for number, spark in enumerate(versions):
                run.leg(spark, last=number == len(versions) - 1)
    except (RuntimeError, TimeoutError) as error:
        print(
            f"{error}; {folder / 'output'} ends:\n{(folder / 'output').read_text()[-4000:]}", file=sys.stderr
        )
        return 1
    wrong = problems(_rows(folder), run.count)
    if not wrong:
        shutil.rmtree(folder, ignore_errors=True)
    print(
        "; ".join(wrong)
        or f"each of {2 * run.count} rows is there once, and state goes on: {' -> '.join(versions)}"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
