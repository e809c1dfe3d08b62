"""Bolts that write values to Redis and read values from it, with redis-py (K12). Install ``stormspark[redis]``.

They do what the bolts of Storm's Redis package do. A tuple is acked once Redis has answered. So a tuple that is emitted again is
written again, which changes something only for lists.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from stormspark.api import OutputCollector, OutputFieldsDeclarer, TickTupleAwareBolt, TopologyContext, Tuple
from stormspark.errors import InvalidTopologyError
from stormspark.extras import require

__all__ = [
    "RedisConfig",
    "RedisDataType",
    "RedisDataTypeDescription",
    "RedisFilterBolt",
    "RedisFilterMapper",
    "RedisLookupBolt",
    "RedisLookupMapper",
    "RedisMapper",
    "RedisStoreBolt",
    "RedisStoreMapper",
]


class RedisDataType(Enum):
    """The types of values, by Storm's names."""

    STRING = "string"
    HASH = "hash"
    LIST = "list"
    SET = "set"
    SORTED_SET = "sorted set"
    HYPER_LOG_LOG = "HyperLogLog"
    GEO = "geo"


@dataclass(frozen=True)
class RedisDataTypeDescription:
    """The type of a mapper's values. Hashes, sorted sets and places also need ``additional_key``, the name of the whole.

    Raises `InvalidTopologyError` if it is missing.
    """

    data_type: RedisDataType
    additional_key: str | None = None

    def __post_init__(self) -> None:
        needs = (RedisDataType.HASH, RedisDataType.SORTED_SET, RedisDataType.GEO)
        if self.data_type in needs and self.additional_key is None:
            msg = f"values of type {self.data_type.name} need an additional key"
            raise InvalidTopologyError(msg)


class RedisMapper(ABC):
    """Takes the key of a tuple, and says of which type the values are."""

    @abstractmethod
    def get_data_type_description(self) -> RedisDataTypeDescription:
        """Return the type of the values."""

    @abstractmethod
    def get_key_from_tuple(self, tup: Tuple) -> str:
        """Return the key."""


class RedisStoreMapper(RedisMapper):
    """Takes the key and the value of a tuple (Storm's RedisStoreMapper)."""

    @abstractmethod
    def get_value_from_tuple(self, tup: Tuple) -> Any:
        """Return the value. For a sorted set, it is the score of the key; for a place, ``longitude:latitude``."""


class RedisLookupMapper(RedisMapper):
    """Makes tuples of what Redis has for a key (Storm's RedisLookupMapper)."""

    @abstractmethod
    def to_tuple(self, tup: Tuple, value: Any) -> Iterable[Iterable[Any]]:
        """Return the tuples to emit. ``value`` is a str, a number or a list, and None if Redis has nothing."""

    @abstractmethod
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the fields of these tuples."""


class RedisFilterMapper(RedisMapper):
    """Takes the key that is looked for (Storm's RedisFilterMapper)."""

    @abstractmethod
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the fields of the tuples that pass, which are those of the input."""


@dataclass(frozen=True)
class RedisConfig:
    """Where Redis is. With ``nodes``, pairs of a host and a port, it is a cluster."""

    host: str = "127.0.0.1"
    port: int = 6379
    timeout_secs: float = 2.0
    #: Never shown, as in errors.
    password: str | None = field(default=None, repr=False)
    database: int = 0
    nodes: tuple[tuple[str, int], ...] = ()

    def client(self) -> Any:
        """Connect. Raises `UnsupportedEnvironmentError` without redis-py."""
        redis: Any = require("redis", "a bolt for Redis")
        require("redis.cluster", "a bolt for Redis")
        from redis.backoff import NoBackoff
        from redis.retry import Retry

        options: dict[str, Any] = {
            "password": self.password,
            "socket_timeout": self.timeout_secs,
            "decode_responses": True,
            # Java programs may have stored other bytes than UTF-8, and one such value must not fail its tuple for ever.
            "encoding_errors": "replace",
        }
        if self.nodes:
            node: Any = redis.cluster.ClusterNode
            return redis.RedisCluster(startup_nodes=[node(*one) for one in self.nodes], **options)
        # redis-py would try again for seconds in each call. Here a failed tuple comes again, as in Storm.
        return redis.Redis(self.host, self.port, self.database, retry=Retry(NoBackoff(), 0), **options)


class _RedisBolt(TickTupleAwareBolt, ABC):
    """Connects to Redis, and handles errors."""

    #: Redis may take long to answer (`stormspark.waiting_code`).
    waits = True
    _required_modules = ("redis",)

    def __init__(self, config: RedisConfig, mapper: RedisMapper) -> None:
        self._config = config
        described = mapper.get_data_type_description()
        self._type, self._whole = described.data_type, described.additional_key

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Make the client. It connects when it is first used."""
        self._collector = collector
        self._client = self._config.client()

    def process(self, tup: Tuple) -> None:
        """Ask Redis, and ack the tuple. If that fails, report the error and fail the tuple."""
        try:
            self._ask(tup)
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
        self._client.close()

    @abstractmethod
    def _ask(self, tup: Tuple) -> None:
        """Do what the bolt does for a tuple."""


class RedisStoreBolt(_RedisBolt):
    """Stores the value of each tuple. It emits nothing."""

    def __init__(self, config: RedisConfig, mapper: RedisStoreMapper) -> None:
        super().__init__(config, mapper)
        self._mapper = mapper

    def _ask(self, tup: Tuple) -> None:
        client, whole = self._client, self._whole
        key, value = self._mapper.get_key_from_tuple(tup), self._mapper.get_value_from_tuple(tup)
        match self._type:
            case RedisDataType.STRING:
                client.set(key, value)
            case RedisDataType.HASH:
                client.hset(whole, key, value)
            case RedisDataType.LIST:
                client.rpush(key, value)
            case RedisDataType.SET:
                client.sadd(key, value)
            case RedisDataType.SORTED_SET:
                client.zadd(whole, {key: float(value)})
            case RedisDataType.HYPER_LOG_LOG:
                client.pfadd(key, value)
            case RedisDataType.GEO:
                longitude, latitude = str(value).split(":")
                client.geoadd(whole, (float(longitude), float(latitude), key))


class RedisLookupBolt(_RedisBolt):
    """Reads what Redis has for the key of each tuple, and emits the tuples that the mapper makes of it.

    As in Storm, the lookup in a list takes its first value out, and the lookup in a set returns the number of its values.
    """

    def __init__(self, config: RedisConfig, mapper: RedisLookupMapper) -> None:
        super().__init__(config, mapper)
        self._mapper = mapper

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare what the mapper declares."""
        self._mapper.declare_output_fields(declarer)

    def _ask(self, tup: Tuple) -> None:
        key = self._mapper.get_key_from_tuple(tup)
        for values in self._mapper.to_tuple(tup, self._value(key)):
            self._collector.emit(tuple(values), anchors=[tup])

    def _value(self, key: str) -> Any:
        client, whole = self._client, self._whole
        match self._type:
            case RedisDataType.STRING:
                return client.get(key)
            case RedisDataType.HASH:
                return client.hget(whole, key)
            case RedisDataType.LIST:
                return client.lpop(key)
            case RedisDataType.SET:
                return client.scard(key)
            case RedisDataType.SORTED_SET:
                return client.zscore(whole, key)
            case RedisDataType.HYPER_LOG_LOG:
                return client.pfcount(key)
            case RedisDataType.GEO:
                places = client.geopos(whole, key)
                return places if any(places) else None


class RedisFilterBolt(_RedisBolt):
    """Emits the values of each tuple whose key Redis knows, and drops all others.

    A value of a set is looked for in the set that the additional key names. Raises `InvalidTopologyError` if it is missing, and
    for lists, in which Redis can't look for a value.
    """

    def __init__(self, config: RedisConfig, mapper: RedisFilterMapper) -> None:
        super().__init__(config, mapper)
        self._mapper = mapper
        if self._type is RedisDataType.SET and self._whole is None:
            msg = "a RedisFilterBolt of type SET needs an additional key, the name of the set"
            raise InvalidTopologyError(msg)
        if self._type is RedisDataType.LIST:
            msg = "a RedisFilterBolt can't have the type LIST: use a SET"
            raise InvalidTopologyError(msg)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare what the mapper declares."""
        self._mapper.declare_output_fields(declarer)

    def _ask(self, tup: Tuple) -> None:
        if self._knows(self._mapper.get_key_from_tuple(tup)):
            self._collector.emit(tup.values, anchors=[tup])

    def _knows(self, key: str) -> bool:
        client, whole = self._client, self._whole
        match self._type:
            case RedisDataType.HASH:
                return bool(client.hexists(whole, key))
            case RedisDataType.SET:
                return bool(client.sismember(whole, key))
            case RedisDataType.SORTED_SET:
                return client.zscore(whole, key) is not None
            case RedisDataType.HYPER_LOG_LOG:
                return bool(client.pfcount(key))
            case RedisDataType.GEO:
                return any(client.geopos(whole, key))
        return bool(client.exists(key))
