"""`stormspark.spark.executor_checks`: what tasks on executors have seen becomes results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import stormspark
from stormspark.checkpoint.shared_folder import SharedFolder, show_that_it_is_seen
from stormspark.doctor import Status
from stormspark.spark.executor_checks import results_of


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
