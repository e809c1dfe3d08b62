"""`stormspark.spark.executor_checks`: what tasks on executors have seen becomes results."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import stormspark
from stormspark.checkpoint.shared_folder import SharedFolder, show_that_it_is_seen
from stormspark.doctor import Status
from stormspark.spark import executor_checks
from stormspark.spark.executor_checks import check_executors, results_of


def seen(**others: Any) -> dict[str, Any]:
    """Return what a task finds on a host where all is well."""
    return {
        "host": "b7",
        "python": "/opt/env/bin/python",
        "python_version": "3.11.9",
        "packages": [],
        "older": {},
        "stormspark": stormspark.__version__,
        "why": "",
        "modules": [],
        "sources": {},
        "network": "",
        "time": 100.5,
        "temporary": "",
        "descriptors": (1024, 65536),
        "seen": "",
        "unseen": "",
    } | others


@pytest.mark.parametrize(
    ("others", "check", "status", "words"),
    [
        ({"time": 3701.0}, "clocks", Status.WARNING, "the clock of host b7 is 3,600 s ahead of the driver's"),
        ({"time": -3500.0}, "clocks", Status.WARNING, "the clock of host b7 is 3,600 s behind the driver's"),
        (
            {"temporary": "No space left on device"},
            "executors' disk",
            Status.FAILED,
            "of host b7 can't be used",
        ),
        (
            {"descriptors": (64, 64)},
            "executors' descriptors",
            Status.FAILED,
            "host b7: a process may have 64",
        ),
        ({"packages": ["pyarrow"]}, "executors", Status.FAILED, "which has no pyarrow"),
        ({"older": {"numpy": "1.26"}}, "executors", Status.FAILED, "numpy 1.26 (at least 2.1 is needed)"),
        ({"stormspark": None}, "executors", Status.FAILED, "which has no stormspark"),
    ],
)
def test_what_is_wrong_there(others: dict[str, Any], check: str, status: Status, words: str) -> None:
    """Each names the host, and says what to do. Tasks of one host that see the same are told once."""
    results = results_of([seen(**others), seen(**others)], 100.0, 101.0, None)
    (result,) = [one for one in results if one.status is not Status.OK]
    assert (result.check, result.status) == (check, status)
    assert words in result.found and result.advice


def test_all_is_well_on_two_hosts() -> None:
    """Clocks may differ by as long as the tasks took."""
    (result,) = results_of([seen(), seen(host="b8")], 100.0, 101.0, None)
    assert result.status is Status.OK
    assert "b7 (/opt/env/bin/python, Python 3.11.9); b8" in result.found


def test_a_folder_that_is_not_shared(tmp_path: Path) -> None:
    """One executor sees it, the other one has another folder of that name."""
    shared = SharedFolder(tmp_path, "use a URL")
    there = seen(seen=show_that_it_is_seen(shared.place))
    not_there = seen(host="b8", unseen="[Errno 2] No such file or directory")
    results = results_of([there, not_there], 100.0, 101.0, shared)
    shared.close()
    (result,) = [one for one in results if one.status is not Status.OK]
    assert result.check == "checkpoint" and result.status is Status.FAILED
    assert "an executor on host b8 does not see the folder" in result.found
    assert "use a URL" in result.advice


class Spark:
    """A session whose job ends as ``ends`` says: it returns rows, raises an error, or waits until it is cancelled."""

    def __init__(self, ends: Any, tasks: tuple[int, int] = (0, 0)) -> None:
        self.sparkContext = self.context = self
        self.defaultParallelism, self.pythonExec = 2, "python3"
        self._ends, self._tasks = ends, tasks
        self._cancelled = threading.Event()

    def parallelize(self, *_: Any) -> Spark:
        return self

    def mapPartitions(self, run: Any) -> Spark:  # noqa: N802
        return self

    def collect(self) -> list[dict[str, Any]]:
        if self._ends is None:
            assert self._cancelled.wait(60)
            raise RuntimeError("Job 0 cancelled")
        if isinstance(self._ends, Exception):
            raise self._ends
        rows: list[dict[str, Any]] = self._ends
        return rows

    def setJobGroup(self, *_: Any) -> None:  # noqa: N802
        pass

    def cancelJobGroup(self, group: str) -> None:  # noqa: N802
        self._cancelled.set()

    def statusTracker(self) -> Spark:  # noqa: N802
        return self

    def getJobIdsForGroup(self, group: str) -> list[int]:  # noqa: N802
        return [0]

    def getJobInfo(self, job: int) -> Any:  # noqa: N802
        return SimpleNamespace(stageIds=[0])

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802
        active, ended = self._tasks
        return SimpleNamespace(numActiveTasks=active, numCompletedTasks=ended, numFailedTasks=0)


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ((0, 0), "no executor had a free core within 0 s"),
        ((1, 1), "1 of 2 tasks have ended, and for 0 s no other one"),
    ],
)
def test_the_look_ends_if_nothing_goes_on(
    monkeypatch: pytest.MonkeyPatch, tasks: tuple[int, int], words: str
) -> None:
    """A cluster without a free core never says so."""
    for name in ("_STARTS_SECS", "_STUCK_SECS", "_LOOK_SECS"):
        monkeypatch.setattr(executor_checks, name, 0.01)
    (result,) = check_executors(Spark(None, tasks), None, 0.0)  # type: ignore[arg-type]
    assert (result.status, result.found) == (Status.FAILED, words)
    assert result.advice


def test_errors_of_spark_are_results(tmp_path: Path) -> None:
    """Whether somebody knows what to do, or not. The user's folder is as it was."""
    (tmp_path / "seen-x").mkdir()
    (tmp_path / "seen-x" / "file").touch()
    for error, words in (
        (RuntimeError("Cannot call a stopped SparkContext"), "Spark could not look at them (RuntimeError: "),
        (RuntimeError("No module named 'pyarrow'"), "has no pyarrow"),
    ):
        (result,) = check_executors(Spark(error), str(tmp_path))  # type: ignore[arg-type]
        assert result.status is Status.FAILED and words in result.found and result.advice
    there = [seen(unseen="[Errno 2] No such file")]
    results = check_executors(Spark(there), str(tmp_path / "a" / "b"))  # type: ignore[arg-type]
    assert [one.check for one in results if one.status is Status.FAILED] == ["checkpoint"]
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["file", "seen-x"]


def test_a_folder_that_can_not_be_made(tmp_path: Path) -> None:
    """Spark is not asked then."""
    (tmp_path / "file").touch()
    (result,) = check_executors(Spark(AssertionError()), str(tmp_path / "file" / "flow"))  # type: ignore[arg-type]
    assert result.check == "checkpoint" and "can't be written to (Not a directory)" in result.found


def test_a_url_is_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one without slashes."""
    monkeypatch.chdir(tmp_path)
    for url in ("dbfs:/Volumes/x", "file:/x", "s3a://bucket/x"):
        results = check_executors(Spark([seen()]), url)  # type: ignore[arg-type]
        assert "checkpoint" not in {one.check for one in results}
    assert not list(tmp_path.iterdir())
