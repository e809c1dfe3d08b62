"""The bolts for databases, with SQLite and with a real PostgreSQL (K11)."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sql

from stormspark.connectors.jdbc_bolt import (
    JdbcColumn,
    JdbcInsertBolt,
    JdbcLookupBolt,
    SimpleJdbcLookupMapper,
    SimpleJdbcMapper,
)
from stormspark.connectors.jdbc_urls import sqlalchemy_url
from stormspark.errors import InvalidTopologyError, UnsupportedEnvironmentError
from stormspark.testing import RecordingCollector, make_context, make_tuple
from tests.postgres_server import PostgresServer


@pytest.fixture(scope="module")
def postgres() -> Iterator[str]:
    if (missing := PostgresServer.missing()) is not None:
        pytest.skip(missing)
    with PostgresServer() as server:
        yield server.url


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database with an empty table ``counts``."""
    found = (
        str(request.getfixturevalue("postgres"))
        if request.param == "postgres"
        else f"sqlite:///{tmp_path}/counts.db"
    )
    engine = sql.create_engine(found)
    with engine.begin() as connection:
        connection.execute(sql.text("DROP TABLE IF EXISTS counts"))
        connection.execute(sql.text("CREATE TABLE counts (word VARCHAR(20) PRIMARY KEY, n INTEGER NOT NULL)"))
    engine.dispose()
    return found


def given(bolt: Any, *values: tuple[Any, ...], fields: tuple[str, ...] = ("word", "n")) -> RecordingCollector:
    collector = RecordingCollector(bolt)
    bolt.prepare({}, make_context("jdbc", bolt), collector)
    for one in values:
        bolt.execute(make_tuple(one, fields=list(fields)))
    bolt.cleanup()
    return collector


def rows(url: str) -> list[tuple[Any, ...]]:
    engine = sql.create_engine(url)
    with engine.connect() as connection:
        found = [
            tuple(row) for row in connection.execute(sql.text("SELECT word, n FROM counts ORDER BY word"))
        ]
    engine.dispose()
    return found


def test_rows_are_inserted_and_looked_up(url: str) -> None:
    """K11: by the table's own columns, and by names; the output is anchored to the tuple."""
    inserted = given(
        JdbcInsertBolt(url, SimpleJdbcMapper("counts")).with_table_name("counts"), ("a", 1), ("b", 2)
    )
    assert (len(inserted.acked), rows(url)) == (2, [("a", 1), ("b", 2)])
    mapper = SimpleJdbcLookupMapper(["word", "N"], ["n"])
    looked_up = given(
        JdbcLookupBolt(url, "SELECT word, n FROM counts WHERE n >= ? AND word <> '?'", mapper),
        (1,),
        fields=("n",),
    )
    assert sorted(tuple(one.values) for one in looked_up.emitted) == [("a", 1), ("b", 2)]
    assert all(len(one.anchors) == 1 for one in looked_up.emitted)


def test_a_statement_of_one_s_own_makes_replays_harmless(url: str) -> None:
    """K11: each tuple is a transaction of its own, and a failed one leaves nothing."""
    query = "INSERT INTO counts (word, n) VALUES (?, ?) ON CONFLICT (word) DO UPDATE SET n = excluded.n"
    bolt = (
        JdbcInsertBolt(url, SimpleJdbcMapper(["word", "n"]))
        .with_insert_query(query)
        .with_query_timeout_secs(5)
    )
    collector = given(bolt, ("a", 1), ("a", 3), ("b", None), ("c", 4))
    assert (len(collector.acked), len(collector.failed)) == (3, 1)
    assert rows(url) == [("a", 3), ("c", 4)]


def test_numbers_for_times_are_milliseconds() -> None:
    """K11: as in Storm, by the numbers of java.sql.Types."""
    moment = make_tuple((1_500_000_000_000,), fields=["at"])
    assert JdbcColumn("at", 93).value_of(moment) == datetime.datetime(2017, 7, 14, 2, 40)
    assert JdbcColumn("at", 91).value_of(moment) == datetime.date(2017, 7, 14)
    assert JdbcColumn("at", 4).value_of(moment) == 1_500_000_000_000


def test_mistakes_are_told() -> None:
    """K11: before the first tuple."""
    mapper = SimpleJdbcMapper(["word"])
    with pytest.raises(InvalidTopologyError, match="either with_table_name or with_insert_query"):
        given(JdbcInsertBolt("sqlite://", mapper))
    with pytest.raises(InvalidTopologyError, match="has 2 question marks, but its mapper has 1 columns"):
        JdbcLookupBolt("sqlite://", "SELECT ? + ?", SimpleJdbcLookupMapper(["n"], ["n"]))
    with pytest.raises(InvalidTopologyError, match="there is no database for 'jdbc:h2:mem:x'"):
        sqlalchemy_url("jdbc:h2:mem:x")
    with pytest.raises(UnsupportedEnvironmentError, match=r"the driver of oracle\+oracledb"):
        given(JdbcInsertBolt("jdbc:oracle:thin:@db:1521:XE", mapper).with_table_name("t"))


@pytest.mark.parametrize(
    ("jdbc", "url"),
    [
        ("jdbc:oracle:thin:@db:1521:XE", "oracle+oracledb://db:1521/XE"),
        (
            "jdbc:oracle:thin:@//db:1521/sales.acme.com",
            "oracle+oracledb://db:1521/?service_name=sales.acme.com",
        ),
        ("jdbc:oracle:thin:@db/sales", "oracle+oracledb://db/?service_name=sales"),
        ("jdbc:postgresql://[::1]:5432/storm", "postgresql+psycopg://[::1]:5432/storm"),
        ("jdbc:mysql://me:x@db/storm?useSSL=false", "mysql+pymysql://me:x@db/storm"),
    ],
)
def test_urls_of_jdbc_keep_their_meaning(jdbc: str, url: str) -> None:
    """K11: a SID is no service, and a service usually has a domain."""
    assert sqlalchemy_url(jdbc) == url


@pytest.mark.parametrize(
    "jdbc",
    [
        "jdbc:postgresql:storm?password=x",
        "jdbc:mysql://a:1,b:2/storm?password=x",
        "jdbc:mysql:replication://a/b",
    ],
)
def test_urls_without_exactly_one_host_are_refused(jdbc: str) -> None:
    """K11: before, SQLAlchemy refused them when the topology ran, without the URL."""
    with pytest.raises(InvalidTopologyError, match="with one host") as caught:
        sqlalchemy_url(jdbc)
    assert "password" not in str(caught.value)
