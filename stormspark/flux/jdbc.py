"""Stand-ins for Storm's JDBC classes in Flux files (K11, K23). They have Java's arguments."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stormspark.connectors.jdbc_bolt import JdbcColumn
from stormspark.connectors.jdbc_bolt import SimpleJdbcMapper as _Mapper
from stormspark.connectors.jdbc_urls import sqlalchemy_url
from stormspark.errors import InvalidTopologyError

#: By the class of a data source: the database's name in URLs of JDBC.
_SOURCES = {
    "mysql": "mysql",
    "mariadb": "mariadb",
    "pgsimple": "postgresql",
    "postgresql": "postgresql",
    "sqlserver": "sqlserver",
    "oracle": "oracle",
}


def connection_provider(config: Mapping[str, Any]) -> str:
    """Stand in for the constructor of HikariCPConnectionProvider. Returns the URL for SQLAlchemy.

    >>> connection_provider({"jdbcUrl": "jdbc:mysql://db/storm", "username": "me", "password": "x"})
    'mysql+pymysql://me:x@db/storm'
    >>> connection_provider({
    ...     "dataSourceClassName": "org.postgresql.ds.PGSimpleDataSource", "dataSource.serverName": "db",
    ...     "dataSource.databaseName": "storm", "dataSource.user": "me"})
    'postgresql+psycopg://me@db/storm'
    """
    url = config.get("jdbcUrl") or config.get("dataSource.url") or config.get("dataSource.URL")
    if url is None:
        source = str(config.get("dataSourceClassName", "")).lower()
        kind = next((name for part, name in _SOURCES.items() if part in source), None)
        server, database = config.get("dataSource.serverName"), config.get("dataSource.databaseName")
        if kind is None or server is None or database is None:
            msg = (
                f"HikariCPConnectionProvider needs jdbcUrl or dataSource.url, or the class of a known data source with "
                f"dataSource.serverName and dataSource.databaseName, got {', '.join(config) or 'nothing'}"
            )
            raise InvalidTopologyError(msg)
        port = config.get("dataSource.port") or config.get("dataSource.portNumber")
        url = f"jdbc:{kind}://{server}{f':{port}' if port else ''}/{database}"
        if kind == "sqlserver":
            url = f"jdbc:sqlserver://{server}{f':{port}' if port else ''};databaseName={database}"
    user, password = (
        config.get(name) or config.get(f"dataSource.{other}")
        for name, other in (("username", "user"), ("password", "password"))
    )
    return sqlalchemy_url(str(url), user, None if password is None else str(password))


class SimpleJdbcMapper(_Mapper):
    """A stand-in for Java's SimpleJdbcMapper: its constructor takes columns, or a table and a connection provider."""

    def __init__(self, columns: str | Sequence[Any], provider: str | None = None) -> None:
        super().__init__(columns)


def column(name: str, *rest: Any) -> JdbcColumn:
    """Stand in for the constructors of Java's Column: its name and its type, or its name, its value and its type."""
    return JdbcColumn(name, int(rest[-1]) if rest else 0)
