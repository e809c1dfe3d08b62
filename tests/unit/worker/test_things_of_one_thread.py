"""A connection of sqlite3 belongs to one thread: the error says what to do if the user has asked for no threads (A16)."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from stormspark import BasicBolt, TopologyBuilder
from tests.unit.worker.components import Script
from tests.unit.worker.rig import Rig

MADE: list[sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def other_thread() -> Iterator[None]:
    """The thread on which connections are made and closed."""
    with ThreadPoolExecutor(1) as Db.other_thread:
        yield
        for made in MADE:
            Db.other_thread.submit(made.close).result()
        MADE.clear()


class Db(BasicBolt):
    """Gets its connection from another thread, as if it had been prepared there."""

    other_thread: ClassVar[ThreadPoolExecutor]

    def prepare(self, conf: Any, context: Any) -> None:
        """Connect."""
        self.db = self.other_thread.submit(sqlite3.connect, ":memory:").result()
        MADE.append(self.db)

    def execute(self, tup: Any, collector: Any) -> None:
        """Ask."""
        self.db.execute("select 1")


class OnlyComputes(Db):
    """Says what is not true."""

    waits = False


class OfUsers(BasicBolt):
    """Raises what sqlite3 raises for another reason."""

    waits = False

    def execute(self, tup: Any, collector: Any) -> None:
        """Raise."""
        msg = "Cannot operate on a closed database."
        raise sqlite3.ProgrammingError(msg)


def rig_with(bolt: Any, most: int = 10, **conf: Any) -> Rig:
    """A worker in which the bolt has executed one tuple."""
    builder = TopologyBuilder()
    builder.set_spout("a", Script([(1,)]))
    builder.set_bolt("b", bolt).shuffle_grouping("a").add_configurations(conf)
    rig = Rig(builder, 1, stormspark_task_max_restarts_in_row=most)
    rig.batches(2)
    return rig


NEVER = {"stormspark.executor.threads": "never"}


@pytest.mark.parametrize(
    ("bolt", "conf", "instead"),
    [
        (OnlyComputes(), {}, "remove waits = False from this bolt"),
        (Db(), NEVER, "set stormspark.executor.threads of this bolt to 'always'"),
        (OnlyComputes(), NEVER, "set stormspark.executor.threads of this bolt to 'always'"),
    ],
)
def test_the_error_says_what_gives_the_task_a_thread(bolt: Any, conf: dict[str, Any], instead: str) -> None:
    """The error of sqlite3 stays the last line."""
    [text] = rig_with(bolt, **conf).errors
    first, *_, last = text.splitlines()
    assert first == (
        f"starts again at once (restart 1 of at most 10 in a row): {instead}, so that all its calls come from one thread of its "
        f"own:"
    )
    assert last.startswith(
        "sqlite3.ProgrammingError: SQLite objects created in a thread can only be used in that"
    )


def test_the_error_that_stops_the_topology_says_it_too() -> None:
    (task,) = rig_with(OnlyComputes(), most=0).tasks("b")
    assert task.fatal is not None
    assert task.fatal.text.splitlines()[-1].startswith("remove waits = False from this bolt, so that")


def test_another_error_of_sqlite3_is_reported_as_it_is() -> None:
    [text] = rig_with(OfUsers()).errors
    assert text.startswith("starts again at once (restart 1 of at most 10 in a row):\n")
