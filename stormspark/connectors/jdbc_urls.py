"""Turns URLs of JDBC into those of SQLAlchemy."""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, urlencode

from stormspark.errors import InvalidTopologyError

__all__ = ["sqlalchemy_url"]

#: By the name in a JDBC URL: SQLAlchemy's dialect and driver.
_DRIVERS = {
    "postgresql": "postgresql+psycopg",
    "mysql": "mysql+pymysql",
    "mariadb": "mariadb+pymysql",
    "sqlserver": "mssql+pymssql",
    "oracle": "oracle+oracledb",
}

#: An option of SQL Server. A value in braces may have semicolons, and two closing braces for one.
_PAIR = re.compile(r"(?P<name>[^=;]+)=(?P<value>\{(?:[^}]|\}\})*\}|[^;]*)")
_ONE_HOST = re.compile(r"//(?:[^/@]*@)?(?:\[[^\]]*\]|[^/:,@]*)(?::\d+)?(?:/[^/]*)?")


def sqlalchemy_url(url: str, user: str | None = None, password: str | None = None) -> str:
    """Return the URL for SQLAlchemy. A URL that is not JDBC's is returned as it is, but for the user and the password.

    Options of JDBC's drivers are left out, because Python's drivers have others. Raises `InvalidTopologyError` for a database for
    which Python has no driver, such as H2.

    >>> sqlalchemy_url("jdbc:postgresql://db:5432/storm?user=me&ssl=true", password="p@ss")
    'postgresql+psycopg://me:p%40ss@db:5432/storm'
    >>> sqlalchemy_url("jdbc:sqlite:/tmp/counts.db"), sqlalchemy_url("jdbc:oracle:thin:@//db:1521/storm")
    ('sqlite:////tmp/counts.db', 'oracle+oracledb://db:1521/?service_name=storm')
    >>> sqlalchemy_url("jdbc:sqlserver://db;databaseName=storm", "sa")
    'mssql+pymssql://sa@db/storm'
    >>> sqlalchemy_url("jdbc:sqlserver://db;user=sa;password={a;b}", None), sqlalchemy_url("sqlite:////tmp/counts.db", "me")
    ('mssql+pymssql://sa:a%3Bb@db/', 'sqlite:////tmp/counts.db')
    """
    if not url.startswith("jdbc:"):
        return url if user is None else _with_user(url, user, password)
    kind, _, rest = url.removeprefix("jdbc:").partition(":")
    if kind == "sqlite":
        return f"sqlite:///{rest}"
    if kind not in _DRIVERS:
        msg = (
            f"there is no database for {url!r} here: use one of {', '.join([*_DRIVERS, 'sqlite'])}, or the URL of a "  # K11
            f"dialect of SQLAlchemy"
        )
        raise InvalidTopologyError(msg)
    options: dict[str, str] = {}
    if kind == "sqlserver":
        rest, _, pairs = rest.partition(";")
        options = {
            found["name"].strip().lower(): _unbraced(found["value"]) for found in _PAIR.finditer(pairs)
        }
        rest = f"{rest}/{options.get('databasename') or options.get('database', '')}"
    elif kind == "oracle":
        where = re.fullmatch(r"(?:thin|oci):@(?://)?([^/:]+(?::\d+)?)([/:])([\w.$#-]+)", rest)
        if where is None:
            msg = f"the URL {url!r} must be like jdbc:oracle:thin:@//host:1521/service"
            raise InvalidTopologyError(msg)
        # As in JDBC, a name after a slash is a service, and one after a colon is the SID of an instance.
        service = where[2] == "/"
        rest = (
            f"//{where[1]}/?{urlencode({'service_name': where[3]})}"
            if service
            else f"//{where[1]}/{quote(where[3])}"
        )
    else:
        rest, _, query = rest.partition("?")
        options = dict(parse_qsl(query))
        if not _ONE_HOST.fullmatch(rest):
            # The options, which the message leaves out, may have the password.
            msg = f"the URL must be like jdbc:{kind}://host:port/database, with one host, got {f'jdbc:{kind}:{rest}'!r}"
            raise InvalidTopologyError(msg)
    return _with_user(
        f"{_DRIVERS[kind]}:{rest}", user or options.get("user"), password or options.get("password")
    )


def _unbraced(value: str) -> str:
    return value[1:-1].replace("}}", "}") if value[:1] == "{" and value[-1:] == "}" else value


def _with_user(url: str, user: str | None, password: str | None) -> str:
    if not user or url.startswith("sqlite"):  # a file has no users
        return url
    scheme, _, rest = url.partition("://")
    secret = "" if password is None else f":{quote(password, safe='')}"
    return f"{scheme}://{quote(user, safe='')}{secret}@{rest.rpartition('@')[2]}"
