"""Executors in two workers that use a real database, PostgreSQL, through its usual client (A16, X93)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from stormspark import TopologyBuilder
from stormspark.spark import SparkTopology
from tests.postgres_server import PostgresServer
from tests.unit.local.test_database_client import EXECUTORS, LOCK, TUPLES, Asks, Replays
from tests.waiting import wait_for, wait_until_idle

psycopg = pytest.importorskip("psycopg")

pytestmark = [pytest.mark.spark, pytest.mark.long]  # the local engine has the short form


def test_all_executors_of_both_workers_wait_at_the_same_time(start: Callable[..., SparkTopology]) -> None:
    if (missing := PostgresServer.missing()) is not None:
        pytest.skip(missing)
    builder = TopologyBuilder()
    builder.set_spout("numbers", Replays(TUPLES))
    builder.set_bolt("asks", Asks(), EXECUTORS).shuffle_grouping("numbers")
    with PostgresServer() as server, psycopg.connect(server.dsn, autocommit=True) as database:

        def clients(where: str) -> list[str]:
            found = database.execute(
                f"select application_name from pg_stat_activity where application_name ~ '^asks' and {where}"
            )
            return [name for (name,) in found]

        database.execute("select pg_advisory_lock(%s)", (LOCK,))
        conf = {
            "topology.workers": 2,
            # Otherwise all tuples stay in the worker of the spout, until that has too many (D6).
            "topology.disable.loadaware.messaging": True,
            "test.database": server.dsn,
        }
        running = start(builder.create_topology("database"), conf=conf)
        wait_for(lambda: len(clients("wait_event_type = 'Lock'")) == EXECUTORS)
        assert len(set(clients("true"))) == 2
        database.execute("select pg_advisory_unlock(%s)", (LOCK,))
        wait_until_idle(running)
        statistics = running.statistics()
        running.stop()
        assert running.error is None
        assert statistics.components["numbers"].acked == TUPLES
        assert statistics.total("restarts") == 0
        wait_for(lambda: not clients("true"))
