"""State in a database, SQLite and PostgreSQL: real transactions, and processes that are killed in the middle of them."""

from __future__ import annotations

import datetime
import pickle
import signal
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from threading import Barrier

import pytest
import sqlalchemy as sql
from sqlalchemy.dialects import mssql, mysql, postgresql
from sqlalchemy.schema import CreateTable

from stormspark.errors import SerializationError, StateError
from stormspark.map_state import (
    NonTransactionalMap,
    OpaqueMap,
    OpaqueValue,
    StateType,
    TransactionalMap,
    TransactionalValue,
)
from stormspark.map_state.sql import SqlBackingMap
from tests.postgres_server import PostgresServer
from tests.unit.map_state.sql_batches import BATCHES, plus, words

ROOT = Path(__file__).parents[3]
PLACES = [
    "before any",
    "deleted 0",
    "inserted 0",
    "before commit 0",
    "between the two",
    "deleted 1",
    "before commit 1",
    "after both",
]
FATAL = 4
#: The two kinds write the same way, so on PostgreSQL CI has one of them; on SQLite, which is everywhere, it has both.
KILLED = [
    pytest.param("sqlite", StateType.TRANSACTIONAL, id="sqlite-transactional"),
    pytest.param("sqlite", StateType.OPAQUE, id="sqlite-opaque"),
    pytest.param("postgresql", StateType.OPAQUE, id="postgresql-opaque"),
    pytest.param(
        "postgresql", StateType.TRANSACTIONAL, id="postgresql-transactional", marks=pytest.mark.long
    ),
]


@pytest.fixture(scope="module")
def postgres():
    """The URL of a server of its own."""
    if (missing := PostgresServer.missing()) is not None:
        pytest.skip(missing)
    with PostgresServer() as server:
        yield server.url


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.slow)])
def engine(request, tmp_path):
    """An empty database."""
    if request.param == "sqlite":
        made = sql.create_engine(f"sqlite:///{tmp_path}/state.db")
    else:
        made = sql.create_engine(request.getfixturevalue("postgres"))
        found = sql.MetaData()
        found.reflect(made)
        found.drop_all(made)
    yield made
    made.dispose()


def run_batches(engine: sql.Engine, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.unit.map_state.sql_batches", str(engine.url), *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


@pytest.mark.faults
@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("engine", "kind"), KILLED, indirect=["engine"])
def test_a_process_that_is_killed_in_a_batch_counts_it_once(engine, kind, place):
    """G8, G14-G16: killed in, before and between the transactions; the replay of an opaque spout brings other words."""
    killed = run_batches(engine, kind.value, "1", place, str(FATAL))
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert killed.stdout.split() == ["1", "2", "3"]
    again = run_batches(engine, kind.value, str(FATAL), "nowhere", "0")
    assert again.returncode == 0, again.stderr

    expected = [word for txid in range(1, BATCHES + 1) for word in words(txid, int(txid == FATAL), kind)]
    letters: Counter[tuple[str]] = Counter()
    for word in expected:
        letters[word] += len(word[0])
    assert contents(engine, "counts", kind) == Counter(expected)
    assert contents(engine, "letters", kind) == letters


def contents(engine: sql.Engine, table: str, kind: StateType) -> dict[tuple[str], int]:
    every = {
        word for txid in range(1, BATCHES + 1) for attempt in (0, 1) for word in words(txid, attempt, kind)
    }
    keys = sorted(every)
    make = OpaqueMap if kind is StateType.OPAQUE else TransactionalMap
    found = make(SqlBackingMap(engine, table, kind)).multi_get(keys)
    return {key: value for key, value in zip(keys, found, strict=True) if value is not None}


def test_a_put_that_fails_stores_nothing(engine):
    """G14: one transaction a call."""
    rows = SqlBackingMap(engine, "counts", StateType.NON_TRANSACTIONAL)
    rows.multi_put(["a", "b"], [1, 2])
    refusal = (
        "CREATE TRIGGER no BEFORE INSERT ON counts WHEN NEW.key = '\"c\"' BEGIN SELECT RAISE(ABORT, 'no'); END"
        if engine.dialect.name == "sqlite"
        else "ALTER TABLE counts ADD CHECK (key <> '\"c\"')"
    )
    with engine.begin() as connection:
        connection.execute(sql.text(refusal))
    with pytest.raises(sql.exc.IntegrityError):
        rows.multi_put(["a", "b", "c"], [7, 8, 9])
    assert rows.multi_get(["a", "b", "c"]) == [1, 2, None]


def test_rows_can_be_read_by_anybody(engine):
    """G15: txid, value and the value before."""
    counts = OpaqueMap(SqlBackingMap(engine, "counts", StateType.OPAQUE))
    for txid in 1, 2:
        counts.begin_commit(txid)
        counts.multi_update([("straße", 5)], [plus(txid)])
        counts.commit(txid)
    with engine.connect() as connection:
        rows = connection.execute(sql.text("SELECT * FROM counts WHERE key NOT LIKE '%journal%'")).all()
    assert rows == [('["straße",5]', 2, "3", "1")]


def test_more_keys_than_a_statement_takes(engine):
    """More keys than one SQL statement takes are written, replaced and read (G14)."""
    rows = SqlBackingMap(engine, "counts", StateType.TRANSACTIONAL)
    keys = [("word", n) for n in range(1700)]
    for txid in 1, 2:
        rows.multi_put(keys, [TransactionalValue(txid, n) for n in range(1700)])
    assert rows.multi_get([*keys, "absent"]) == [*(TransactionalValue(2, n) for n in range(1700)), None]


def test_keys_of_all_kinds_are_different_keys(engine):
    """Keys of different types, of different case and with odd characters stay different keys (G14)."""
    day = datetime.date(2024, 2, 29)
    keys = [
        1,
        "1",
        1.0,
        True,
        None,
        ("1",),
        ((1,),),
        day,
        (day,),
        Decimal("1"),
        b"1",
        "\ud800",
        "\\ud800",
        '"',
        "a b ",
        "A b ",
        "",
    ]
    rows = SqlBackingMap(engine, "counts", StateType.NON_TRANSACTIONAL)
    rows.multi_put(keys, list(range(len(keys))))
    assert rows.multi_get(keys) == list(range(len(keys)))


@pytest.mark.parametrize(
    ("dialect", "key", "value"),
    [
        (postgresql.dialect(), "VARCHAR(512)", "TEXT"),
        (
            mysql.dialect(),
            "VARCHAR(512) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
            "LONGTEXT CHARACTER SET utf8mb4",
        ),
        (mssql.dialect(), "NVARCHAR(512) COLLATE Latin1_General_BIN2", "NTEXT"),
    ],
    ids=["postgresql", "mysql", "mssql"],
)
def test_keys_that_differ_in_case_are_different_keys_in_other_databases_too(engine, dialect, key, value):
    """G14: as far as can be seen without them, by the table's definition."""
    table = SqlBackingMap(engine, "counts", StateType.OPAQUE)._table
    definition = str(CreateTable(table).compile(dialect=dialect))
    assert f" {key} NOT NULL" in definition
    assert definition.count(f" {value} NOT NULL") == 2


def test_values_of_any_kind_by_pickle(engine):
    """G14: bytes in the table, objects outside."""
    rows = SqlBackingMap(engine, "days", StateType.OPAQUE, serializer=pickle)
    value = OpaqueValue(3, {datetime.date(2024, 2, 29): (1, {2})}, None)
    rows.multi_put([("x",)], [value])
    assert rows.multi_get([("x",)]) == [value]


def test_a_value_that_can_not_be_stored_is_named(engine):
    """A value that can't be stored is named with its key, and so is a key that is too long (G14)."""
    rows = SqlBackingMap(engine, "counts", StateType.NON_TRANSACTIONAL)
    with pytest.raises(
        SerializationError, match=r"table 'counts': the value of key \[\"a\"\], of type set, can't be stored"
    ):
        rows.multi_put([("a",)], [{1}])
    with pytest.raises(SerializationError, match="has 602 characters as JSON, but table 'counts' allows 512"):
        rows.multi_get(["a" * 600])


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (StateType.OPAQUE, TransactionalValue(1, 1)),
        (StateType.TRANSACTIONAL, 1),
        (StateType.NON_TRANSACTIONAL, OpaqueValue(1, 1)),
    ],
)
def test_a_map_of_another_kind_is_refused(engine, kind, value):
    """A value that belongs to another kind of state is rejected (G15)."""
    with pytest.raises(StateError, match=f"table 'counts' holds {kind.value} state, but got a"):
        SqlBackingMap(engine, "counts", kind).multi_put(["a"], [value])


def test_tasks_that_begin_together_share_a_table(engine):
    """G15: one of them makes it, at the same moment as the others."""
    together = Barrier(8)

    def begin(table: str) -> None:
        together.wait()
        SqlBackingMap(engine, table, StateType.OPAQUE)

    with ThreadPoolExecutor(8) as tasks:
        for number in range(5):
            list(tasks.map(begin, [f"counts_{number}"] * 8))
    assert len(sql.inspect(engine).get_table_names()) == 5


def test_a_table_of_another_kind_is_refused(engine):
    """An existing table of another kind of state is rejected, with its columns (G15)."""
    SqlBackingMap(engine, "counts", StateType.TRANSACTIONAL)
    with pytest.raises(
        StateError, match="has the columns key, txid, value, but opaque state has key, previous, txid, value"
    ):
        SqlBackingMap(engine, "counts", StateType.OPAQUE)


def test_partitions_share_a_table(engine):
    """G14: what one takes back is its own."""
    first, second = (
        OpaqueMap(SqlBackingMap(engine, "counts", StateType.OPAQUE), partition) for partition in (0, 1)
    )
    for counts, key in (first, "a"), (second, "b"), (first, "c"):
        counts.begin_commit(1)
        counts.multi_put([key], [1])
        counts.commit(1)
    assert first.multi_get("abc") == [None, 1, 1]


def test_a_non_transactional_table_is_a_map(engine):
    """A non-transactional table takes updates and values as a map does (G14)."""
    counts = NonTransactionalMap(SqlBackingMap(engine, "counts", StateType.NON_TRANSACTIONAL))
    assert counts.multi_update(["a", "a"], [lambda count: (count or 0) + 1] * 2) == [1, 2]
    counts.multi_put(["b"], [None])  # type: ignore[list-item]
    assert counts.multi_get(["a", "b"]) == [2, None]
