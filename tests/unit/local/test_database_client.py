"""Bolts that use a real database, PostgreSQL, through its usual client: one connection for each executor (A16, X93)."""

from __future__ import annotations

import contextlib
import os
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from stormspark import Bolt, Fields, Spout, TopologyBuilder
from stormspark.local import submit
from tests.postgres_server import PostgresServer
from tests.waiting import PATIENCE_SECS, wait_for

psycopg = pytest.importorskip("psycopg")

pytestmark = pytest.mark.slow
EXECUTORS, TUPLES = 20, 400
#: The key of a lock in the database that the test holds.
LOCK = 7


class Used:
    """The threads that have used each connection, and the ids of the messages that failed."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Begin with nothing that another test has left."""
        self.threads: dict[Any, set[int]] = defaultdict(set)
        self.failed: list[Any] = []

    def note(self, connection: Any) -> None:
        """Note that the calling thread uses a connection."""
        self.threads[connection].add(threading.get_ident())


used = Used()


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of this module's own."""
    if (missing := PostgresServer.missing()) is not None:
        pytest.skip(missing)
    with PostgresServer() as started:
        yield started


@pytest.fixture
def database(server: PostgresServer) -> Iterator[Any]:
    """A connection of the test's own, to a server with an empty table."""
    used.begin()
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute("drop table if exists seen")
        connection.execute("create table seen (n int)")
        yield connection
    used.begin()


class Replays(Spout):
    """Emits the numbers up to ``count``, and each that fails once more."""

    def __init__(self, count: int) -> None:
        self.count = count

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.left = collector, list(range(self.count))

    def next_tuple(self) -> None:
        if self.left:
            n = self.left.pop()
            self.collector.emit((n,), message_id=n)

    def fail(self, message_id: Any) -> None:
        used.failed.append(message_id)
        self.left.append(message_id)

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("n"))


class Asks(Bolt):
    """Asks the database in each call of ``execute``. The answer comes when nobody holds the test's lock alone."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.connection = psycopg.connect(
            conf["test.database"], autocommit=True, application_name=f"asks in {os.getpid()}"
        )
        used.note(self.connection)

    def execute(self, tup: Any) -> None:
        used.note(self.connection)
        with self.connection.transaction():
            self.connection.execute("select pg_advisory_xact_lock_shared(%s)", (LOCK,))
            (twice,) = self.connection.execute("select 2 * %s::int", tup.values).fetchone()
        assert twice == 2 * tup["n"]
        self.collector.ack(tup)

    def cleanup(self) -> None:
        used.note(self.connection)
        self.connection.close()


class Writes(Bolt):
    """Writes numbers. If the database is away, it fails the tuple, and connects anew for the next one."""

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.dsn = collector, conf["test.database"]
        self.connection: Any = None

    def execute(self, tup: Any) -> None:
        try:
            if self.connection is None:
                self.connection = psycopg.connect(self.dsn, autocommit=True, application_name="writes")
            used.note(self.connection)
            self.connection.execute("insert into seen select %s from pg_sleep(0.02)", tup.values)
        except psycopg.OperationalError as error:
            self.let_go()
            self.collector.fail(tup, str(error))
        else:
            self.collector.ack(tup)

    def let_go(self) -> None:
        """Close the connection, if there is one."""
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def cleanup(self) -> None:
        self.let_go()


def _topology(bolt: Bolt) -> Any:
    builder = TopologyBuilder()
    builder.set_spout("numbers", Replays(TUPLES))
    builder.set_bolt("asks", bolt, EXECUTORS).shuffle_grouping("numbers")
    return builder.create_topology("database")


def _connected(database: Any, where: str) -> int:
    """How many connections of the bolts the server has that are in this state."""
    (count,) = database.execute(
        f"select count(*) from pg_stat_activity where application_name ~ '^(asks|writes)' and {where}"
    ).fetchone()
    return int(count)


def test_each_executor_waits_for_answers_on_a_connection_of_its_own(
    server: PostgresServer, database: Any
) -> None:
    """Nothing but the bolt's code says that it waits. The server sees twenty clients that wait at the same time."""
    database.execute("select pg_advisory_lock(%s)", (LOCK,))
    running = submit(_topology(Asks()), conf={"test.database": server.dsn})
    try:
        wait_for(lambda: _connected(database, "wait_event_type = 'Lock'") == EXECUTORS)
        database.execute("select pg_advisory_unlock(%s)", (LOCK,))
        running.run_until_idle(PATIENCE_SECS)
        statistics = running.statistics()
    finally:
        running.stop()
    assert statistics.components["numbers"].acked == TUPLES
    assert statistics.total("failed") == 0
    threads = [thread for threads in used.threads.values() for thread in threads]
    assert len(used.threads) == len(threads) == len(set(threads)) == EXECUTORS
    assert all(connection.closed for connection in used.threads)
    wait_for(lambda: _connected(database, "true") == 0)


def test_nothing_is_lost_when_the_server_is_killed_and_comes_back(
    server: PostgresServer, database: Any
) -> None:
    """E15: each number is in the table, and some may be there twice."""
    running = submit(_topology(Writes()), conf={"test.database": server.dsn})
    try:
        wait_for(lambda: database.execute("select count(*) from seen").fetchone()[0] > EXECUTORS)
        server.kill()
        wait_for(lambda: len(used.failed) > EXECUTORS)
        server.start()
        running.run_until_idle(PATIENCE_SECS)
        statistics = running.statistics()
    finally:
        running.stop()
    with contextlib.closing(psycopg.connect(server.dsn)) as anew:
        seen = [n for (n,) in anew.execute("select n from seen").fetchall()]
    assert set(seen) == set(range(TUPLES))
    assert statistics.components["numbers"].acked == TUPLES
    assert statistics.components["asks"].restarts == 0
    assert all(len(threads) == 1 for threads in used.threads.values())
    assert len(used.threads) > EXECUTORS
    assert all(connection.closed for connection in used.threads)
