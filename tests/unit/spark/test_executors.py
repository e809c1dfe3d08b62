"""Which executors of an application count; Spark's list of them is played."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark.spark.executors import Executors


class Listed:
    """One in Spark's list, which has dead ones, too, if it is asked for those."""

    def __init__(self, name: str) -> None:
        self.name, self.there = name, True

    def id(self) -> str:
        return self.name

    def isActive(self) -> bool:  # noqa: N802 - Spark's
        return self.there


@pytest.fixture
def listed() -> list[Listed]:
    return [Listed(name) for name in ("driver", "0", "1", "2")]


@pytest.fixture
def executors(listed: list[Listed]) -> Executors:
    return executors_of(listed)


def executors_of(listed: list[Listed]) -> Executors:
    session: Any = MagicMock()
    session.sparkContext.getConf.return_value.getAll.return_value = [
        ("spark.dynamicAllocation.enabled", "true")
    ]
    session.sparkContext.master = "yarn"

    def executor_list(active: bool) -> Any:
        found = [one for one in listed if one.there or not active]
        return SimpleNamespace(size=lambda: len(found), apply=lambda number: found[number])

    session.sparkContext._jsc.sc.return_value.statusStore.return_value.executorList = executor_list
    return Executors(session)


def test_an_executor_that_idled_and_was_given_back_explains_no_failure(
    executors: Executors, listed: list[Listed]
) -> None:
    """A bolt raises in the batch in which dynamic allocation gives an executor back: ten of those end the topology, as ever."""
    for one in listed[1:]:
        one.there = False
        assert not executors.took_workers(set())
    assert executors.ever() == {"0": False, "1": False, "2": False}


def test_an_executor_that_goes_with_workers_explains_one_failure(
    executors: Executors, listed: list[Listed]
) -> None:
    assert not executors.took_workers({3}), "a worker died, and its executor is there"
    listed[2].there = False
    assert executors.took_workers({3})
    assert not executors.took_workers({3}), "that was an earlier attempt"


def test_an_executor_that_was_lost_before_the_topology_started_explains_no_failure(
    listed: list[Listed],
) -> None:
    """An application may have run for days: a worker that dies in the first failing batch did not go with that executor."""
    listed[1].there = False
    executors = executors_of(listed)
    assert not executors.took_workers({3})
    listed[2].there = False
    assert executors.took_workers({3})
