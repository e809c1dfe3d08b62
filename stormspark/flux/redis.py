"""Stand-ins for Storm's Redis classes in Flux files (K12, K23). They have Java's arguments and setters."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self

from stormspark.connectors.redis_bolt import RedisConfig, RedisDataType, RedisDataTypeDescription


def pool_config(
    host: str = "127.0.0.1",
    port: int = 6379,
    timeout: int = 2000,
    password: str | None = None,
    database: int = 0,
) -> RedisConfig:
    """Stand in for the constructor of JedisPoolConfig. The timeout is in milliseconds."""
    return RedisConfig(host, port, timeout / 1000, password, database)


class JedisPoolConfigBuilder:
    """A stand-in for ``JedisPoolConfig$Builder``."""

    def __init__(self) -> None:
        self._settings: dict[str, Any] = {}

    def _set(self, name: str, value: Any) -> Self:
        self._settings[name] = value
        return self

    def set_host(self, host: str) -> Self:
        """Set the host."""
        return self._set("host", host)

    def set_port(self, port: int) -> Self:
        """Set the port."""
        return self._set("port", port)

    def set_timeout(self, timeout: int) -> Self:
        """Set the timeout, in milliseconds."""
        return self._set("timeout", timeout)

    def set_password(self, password: str) -> Self:
        """Set the password."""
        return self._set("password", password)

    def set_database(self, database: int) -> Self:
        """Set the number of the database."""
        return self._set("database", database)

    def build(self) -> RedisConfig:
        """Return the configuration."""
        return pool_config(**self._settings)


def cluster_config(
    nodes: Iterable[tuple[str, int]],
    timeout: int = 2000,
    max_redirections: int = 5,
    password: str | None = None,
) -> RedisConfig:
    """Stand in for the constructor of JedisClusterConfig. redis-py has its own limit for redirections."""
    return RedisConfig(timeout_secs=timeout / 1000, password=password, nodes=tuple(nodes))


def address(host: str, port: int) -> tuple[str, int]:
    """Stand in for the constructor of ``java.net.InetSocketAddress``."""
    return host, port


def data_type_description(
    data_type: RedisDataType, additional_key: str | None = None
) -> RedisDataTypeDescription:
    """Stand in for the constructor of RedisDataTypeDescription. The type may be the name of a constant."""
    return RedisDataTypeDescription(data_type, additional_key)
