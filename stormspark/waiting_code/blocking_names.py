"""Lists functions and classes that block the thread which calls them, and so block an event loop (`stormspark.api.AsyncBolt`).

The lists have what is well known and no more: a name that is on no list says nothing. Locks and queues are not listed, because
threads rarely hold them for long.
"""

from __future__ import annotations

from collections.abc import Iterator

from stormspark.waiting_code.known_code import listed_names

__all__ = ["blocks", "blocks_by_reading_files"]


def _names(lists: dict[str, str]) -> dict[str, frozenset[str]]:
    return {module: frozenset(names.split()) for module, names in lists.items()}


_HTTP = "delete get head options patch post put request"

_OF_PYTHON = {
    "builtins": "input",
    "concurrent.futures": "as_completed wait",
    "ftplib": "FTP FTP_TLS",
    "http.client": "HTTPConnection HTTPSConnection",
    "imaplib": "IMAP4 IMAP4_SSL",
    "os": "popen system wait wait3 wait4 waitid waitpid",
    "poplib": "POP3 POP3_SSL",
    "select": "select",
    "smtplib": "LMTP SMTP SMTP_SSL",
    "socket": "create_connection getaddrinfo getfqdn gethostbyaddr gethostbyname gethostbyname_ex getnameinfo",
    "sqlite3": "Connection connect",
    "subprocess": "call check_call check_output getoutput getstatusoutput run",
    "time": "sleep",
    "urllib.request": "urlopen urlretrieve",
    "xmlrpc.client": "Server ServerProxy",
}

_OF_OTHERS = {
    "MySQLdb": "Connect Connection connect",
    "boto3": "Session client resource",
    "cassandra.cluster": "Cluster",
    "clickhouse_driver": "Client connect",
    "cx_Oracle": "Connection connect",
    "elasticsearch": "Elasticsearch",
    "httpx": f"{_HTTP} Client stream",
    "kafka": "KafkaAdminClient KafkaConsumer KafkaProducer",
    "kazoo.client": "KazooClient",
    "memcache": "Client",
    "mysql.connector": "connect",
    "opensearchpy": "OpenSearch",
    "oracledb": "Connection connect",
    "paramiko": "SSHClient",
    "pika": "BlockingConnection",
    "psycopg": "Connection connect",
    "psycopg2": "connect connection",
    "psycopg2.pool": "SimpleConnectionPool ThreadedConnectionPool",
    "psycopg_pool": "ConnectionPool",
    "pymemcache": "Client HashClient PooledClient",
    "pymongo": "MongoClient",
    "pymssql": "connect",
    "pymysql": "Connect Connection connect",
    "pyodbc": "Connection connect",
    "redis": "Redis RedisCluster StrictRedis from_url",
    "requests": f"{_HTTP} Session session",
    "snowflake.connector": "connect",
    "sqlalchemy": "Connection Engine Session create_engine",
    "urllib3": "HTTPConnectionPool HTTPSConnectionPool PoolManager ProxyManager connection_from_url request",
}

_BLOCK = _names(_OF_PYTHON | _OF_OTHERS)

#: What reads and writes files. This takes so short that it matters only if a task does it again and again.
_FILES = _names(
    {
        "bz2": "open",
        "dbm": "open",
        "gzip": "open",
        "io": "open open_code",
        "lzma": "open",
        "os": "fsync",
        "pandas": "read_csv read_excel read_feather read_json read_parquet",
        "shelve": "open",
        "shutil": "copy copy2 copyfile copytree make_archive move rmtree unpack_archive",
    }
)

#: Parts of the names of modules in which clients have names like the blocking ones, but block nobody.
_ASYNC = {"aio", "async", "asyncio"}


def blocks(module: str, name: str) -> bool:
    """Return whether a name of a module is known to block the thread that calls it, for other reasons than a file.

    >>> blocks("time", "sleep"), blocks("requests.api", "get"), blocks("asyncio", "sleep")
    (True, True, False)
    >>> blocks("redis.client", "Redis"), blocks("redis.asyncio.client", "Redis")
    (True, False)
    """
    return _is_in(_BLOCK, module, name)


def blocks_by_reading_files(module: str, name: str) -> bool:
    """Return whether a name of a module is known to read or write files.

    >>> blocks_by_reading_files("_io", "open")
    True
    """
    return _is_in(_FILES, module, name)


def _is_in(lists: dict[str, frozenset[str]], module: str, name: str) -> bool:
    return any(name in lists.get(one, ()) for one in _names_of(module))


def _names_of(module: str) -> Iterator[str]:
    """Yield the names under which a module may be listed; none if it is made for event loops."""
    if _ASYNC.isdisjoint(module.split(".")):
        yield from listed_names(module)
