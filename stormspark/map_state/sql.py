"""Keeps state in a database, with SQLAlchemy (G14). Install ``stormspark[sql]`` with pip, and the database's driver.

The table is created if it does not exist. It has one row per key:

| column | what it holds |
| --- | --- |
| key | the key as JSON: ``["storm"]`` |
| txid | the batch that made the value, NULL outside of a batch; no such column if the state is non-transactional |
| value | the value, as the serializer writes it |
| previous | the value before that batch; no such column unless the state is opaque |
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Final, Protocol

try:
    import sqlalchemy as sql
except ImportError as missing:
    raise ImportError(
        "state in a database needs SQLAlchemy: pip install 'stormspark[sql]', and the database's driver"  # noqa: EM101
    ) from missing
from sqlalchemy.dialects import mssql, mysql

from stormspark.checkpoint.ordered_keys import encode_key
from stormspark.errors import SerializationError, StateError
from stormspark.map_state.backing import Key
from stormspark.map_state.values import OpaqueValue, StateType, TransactionalValue

__all__ = ["Serializer", "SqlBackingMap"]

#: A statement has at most this number of keys. Every database accepts this many parameters.
_KEYS_AT_ONCE: Final = 500


class Serializer(Protocol):
    """A converter of values to strings or bytes. The modules ``json`` and ``pickle`` are serializers."""

    def dumps(self, value: Any, /) -> str | bytes:
        """Return a string or bytes, always of the same type."""

    def loads(self, data: Any, /) -> Any:
        """Return the value from which `dumps` has made ``data``."""


class SqlBackingMap:
    r"""A `BackingMap` in table ``table`` of a database; each `multi_put` is one transaction.

    >>> from stormspark.map_state import OpaqueMap
    >>> engine = sql.create_engine("sqlite://")
    >>> counts = OpaqueMap(SqlBackingMap(engine, "word_counts", StateType.OPAQUE))
    >>> for txid, words in (1, 3), (2, 4), (2, 5):
    ...     counts.begin_commit(txid)
    ...     _ = counts.multi_update([("storm",)], [lambda count: (count or 0) + words])
    ...     counts.commit(txid)
    >>> with engine.connect() as connection:
    ...     connection.execute(sql.text("SELECT txid, value, previous FROM word_counts WHERE key = '[\"storm\"]'")).one()
    (2, '8', '3')
    >>> engine.dispose()

    By default values are stored as JSON, so some of them come back as other types. For example, a tuple comes back as a list.
    With ``serializer=pickle`` values may be any objects, but other programs can't read them. Two keys are the same key if their
    JSON is equal, as it is for a tuple and a list. A key's JSON may have at most ``key_length`` characters.

    An engine of SQLAlchemy can't be pickled: make it in the component's ``prepare``. Several tasks may share the table if their
    keys differ, as under a fields grouping. Each `OpaqueMap` then needs a ``partition`` of its own.

    The class is tested with SQLite and PostgreSQL, and uses nothing that only these two have. For MySQL, MariaDB and SQL Server
    it adapts the types of the columns.

    Raises `StateError` if the table exists with other columns, because it then holds another kind of state.
    """

    def __init__(
        self,
        engine: sql.Engine,
        table: str,
        kind: StateType,
        *,
        serializer: Serializer = json,
        key_length: int = 512,
    ) -> None:
        self._engine = engine
        self._kind = kind
        self._serializer = serializer
        self._key_length = key_length
        # Only equal keys may match. By default MySQL and SQL Server do not distinguish "Storm" from "storm".
        key = (
            sql.String(key_length)
            .with_variant(
                mysql.VARCHAR(key_length, charset="utf8mb4", collation="utf8mb4_bin"), "mysql", "mariadb"
            )
            .with_variant(mssql.NVARCHAR(key_length, collation="Latin1_General_BIN2"), "mssql")
        )
        value = (
            sql.UnicodeText().with_variant(mysql.LONGTEXT(charset="utf8mb4"), "mysql", "mariadb")
            if isinstance(serializer.dumps(None), str)
            else sql.LargeBinary().with_variant(mysql.LONGBLOB(), "mysql", "mariadb")
        )
        columns: list[sql.Column[Any]] = [sql.Column("key", key, primary_key=True)]
        if kind is not StateType.NON_TRANSACTIONAL:
            columns.append(sql.Column("txid", sql.BigInteger))
        columns.append(sql.Column("value", value, nullable=False))
        if kind is StateType.OPAQUE:
            columns.append(sql.Column("previous", value, nullable=False))
        self._table = sql.Table(table, sql.MetaData(), *columns)
        try:
            self._table.create(engine, checkfirst=True)
        except sql.exc.DBAPIError:  # Another task may have created it since the check.
            if not sql.inspect(engine).has_table(table):
                raise
        there = {column["name"] for column in sql.inspect(engine).get_columns(table)}
        wanted = {column.name for column in columns}
        if there != wanted:
            msg = (
                f"table {table!r} has the columns {', '.join(sorted(there))}, but {kind.value} state has "
                f"{', '.join(sorted(wanted))}; name another table, or the kind of state that this table has"  # G15
            )
            raise StateError(msg)

    def multi_get(self, keys: Sequence[Key]) -> list[Any]:
        """See `BackingMap.multi_get`."""
        texts = [self._key_text(key) for key in keys]
        found: dict[str, Any] = {}
        with self._engine.connect() as connection:
            for some in _in_portions(list(dict.fromkeys(texts))):
                rows = connection.execute(sql.select(self._table).where(self._table.c.key.in_(some)))
                found.update((row.key, self._value(row)) for row in rows)
        return [found.get(text) for text in texts]

    def multi_put(self, keys: Sequence[Key], values: Sequence[Any]) -> None:
        """See `BackingMap.multi_put`. Stores all values or none.

        Raises `SerializationError` if the serializer fails or a key is too long, and `StateError` for values of another kind.
        """
        rows = {
            text: self._row(text, value)
            for text, value in zip(map(self._key_text, keys), values, strict=True)
        }
        # Delete and insert, because each database has its own form of UPSERT.
        with self._engine.begin() as connection:
            for some in _in_portions(list(rows)):
                connection.execute(sql.delete(self._table).where(self._table.c.key.in_(some)))
                connection.execute(sql.insert(self._table), [rows[text] for text in some])

    def _key_text(self, key: Key) -> str:
        try:
            text = json.dumps(key, default=_key_as_hex, separators=(",", ":"), ensure_ascii=False)
            text.encode()
        except UnicodeEncodeError:  # half of a surrogate pair
            text = json.dumps(key, default=_key_as_hex, separators=(",", ":"))
        if len(text) > self._key_length:
            msg = (
                f"key {key!r} has {len(text)} characters as JSON, but table {self._table.name!r} allows "
                f"{self._key_length}; create the table with a greater key_length"
            )
            raise SerializationError(msg)
        return text

    def _row(self, text: str, value: Any) -> dict[str, Any]:
        row: dict[str, Any] = {"key": text}
        if self._kind is StateType.OPAQUE and isinstance(value, OpaqueValue):
            row |= {"txid": value.txid, "value": value.curr, "previous": value.prev}
        elif self._kind is StateType.TRANSACTIONAL and isinstance(value, TransactionalValue):
            row |= {"txid": value.txid, "value": value.value}
        elif self._kind is StateType.NON_TRANSACTIONAL and not isinstance(
            value, OpaqueValue | TransactionalValue
        ):
            row |= {"value": value}
        else:
            msg = (
                f"table {self._table.name!r} holds {self._kind.value} state, but got a {type(value).__name__} for key "
                f"{text}; the map in front of it and its StateType must be of the same kind"
            )
            raise StateError(msg)
        for column in row.keys() & {"value", "previous"}:
            try:
                row[column] = self._serializer.dumps(row[column])
            except Exception as error:
                msg = (
                    f"table {self._table.name!r}: the value of key {text}, of type {type(row[column]).__qualname__}, "
                    f"can't be stored: {error}; put plain data, or choose another serializer"
                )
                raise SerializationError(msg) from error
        return row

    def _value(self, row: Any) -> Any:
        value = self._serializer.loads(row.value)
        if self._kind is StateType.OPAQUE:
            return OpaqueValue(row.txid, value, self._serializer.loads(row.previous))
        return TransactionalValue(row.txid, value) if self._kind is StateType.TRANSACTIONAL else value


def _key_as_hex(item: Any) -> Any:
    """Convert a part of a key that JSON can't write, such as a date, a decimal or bytes."""
    return {"$": encode_key(item).hex()}


def _in_portions(texts: list[str]) -> Iterator[list[str]]:
    for at in range(0, len(texts), _KEYS_AT_ONCE):
        yield texts[at : at + _KEYS_AT_ONCE]
