"""Bolts that write rows to a database and read rows from it, with SQLAlchemy (K11). Install ``stormspark[sql]`` and a driver.

They do what the bolts of Storm's JDBC package do. Each tuple is one transaction, and is acked once the database has committed it.
So a tuple that is emitted again writes its row again: let a key of the table, or the statement, make that harmless.
"""

from __future__ import annotations

import datetime
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from stormspark.api import (
    Fields,
    OutputCollector,
    OutputFieldsDeclarer,
    TickTupleAwareBolt,
    TopologyContext,
    Tuple,
)
from stormspark.connectors.jdbc_urls import sqlalchemy_url
from stormspark.errors import InvalidTopologyError, UnsupportedEnvironmentError

if TYPE_CHECKING:
    from sqlalchemy import Engine

__all__ = ["JdbcColumn", "JdbcInsertBolt", "JdbcLookupBolt", "SimpleJdbcLookupMapper", "SimpleJdbcMapper"]

#: The numbers of ``java.sql.Types`` for which a number in a tuple means milliseconds since 1970.
_DATE, _TIME, _TIMESTAMP = 91, 92, 93
#: What must not be searched for placeholders: strings, quoted names, comments.
_NOT_SQL = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|\?|:", re.DOTALL)


@dataclass(frozen=True)
class JdbcColumn:
    """A column: the name of a field and of a column in the table, and its number in ``java.sql.Types``."""

    name: str
    sql_type: int = 0

    def value_of(self, tup: Tuple) -> Any:
        """Return the column's value for a tuple. As in Storm, a number for a date or time means milliseconds since 1970."""
        value = tup[self.name]
        if self.sql_type in (_DATE, _TIME, _TIMESTAMP) and type(value) in (int, float):
            moment = datetime.datetime.fromtimestamp(value / 1000, tz=datetime.UTC).replace(tzinfo=None)
            return {_DATE: moment.date(), _TIME: moment.time()}.get(self.sql_type, moment)
        return value


class SimpleJdbcMapper:
    """Takes the value of each column from the field of the same name.

    ``columns`` are names or `JdbcColumn` objects. Or it is the name of a table, whose columns are read from the database.
    """

    def __init__(self, columns: str | Sequence[str | JdbcColumn]) -> None:
        self.table = columns if isinstance(columns, str) else None
        self.columns = (
            []
            if isinstance(columns, str)
            else [one if isinstance(one, JdbcColumn) else JdbcColumn(one) for one in columns]
        )

    def prepare(self, engine: Engine) -> None:
        """Read the columns of the table, if the mapper was made with a table's name."""
        if self.table is not None:
            import sqlalchemy as sql

            self.columns = [JdbcColumn(one["name"]) for one in sql.inspect(engine).get_columns(self.table)]


class SimpleJdbcLookupMapper(SimpleJdbcMapper):
    """Takes the parameters of a query from fields, and makes the output tuples.

    Each output field is taken from the input tuple if it has a field of this name, and otherwise from the row.
    """

    def __init__(self, output_fields: Sequence[str], query_columns: Sequence[str | JdbcColumn]) -> None:
        super().__init__(query_columns)
        self.output_fields = list(output_fields)

    def values(self, tup: Tuple, row: Mapping[str, Any]) -> list[Any]:
        """Return the values to emit for a row. Raises KeyError for a field that neither the tuple nor the row has."""
        lower = {name.lower(): value for name, value in row.items()}
        return [tup[name] if name in tup.fields else lower[name.lower()] for name in self.output_fields]


class _JdbcBolt(TickTupleAwareBolt, ABC):
    """Connects to the database, and handles errors."""

    #: The database may take long to answer (`stormspark.waiting_code`).
    waits = True
    _required_modules = ("sqlalchemy",)

    def __init__(self, url: str, mapper: SimpleJdbcMapper) -> None:
        self._url, self._mapper = sqlalchemy_url(url), mapper
        self._timeout_secs: int | None = None

    def with_query_timeout_secs(self, seconds: int) -> Self:
        """Set how long a statement may take, if the database can be told (PostgreSQL, MySQL). The default is no limit."""
        self._timeout_secs = seconds
        return self

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Connect. Raises `UnsupportedEnvironmentError` without SQLAlchemy or the database's driver."""
        try:
            import sqlalchemy as sql

            self._engine = sql.create_engine(self._url, pool_pre_ping=True)
        except ImportError as error:
            msg = (
                f"{type(self).__name__} needs SQLAlchemy and the driver of {self._url.partition(':')[0]}: "
                f"pip install 'stormspark[sql]' and the driver ({error})"
            )
            raise UnsupportedEnvironmentError(msg) from error
        self._collector, self._logger = collector, context.logger
        self._limit = self._statement_limit()
        self._mapper.prepare(self._engine)

    def _statement_limit(self) -> str | None:
        if self._timeout_secs is None:
            return None
        milliseconds = self._timeout_secs * 1000
        match self._engine.dialect.name:
            case "postgresql":
                return f"SET LOCAL statement_timeout = {milliseconds}"
            case "mysql":
                return f"SET SESSION MAX_EXECUTION_TIME = {milliseconds}"
        self._logger.warning(
            "%s can't be told a limit for statements: query timeout ignored", self._engine.dialect.name
        )
        return None

    def process(self, tup: Tuple) -> None:
        """Run the statement for a tuple, and ack it. If that fails, report the error and fail the tuple."""
        try:
            import sqlalchemy as sql

            with self._engine.begin() as connection:
                if self._limit is not None:
                    connection.execute(sql.text(self._limit))
                values = [column.value_of(tup) for column in self._mapper.columns]
                result = connection.execute(
                    sql.text(self._statement(self._mapper)),
                    {f"p{at}": value for at, value in enumerate(values)},
                )
                rows = [dict(row) for row in result.mappings()] if result.returns_rows else []
            self._done(tup, rows)
        except Exception as error:
            self._collector.report_error(error)
            self._collector.fail(tup, f"{type(error).__name__}: {error}")
            return
        self._collector.ack(tup)

    def on_tick_tuple(self, tick: Tuple) -> None:
        """Ack the tick, and do nothing else."""
        self._collector.ack(tick)

    def cleanup(self) -> None:
        """Close the connection."""
        self._engine.dispose()

    @abstractmethod
    def _statement(self, mapper: SimpleJdbcMapper) -> str:
        """Return the statement, with ``:p0`` for the first column's value."""

    def _done(self, tup: Tuple, rows: Sequence[Mapping[str, Any]]) -> None:
        """Do what follows after the commit."""


class JdbcInsertBolt(_JdbcBolt):
    """Inserts a row for each tuple: into a table (`with_table_name`), or by a statement of your own (`with_insert_query`).

    ``url`` is a URL of SQLAlchemy or of JDBC. An output field is not needed.

    >>> bolt = JdbcInsertBolt("sqlite://", SimpleJdbcMapper(["word", "count"])).with_table_name("counts")
    >>> bolt._statement(SimpleJdbcMapper(["word", "count"]))
    'INSERT INTO counts (word, count) VALUES (:p0, :p1)'
    """

    def __init__(self, url: str, mapper: SimpleJdbcMapper) -> None:
        super().__init__(url, mapper)
        self._table = self._query = ""

    def with_table_name(self, table: str) -> Self:
        """Set the table. It may have a schema, as ``public.counts``."""
        self._table = table
        return self

    def with_insert_query(self, query: str) -> Self:
        """Set the statement, with a ``?`` for each column of the mapper."""
        self._query = query
        return self

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Connect. Raises `InvalidTopologyError` unless either a table or a statement is set."""
        if bool(self._table) == bool(self._query):
            msg = "JdbcInsertBolt needs either with_table_name or with_insert_query, and not both"
            raise InvalidTopologyError(msg)
        super().prepare(conf, context, collector)

    def _statement(self, mapper: SimpleJdbcMapper) -> str:
        if self._query:
            return with_names(self._query, len(mapper.columns))
        names = ", ".join(column.name for column in mapper.columns)
        return f"INSERT INTO {self._table} ({names}) VALUES ({', '.join(f':p{at}' for at in range(len(mapper.columns)))})"


class JdbcLookupBolt(_JdbcBolt):
    """Runs a query for each tuple, and emits a tuple for each row, anchored to it.

    ``query`` has a ``?`` for each column of the mapper.
    """

    _mapper: SimpleJdbcLookupMapper

    def __init__(self, url: str, query: str, mapper: SimpleJdbcLookupMapper) -> None:
        super().__init__(url, mapper)
        self._query = with_names(query, len(mapper.columns))

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the output fields of the mapper."""
        declarer.declare(Fields(*self._mapper.output_fields))

    def _statement(self, mapper: SimpleJdbcMapper) -> str:
        return self._query

    def _done(self, tup: Tuple, rows: Sequence[Mapping[str, Any]]) -> None:
        for row in rows:
            self._collector.emit(self._mapper.values(tup, row), anchors=[tup])


def with_names(query: str, count: int) -> str:
    r"""Return the query with ``:p0``, ``:p1``, ... for its question marks, in SQLAlchemy's form.

    Raises `InvalidTopologyError` unless it has ``count`` question marks.

    >>> with_names("select n::int, '?' from t where a = ? and b = ?", 2)
    "select n\\:\\:int, '?' from t where a = :p0 and b = :p1"
    """
    found = 0

    def named(match: re.Match[str]) -> str:
        nonlocal found
        text = match[0]
        if text != "?":
            return text.replace(":", "\\:")
        found += 1
        return f":p{found - 1}"

    result = _NOT_SQL.sub(named, query)
    if found != count:
        msg = f"the statement {query!r:.200} has {found} question marks, but its mapper has {count} columns"
        raise InvalidTopologyError(msg)
    return result
