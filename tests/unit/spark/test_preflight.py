"""What the preflight says of executors that lack something; Spark itself is played."""

from __future__ import annotations

import pickle
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from pyspark import cloudpickle

import stormspark
from stormspark import TopologyBuilder, __version__
from stormspark.doctor import LEAST
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.plan import plan_topology
from stormspark.spark.preflight import _OF_FRONT_ENDS, PACKAGES, Preflight, explanation
from stormspark.spark.preflight_task import look_around
from stormspark.testing import TestWordSpout
from stormspark.worker.host.key import Key
from stormspark.worker.host.link import Endpoint

FINE: dict[str, Any] = {
    "host": "h1", "python": "/usr/bin/python3", "python_version": "3.11.4", "packages": [], "stormspark": __version__,
    "why": "", "modules": [], "network": "", "older": {}, "sources": {},
}  # fmt: skip
ATTEMPT: Any = SimpleNamespace(
    nimbus=Endpoint("/nowhere", ("driver", 4711)), key=Key.new(), silence_secs=15.0
)


class Spark:
    """A context whose executors have found this, or whose job raises this."""

    pythonExec = "python3"  # noqa: N815 - Spark's

    def __init__(self, *found: dict[str, Any], error: Exception | None = None) -> None:
        self.jobs = 0
        self._found, self._error = found, error

    def parallelize(self, rows: range, _: int) -> Spark:
        self.tasks = len(rows)
        return self

    def mapPartitions(self, task: Any) -> Spark:  # noqa: N802 - Spark's
        cloudpickle.dumps(task)
        return self

    def collect(self) -> list[dict[str, Any]]:
        self.jobs += 1
        if self._error is not None:
            raise self._error
        return list(self._found)

    setJobGroup = setLocalProperty = cancelJobGroup = MagicMock()  # noqa: N815 - Spark's


def preflight(spark: Spark, *, ended: bool = False) -> Preflight:
    builder = TopologyBuilder()
    builder.set_spout("words", TestWordSpout())
    return Preflight(spark, plan_topology(builder.create_topology("t")), lambda: ended)  # type: ignore[arg-type]


def said(*found: dict[str, Any], error: Exception | None = None) -> str:
    with pytest.raises(UnsupportedEnvironmentError) as raised:
        preflight(Spark(*found, error=error)).run(ATTEMPT, max(1, len(found)))
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_executors_that_have_everything_are_looked_at_once() -> None:
    spark = Spark(FINE, FINE)
    flight = preflight(spark)
    flight.run(ATTEMPT, 2)
    flight.run(ATTEMPT, 2)
    assert (spark.jobs, spark.tasks) == (1, 2)


def test_what_a_preflight_without_a_free_core_waits_for() -> None:
    spark, seen = Spark(FINE), []
    flight = preflight(spark)
    collect = spark.collect
    spark.collect = lambda: (seen.append(flight.waits_for), collect())[1]  # type: ignore[method-assign, func-returns-value]
    flight.run(ATTEMPT, 1)
    assert seen == ["Spark looks at 1 executor, with a task that needs a free core"]
    assert not flight.waits_for


def test_missing_packages_are_one_message_with_the_setting() -> None:
    message = said(FINE, FINE | {"packages": ["numpy", "pyarrow"], "stormspark": None})
    assert (
        "use /usr/bin/python3 (Python 3.11.4) on host h1, which has no numpy, pyarrow and stormspark"
        in message
    )
    assert "set PYSPARK_PYTHON" in message
    assert "--archives env.tar.gz#env" in message


def test_another_stormspark_or_none() -> None:
    assert (
        f"use stormspark 0.0.1 (/usr/bin/python3 (Python 3.11.4) on host h1), but this program uses {__version__}"
        in said(FINE | {"stormspark": "0.0.1"})
    )
    assert f"has no stormspark: install stormspark {__version__} there" in said(FINE | {"stormspark": None})


def test_older_packages_are_told_with_the_least_version() -> None:
    message = said(FINE | {"older": {"pyarrow": "10.0.1"}, "stormspark": None})
    assert (
        "(Python 3.11.4) on host h1, which has pyarrow 10.0.1 (at least 18 is needed): set PYSPARK_PYTHON"
        in message
    )
    assert looked(packages=["pyarrow"], least={"pyarrow": "999.1"})["older"].keys() == {"pyarrow"}
    assert looked(packages=["pyarrow"], least=LEAST)["older"] == {}


@pytest.mark.parametrize(
    ("versions", "is_old"),
    [
        (["2.0.9"], True),
        (["1.26.4+vendor"], True),
        (["2.1.0rc1"], False),
        (["10.0"], False),
        # What can't be compared, and what a repeated or broken installation has left.
        (["unknown"], False),
        (["1.26.4", "2.2.0"], False),
        (["1.26.4", None], False),
        ([None], False),
    ],
)
def test_versions_that_are_too_old(
    versions: list[str | None], is_old: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "some_package.py").touch()
    for number, version in enumerate(versions):
        folder = tmp_path / f"some_package-{number}.dist-info"
        folder.mkdir()
        if version is not None:
            (folder / "METADATA").write_text(f"Name: some_package\nVersion: {version}\n")
    monkeypatch.syspath_prepend(tmp_path)
    older = looked(packages=["some_package"], least={"some_package": "2.1"})["older"]
    assert older == ({"some_package": versions[0]} if is_old else {})


def test_a_stormspark_that_can_not_be_imported_is_told_with_the_reason() -> None:
    message = said(FINE | {"stormspark": None, "why": "ValueError: numpy.dtype size changed"})
    assert "where stormspark can't be imported (ValueError: numpy.dtype size changed): install" in message


def test_the_least_versions_are_those_of_the_package() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())["project"]
    told = [
        *project["dependencies"],
        *(one for extra in project["optional-dependencies"].values() for one in extra),
    ]
    told = [one.partition(",")[0] for one in told]
    assert set(PACKAGES) <= set(LEAST)
    assert {f"{name}>={version}" for name, version in LEAST.items()} <= set(told)


def test_a_module_of_the_same_name_with_other_content_is_a_warning(tmp_path, monkeypatch, caplog) -> None:
    for folder, content in (("old", "NUMBER = 1"), ("new", "NUMBER = 2")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "twice_there.py").write_text(content)
    monkeypatch.setattr(Preflight, "_users_modules", lambda _: ["twice_there"])
    there = looked(modules=["twice_there"], path=[str(tmp_path / "old"), *sys.path])["sources"]
    monkeypatch.syspath_prepend(str(tmp_path / "new"))
    preflight(Spark(FINE, FINE | {"sources": there})).run(ATTEMPT, 2)
    (warning,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    files = [tmp_path / folder / "twice_there.py" for folder in ("old", "new")]
    assert (
        f"'twice_there' is not the same on the executors' host h1 ({files[0]}) as here ({files[1]})"
        in warning
    )
    caplog.clear()
    same = looked(modules=["twice_there"])["sources"]
    preflight(Spark(FINE | {"sources": same})).run(ATTEMPT, 1)
    assert not caplog.records


def test_modules_of_the_user_are_to_be_shipped(tmp_path, monkeypatch) -> None:
    package = tmp_path / "acme_flows"
    package.mkdir()
    (package / "__init__.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    __import__("acme_flows")
    message = said(FINE | {"modules": ["acme_flows.bolts", "lone"]})
    assert "on the executors' host h1 does not find 'acme_flows.bolts' and 'lone'" in message
    assert f"(cd {tmp_path} && zip -r " in message
    assert "--py-files acme_flows.zip,lone.py" in message


def test_a_port_that_can_not_be_reached() -> None:
    message = said(FINE | {"network": "timed out"})
    assert "the driver can't be reached from host h1 at driver:4711: timed out" in message
    assert "stormspark.nimbus.port" in message
    assert "spark.driver.host" in message


def test_another_python_and_none() -> None:
    mine = "{}.{}".format(*sys.version_info)
    other = "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.6 than that in driver: 3.11, PySpark cannot ..."
    assert (
        f"executors run Python 3.6 (python3), but this program runs Python {mine}: set PYSPARK_PYTHON"
        in said(error=RuntimeError(other))
    )
    away = 'java.io.IOException: Cannot run program "/nope/python3": error=2, No such file or directory\n\tat java...'
    archived = 'Cannot run program "./env/bin/python": error=2, No such file or directory'
    assert "./env/bin/python (No such file or directory): either no archive" in (
        explanation(archived, "p") or ""
    )
    assert "can't run Python as /nope/python3 (No such file or directory): set PYSPARK_PYTHON" in said(
        error=RuntimeError(away)
    )
    bare = "Error from python worker:\n  Traceback\n  ModuleNotFoundError: No module named 'numpy'"
    assert "(python3) has no numpy: set PYSPARK_PYTHON" in said(error=RuntimeError(bare))


def test_what_may_get_better_does_not_stop_a_topology() -> None:
    assert explanation("ExecutorLostFailure: executor 1 exited", "python3") is None
    preflight(Spark(error=RuntimeError("ExecutorLostFailure"))).run(ATTEMPT, 1)


#: What Spark says of a Python that ends before it has reported its port.
DOES_NOT_START = """: org.apache.spark.SparkException: Job aborted: Lost task 0.3: org.apache.spark.SparkException:\x20
Error from python worker:
  {}
PYTHONPATH was:
  /opt/pyspark.zip:/home/me
org.apache.spark.SparkException: EOFException occurred while reading the port number from pyspark.daemon's stdout.
\tat org.apache.spark.errors.SparkCoreErrors$.eofExceptionWhileReadPortNumberError(SparkCoreErrors.scala:55)
"""


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (
            "/opt/p/bin/python3: error while loading shared libraries: libpython3.12.so.1.0: cannot open shared object file",
            "error while loading shared libraries: libpython3.12.so.1.0",
        ),
        (
            "Fatal Python error: init_fs_encoding\n  Traceback (most recent call last):\n  ModuleNotFoundError: no encodings",
            "does not start (ModuleNotFoundError: no encodings)",
        ),
        ("OSError: [Errno 12] Cannot allocate memory", None),
        ("BlockingIOError: [Errno 11] Resource temporarily unavailable", None),
    ],
)
def test_a_python_that_does_not_start(written: str, told: str | None) -> None:
    """Another attempt would find the same Python, unless it was the host that had no room for it."""
    explained = explanation(DOES_NOT_START.format(written), "/opt/p/bin/python3")
    assert (explained is not None) == (told is not None)
    if told is not None and explained is not None:
        assert explained.startswith("the Python of Spark's executors (/opt/p/bin/python3) does not start (")
        assert told in explained and explained.rpartition(": ")[2].startswith("set PYSPARK_PYTHON")


def test_a_topology_that_is_stopped_meanwhile_has_no_error() -> None:
    cancelled = RuntimeError("PYTHON_VERSION_MISMATCH] has different version: 3.6")
    preflight(Spark(error=cancelled), ended=True).run(ATTEMPT, 1)


def looked(**asked: Any) -> dict[str, Any]:
    return look_around()(
        {"version": __version__, "packages": [], "least": {}, "modules": [], "path": sys.path, "driver": None}
        | asked
    )


def test_a_task_finds_what_is_there_without_importing_it(tmp_path, monkeypatch) -> None:
    package = tmp_path / "loud_package"
    package.mkdir()
    (package / "__init__.py").write_text("raise RuntimeError('imported')")
    (package / "there.py").touch()
    monkeypatch.syspath_prepend(str(tmp_path))
    found = looked(
        packages=["numpy", "not_installed"][:1],
        modules=["loud_package.there", "loud_package.away", "away", "json.decoder"],
    )
    assert found["packages"] == []
    assert found["modules"] == ["away"], "the package says itself what is wrong with it"
    assert looked(packages=["numpy", "not_installed"])["packages"] == ["not_installed"]
    assert sys.path.count(str(tmp_path)) == 1


def test_a_task_finds_modules_where_only_the_driver_looks(tmp_path) -> None:
    (tmp_path / "of_the_driver.py").touch()
    before = sys.path[:]
    assert looked(modules=["of_the_driver"])["modules"] == ["of_the_driver"]
    assert looked(modules=["of_the_driver"], path=[*sys.path, str(tmp_path)])["modules"] == []
    assert sys.path == before


def test_a_task_says_why_the_driver_can_not_be_reached(tmp_path) -> None:
    gone = pickle.dumps((Endpoint(str(tmp_path / "gone")), Key.new(), 1.0))
    assert "No such file" in looked(driver=gone)["network"]


@pytest.mark.slow
def test_the_task_runs_in_a_python_that_has_nothing() -> None:
    """Pickled as code, it needs neither stormspark nor anything else."""
    task = cloudpickle.dumps(look_around())
    asked = {
        "version": "1",
        "packages": list(PACKAGES),
        "least": LEAST,
        "modules": ["x"],
        "path": [],
        "driver": b"",
    }
    done = subprocess.run(
        [sys.executable, "-c", _ALONE], input=pickle.dumps((task, asked)), capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr.decode()
    assert b"'packages': ['deltalake', 'greenlet', 'numpy', 'pyarrow']" in done.stdout
    assert b"'stormspark': None" in done.stdout


#: Of the installed packages, this Python sees PySpark's copy of cloudpickle alone.
_ALONE = """
import importlib.abc, pickle, sys
class OnlyThese(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"stormspark", "deltalake", "greenlet", "numpy", "pyarrow"}:
            raise ModuleNotFoundError(name)
        return None
sys.meta_path.insert(0, OnlyThese())
task, asked = pickle.load(sys.stdin.buffer)
print(pickle.loads(task)(asked))
"""


def test_names_of_other_tools_are_those_that_front_ends_bring() -> None:
    folders = (Path(stormspark.__file__).parent / "compat" / "on_path").iterdir()
    names = {path.stem for folder in folders for path in folder.iterdir() if not path.stem.startswith("_")}
    assert names == _OF_FRONT_ENDS


@pytest.mark.slow
def test_the_packages_are_those_that_workers_import() -> None:
    code = (
        "import sys, stormspark.worker.host.process; print(*{name.partition('.')[0] for name in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    others = {
        "arro3",
        "py4j",
        "pyspark",
        "sitecustomize",
        "stormspark",
        "typing_extensions",
        "cython_runtime",
    }
    found = {name for name in done.stdout.split() if not name.startswith(("_", "__editable"))}
    assert found - set(sys.stdlib_module_names) - others == set(PACKAGES)
