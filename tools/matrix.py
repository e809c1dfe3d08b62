"""Runs tests on each version of Spark, Python, pandas and pyarrow that stormspark allows, and prints a table.

    python -m tools.matrix --environments FOLDER [--only 4.0] [--smoke | --ci] [-- pytest's arguments]

With ``--ci``, two rows run side by side, one for each Spark that is older than the one of all other tests, and fewer tests. Such
a row takes the Python that runs this if its own is not on the machine.

Each row has an environment of its own in the folder, which is kept: the next run installs nothing. An environment is made again
when its versions or ``pyproject.toml`` change. A row whose Python is not on this machine is skipped, and the table says so.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

__all__ = ["ROWS", "Row", "Run", "environment", "python_for", "release", "requirements", "table"]

_ROOT = Path(__file__).parents[1]
#: What the tests of a run don't need.
_NOT_NEEDED = re.compile(
    r"(ruff|mypy|import-linter|types-|pandas-stubs|bytewax|cibuildwheel|mkdocs|sphinx|stormspark)", re.I
)
_TESTS = {
    "spark": ["-m", "spark", "tests/spark"],
    "local": ["-m", "not spark and not slow", "tests/unit", "tests/conformance", "tests/properties"],
}
_SMOKE = {
    "spark": [
        "tests/spark/test_versions.py",
        "tests/spark/test_word_count.py::test_counts_are_exact_on_any_number_of_workers",
    ],
    "local": [
        "-m",
        "not slow",
        "tests/unit/spark/test_versions.py",
        "tests/unit/test_python_values.py",
        "tests/unit/metrics",
    ],
}
#: A word count on each engine; on Spark with two workers, and one whose driver ends and goes on. None of them needs Maven.
_CI = {
    "local": ["tests/unit/test_readme.py", "tests/unit/spark/test_versions.py"],
    "spark": [
        "tests/spark/test_versions.py",
        "tests/spark/test_word_count.py::test_counts_are_exact_on_any_number_of_workers[2-0]",
        "tests/spark/test_durable_acker.py::test_a_new_driver_goes_on_with_what_was_open[1]",
    ],
}
_FOR_CI = {"LONG_TESTS": "1", "WITHOUT_CONNECTORS": "1"}


@dataclasses.dataclass(frozen=True)
class Row:
    """One set of versions. ``delta`` is empty if Delta has no release for the Spark."""

    spark: str
    python: str
    pandas: str
    pyarrow: str
    delta: str
    deltalake: str = ""

    @property
    def name(self) -> str:
        """The name that ``--only`` takes, and that of the environment's folder."""
        return f"spark-{self.spark}-python-{self.python}-pandas-{self.pandas}"

    def pins(self) -> dict[str, str]:
        """Return what pip has to install of each package that the row is about."""
        pins = {"pyspark": _pin(self.spark), "pandas": _pin(self.pandas), "pyarrow": _pin(self.pyarrow)}
        if self.delta:
            pins |= {"delta-spark": _pin(self.delta)}
        if self.deltalake:
            pins |= {"deltalake": _pin(self.deltalake)}
        return pins


def _pin(version: str) -> str:
    """Return the requirement of a version; one that ends with a number of two parts stands for its newest release.

    >>> _pin("4.0.5"), _pin("4.1"), _pin("3"), _pin("")
    ('==4.0.5', '==4.1.*', '==3.*', '')
    """
    if not version:
        return ""
    return f"=={version}" if version.count(".") > 1 else f"=={version}.*"


#: The oldest versions that are allowed come first, the newest last.
ROWS = (
    Row("4.0.1", "3.11", pandas="2.2.3", pyarrow="18.0.0", delta="4.4.0"),
    Row("4.0", "3.12", pandas="2.3", pyarrow="20", delta="4.4.0"),
    Row("4.0", "3.13", pandas="2.3", pyarrow="", delta="4.4.0"),
    Row("4.1", "3.11", pandas="2.2.3", pyarrow="18.0.0", delta="4.4.0"),
    Row("4.1", "3.12", pandas="2.3", pyarrow="", delta="4.4.0"),
    Row("4.1", "3.13", pandas="2.3", pyarrow="", delta="4.4.0"),
    Row("4.2.0", "3.11", pandas="2.3", pyarrow="", delta="4.4.0"),
    Row("4.2.0", "3.12", pandas="3", pyarrow="", delta="4.4.0"),
    Row("4.2.0", "3.13", pandas="2.3", pyarrow="", delta="4.4.0"),
    Row("4.2.0", "3.14", pandas="3", pyarrow="", delta="4.4.0"),
)

#: The names of the rows for CI.
_CI_ROWS = ("spark-4.0-python-3.12-pandas-2.3", "spark-4.1-python-3.13-pandas-2.3")


def rows_for_ci() -> list[Row]:
    """Return one row for each Spark that is older than that of the other tests, with a Python that this machine has."""
    own = "{}.{}".format(*sys.version_info)
    rows = [row for row in ROWS if row.name in _CI_ROWS]
    return [row if python_for(row.python) else dataclasses.replace(row, python=own) for row in rows]


def requirements(row: Row, project: dict[str, object]) -> list[str]:
    """Return what is installed for a row: all that ``pyproject.toml`` asks for, with the row's versions.

    >>> project = {"dependencies": ["pyspark>=4.0", "click>=8"], "optional-dependencies": {"dev": ["ruff>=1", "redis>=5 # x"]}}
    >>> requirements(Row("4.1", "3.12", pandas="2.3", pyarrow="", delta=""), project)
    ['click>=8', 'redis>=5', 'pandas==2.3.*', 'pyarrow', 'pyspark==4.1.*']
    """
    extras = project.get("optional-dependencies") or {}
    asked = [*project["dependencies"], *(one for some in extras.values() for one in some)]  # type: ignore[misc,attr-defined]
    pins = row.pins()
    found = []
    for requirement in dict.fromkeys(one.partition("#")[0].strip() for one in asked):
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0].lower().replace("_", "-")
        if name in pins or _NOT_NEEDED.match(name) or (name == "delta-spark" and not row.delta):
            continue
        found.append(requirement)
    return [*found, *sorted(f"{name}{pin}" for name, pin in pins.items())]


@dataclasses.dataclass
class Run:
    """What came of a row on one engine."""

    row: Row
    engine: str
    versions: str = ""
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    seconds: float = 0.0
    #: Why there are no numbers.
    why_not: str = ""
    #: What pytest printed.
    log: Path | None = None

    @property
    def is_good(self) -> bool:
        """Whether nothing failed. A row that could not begin because there is no such Python is not bad."""
        return not self.failed and (self.passed > 0 or self.why_not.startswith("no Python"))


def table(runs: Sequence[Run]) -> str:
    """Return the table in Markdown.

    >>> row = Row("4.1", "3.12", pandas="2.3", pyarrow="", delta="")
    >>> print(table([Run(row, "local", "4.1.4", 10, 0, 2, 3.21), Run(row, "spark", why_not="no Python 3.12 here")]))
    | Spark | Python | pandas | pyarrow | engine | passed | failed | skipped | seconds |
    | --- | --- | --- | --- | --- | --- | --- | --- | --- |
    | 4.1 | 3.12 | 2.3 | newest | local | 10 | 0 | 2 | 3 |
    | 4.1 | 3.12 | 2.3 | newest | spark | no Python 3.12 here | | | |
    """
    lines = [
        "| Spark | Python | pandas | pyarrow | engine | passed | failed | skipped | seconds |",
        "| --- " * 9 + "|",
    ]
    for run in runs:
        row = run.row
        start = f"| {row.spark} | {row.python} | {row.pandas} | {row.pyarrow or 'newest'} | {run.engine} | "
        if run.why_not:
            lines.append(f"{start}{run.why_not} | | | |")
        else:
            lines.append(f"{start}{run.passed} | {run.failed} | {run.skipped} | {run.seconds:.0f} |")
    return "\n".join(lines)


def python_for(version: str) -> str | None:
    """Return the path of an interpreter of this version; None if this machine has none."""
    if (path := shutil.which(f"python{version}")) and _is_python(path, version):
        return path
    root = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    for path in sorted(map(str, root.glob(f"versions/{version}.*/bin/python3"))):
        if _is_python(path, version):
            return path
    return None


def _is_python(path: str, version: str) -> bool:
    """Whether it runs: pyenv has commands for versions that are not chosen, which only say so."""
    code = "import ensurepip, sys; print(*sys.version_info[:2], sep='.')"
    ran = subprocess.run([path, "-c", code], capture_output=True, text=True, check=False)
    return ran.stdout.strip() == version


class NotInstalledError(Exception):
    """An environment can't be made."""


def environment(row: Row, python: str, folder: Path) -> Path:
    """Return the interpreter of the row's environment, which is made if it is not there. Raises `NotInstalledError`."""
    with (_ROOT / "pyproject.toml").open("rb") as file:
        wanted = requirements(row, tomllib.load(file)["project"])
    digest = hashlib.sha256("\n".join(wanted).encode()).hexdigest()
    place, interpreter = folder / row.name, folder / row.name / "bin" / "python"
    mark = place / "installed"
    if mark.is_file() and mark.read_text() == digest:
        return interpreter
    print(f"{row.name}: installing into {place}", flush=True)
    began = time.monotonic()
    shutil.rmtree(place, ignore_errors=True)
    _run([python, "-m", "venv", str(place)])
    install = [
        str(interpreter),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
    ]
    # With these, pip keeps the wheel that it makes of PySpark, and makes it once for all environments.
    _run([*install, "setuptools", "wheel"])
    _run([*install, *wanted])
    mark.write_text(digest)
    print(f"{row.name}: installed in {time.monotonic() - began:.0f} s", flush=True)
    return interpreter


def _run(command: Sequence[str]) -> None:
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        said = (ran.stderr or ran.stdout).strip()
        print(said, file=sys.stderr, flush=True)
        msg = f"not installed: {' '.join(command[1:4])}: {said.splitlines()[-1] if said else ran.returncode}"
        if "No matching distribution" in said:
            msg += " (is a package index in reach, and does it have this?)"
        raise NotInstalledError(msg)


def tested(
    row: Row, engine: str, interpreter: Path, arguments: Sequence[str], folder: Path, more: Mapping[str, str]
) -> Run:
    """Run pytest, with ``more`` in its environment, and count."""
    report = folder / f"{row.name}-{engine}.xml"
    report.unlink(missing_ok=True)
    env = {key: value for key, value in os.environ.items() if key not in ("SPARK_HOME", "PYTHONHOME")}
    # As in `tests.quick_jvm`, but its archives of classes are those of one version of Spark.
    quick = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m -XX:+UseSerialGC"
    env |= {"PYTHONPATH": str(_ROOT), "SPARK_SUBMIT_OPTS": quick, **more}
    began = time.monotonic()
    command = [
        str(interpreter),
        "-m",
        "pytest",
        "-q",
        f"--junitxml={report}",
        *_leaves_sockets(row),
        *arguments,
    ]
    output = folder / f"{row.name}-{engine}.log"
    with output.open("w") as log:
        ended = subprocess.run(
            command, cwd=_ROOT, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, check=False
        )
    run = Run(row, engine, seconds=time.monotonic() - began, log=output)
    if not report.is_file():
        run.failed, run.why_not = 1, f"pytest ended with {ended.returncode}: read {output}"
        return run
    suite = next(ET.parse(report).getroot().iter("testsuite"))
    numbers = {key: int(suite.get(key, 0)) for key in ("tests", "failures", "errors", "skipped")}
    run.failed, run.skipped = numbers["failures"] + numbers["errors"], numbers["skipped"]
    run.passed = numbers["tests"] - run.failed - run.skipped
    return run


def release(row: Row) -> tuple[int, ...]:
    """Return the first two numbers of the row's Spark."""
    return tuple(map(int, row.spark.split(".")[:2]))


def _leaves_sockets(row: Row) -> list[str]:
    """Before 4.2, PySpark leaves the sockets of ``collect`` to the garbage collection, which makes warnings, and so errors."""
    if release(row) >= (4, 2):
        return []
    return ["-W", "ignore::ResourceWarning", "-W", "ignore::pytest.PytestUnraisableExceptionWarning"]


def runs_of(row: Row, arguments: argparse.Namespace) -> Iterator[Run]:
    """Yield what came of a row on each engine."""
    chosen = _CI if arguments.ci else _SMOKE if arguments.smoke else _TESTS
    folder = Path(arguments.environments).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    python = python_for(row.python)
    engines = [arguments.engine] if arguments.engine else list(chosen)
    if python is None:
        yield from (Run(row, engine, why_not=f"no Python {row.python} here") for engine in engines)
        return
    try:
        interpreter = environment(row, python, folder)
    except NotInstalledError as error:
        yield from (Run(row, engine, failed=1, why_not=str(error)) for engine in engines)
        return
    for engine in engines:
        tests = [*chosen[engine]] if not arguments.pytest else arguments.pytest
        run = tested(row, engine, interpreter, tests, folder, _FOR_CI if arguments.ci else {})
        print(table([run]).splitlines()[-1], flush=True)
        if run.failed and arguments.ci and run.log:
            print(run.log.read_text(), file=sys.stderr, flush=True)
        yield run


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table. Return 1 if something failed."""
    parser = argparse.ArgumentParser(prog="python -m tools.matrix", description="the tests on each version")
    parser.add_argument("--environments", required=True, metavar="FOLDER", help="where environments are kept")
    parser.add_argument("--only", default="", metavar="NAME", help="the rows with this text in their names")
    parser.add_argument("--engine", choices=list(_TESTS))
    few = parser.add_mutually_exclusive_group()
    few.add_argument("--smoke", action="store_true", help="a few tests for each row")
    few.add_argument("--ci", action="store_true", help="fewer tests, for two rows, side by side")
    parser.add_argument("pytest", nargs="*", help="arguments of pytest, in the place of all tests")
    options = parser.parse_args(arguments)
    rows = [row for row in (rows_for_ci() if options.ci else ROWS) if options.only in row.name]
    if not rows:
        names = ", ".join(row.name for row in ROWS)
        parser.error(f"no row has {options.only!r} in its name; there are {names}")
    # One row leaves a core idle for most of its time.
    with ThreadPoolExecutor(len(rows) if options.ci else 1) as pool:
        done = [run for some in pool.map(lambda row: list(runs_of(row, options)), rows) for run in some]
    print("\n" + table(done))
    return 0 if all(run.is_good for run in done) else 1


if __name__ == "__main__":
    sys.exit(main())
