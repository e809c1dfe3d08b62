"""The bolts for Redis, with a real server (K12)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stormspark import flux
from stormspark.api import Fields
from stormspark.connectors.redis_bolt import (
    RedisConfig,
    RedisDataType,
    RedisDataTypeDescription,
    RedisFilterBolt,
    RedisFilterMapper,
    RedisLookupBolt,
    RedisLookupMapper,
    RedisStoreBolt,
    RedisStoreMapper,
)
from stormspark.errors import InvalidTopologyError
from stormspark.testing import RecordingCollector, make_context, make_tuple
from tests.redis_server import RedisServer

server_needed = pytest.mark.skipif(RedisServer.missing() is not None, reason=str(RedisServer.missing()))


class Mapper(RedisStoreMapper, RedisLookupMapper):
    """The field word is the key, and the field n the value."""

    def __init__(self, data_type: RedisDataType = RedisDataType.STRING, whole: str | None = None) -> None:
        self.described = RedisDataTypeDescription(data_type, whole)

    def get_data_type_description(self) -> RedisDataTypeDescription:
        return self.described

    def get_key_from_tuple(self, tup: Any) -> str:
        return str(tup["word"])

    def get_value_from_tuple(self, tup: Any) -> Any:
        return tup["n"]

    def to_tuple(self, tup: Any, value: Any) -> list[tuple[Any, ...]]:
        return [(tup["word"], value)]

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word", "found"))


@pytest.fixture(scope="module")
def config() -> Iterator[RedisConfig]:
    with RedisServer() as server:
        yield RedisConfig("127.0.0.1", server.port)


def given(bolt: Any, *values: tuple[Any, ...]) -> RecordingCollector:
    collector = RecordingCollector(bolt)
    bolt.prepare({}, make_context("redis", bolt), collector)
    for one in values:
        bolt.execute(make_tuple(one, fields=["word", "n"][: len(one)]))
    bolt.cleanup()
    return collector


@server_needed
@pytest.mark.slow  # starts a server
@pytest.mark.parametrize(
    ("data_type", "value", "found"),
    [
        (RedisDataType.STRING, "3", "3"),
        (RedisDataType.HASH, "4", "4"),
        (RedisDataType.LIST, "5", "5"),
        (RedisDataType.SET, "6", 1),
        (RedisDataType.SORTED_SET, "7.5", 7.5),
        (RedisDataType.HYPER_LOG_LOG, "8", 1),
    ],
)
def test_what_is_stored_is_looked_up(
    config: RedisConfig, data_type: RedisDataType, value: str, found: Any
) -> None:
    """K12: each type, by Storm's commands; the output is anchored, and each tuple acked."""
    mapper = Mapper(data_type, f"whole {data_type.name}")
    key = f"word {data_type.name}"
    stored = given(RedisStoreBolt(config, mapper), (key, value))
    assert (len(stored.acked), stored.emitted) == (1, [])
    looked_up = given(RedisLookupBolt(config, mapper), (key,))
    assert [tuple(one.values) for one in looked_up.emitted] == [(key, found)]
    assert len(looked_up.acked) == 1


class Known(Mapper, RedisFilterMapper):
    """Looks for the field word."""

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))


@server_needed
@pytest.mark.slow
@pytest.mark.parametrize(
    ("data_type", "value"),
    [
        (RedisDataType.STRING, "x"),
        (RedisDataType.HASH, "x"),
        (RedisDataType.SORTED_SET, "0"),
        (RedisDataType.HYPER_LOG_LOG, "x"),
        (RedisDataType.GEO, "13.361389:38.115556"),
        (RedisDataType.SET, "known SET"),
    ],
    ids=lambda one: getattr(one, "name", None),
)
def test_only_what_redis_knows_passes_the_filter(
    config: RedisConfig, data_type: RedisDataType, value: str
) -> None:
    """K12: a score of zero counts as known; a set is named by the additional key."""
    key = f"known {data_type.name}"
    whole = "filter of a set" if data_type is RedisDataType.SET else f"filter {data_type.name}"
    stored = "filter of a set" if data_type is RedisDataType.SET else key
    given(RedisStoreBolt(config, Mapper(data_type, whole)), (stored, value))
    passed = given(RedisFilterBolt(config, Known(data_type, whole)), (key,), ("not there",))
    assert [tuple(one.values) for one in passed.emitted] == [(key,)]
    assert (len(passed.acked), len(passed.failed)) == (2, 0)


@pytest.mark.parametrize("data_type", [RedisDataType.SET, RedisDataType.LIST])
def test_a_filter_says_what_it_needs(data_type: RedisDataType) -> None:
    with pytest.raises(InvalidTopologyError, match=f"type {data_type.name}"):
        RedisFilterBolt(RedisConfig(), Known(data_type))


@server_needed
@pytest.mark.slow
def test_a_place_is_longitude_and_latitude(config: RedisConfig) -> None:
    """K12: the value of a place is LONGITUDE:LATITUDE, as in Storm."""
    mapper = Mapper(RedisDataType.GEO, "places")
    given(RedisStoreBolt(config, mapper), ("here", "13.361389:38.115556"))
    (found,) = given(RedisLookupBolt(config, mapper), ("here",)).emitted
    assert found.values[1][0] == pytest.approx((13.361389, 38.115556), abs=1e-4)


@server_needed
@pytest.mark.slow
def test_an_error_of_redis_fails_the_tuple(config: RedisConfig) -> None:
    """K12: the bolt goes on with the next one."""
    bolt = RedisStoreBolt(config, Mapper(RedisDataType.SORTED_SET, "scores"))
    collector = given(bolt, ("word", "no number"), ("word", "2"))
    assert (len(collector.failed), len(collector.acked)) == (1, 1)


def test_java_s_names_make_the_bolt(tmp_path: Path) -> None:
    """K12, K23: the mapper is the user's; Java's constructor and builder are both taken."""
    (tmp_path / "redis_mappers.py").write_text(
        "from tests.unit.connectors.test_redis_bolt import Mapper as CountMapper\n"
    )
    (tmp_path / "topology.yaml").write_text("""
name: redis
components:
  - {id: pool, className: org.apache.storm.redis.common.config.JedisPoolConfig, constructorArgs: [cache, 6380, 500, "s", 2]}
  - {id: mapper, className: redis_mappers.CountMapper}
spouts:
  - {id: words, className: org.apache.storm.testing.TestWordSpout}
bolts:
  - {id: store, className: org.apache.storm.redis.bolt.RedisStoreBolt, constructorArgs: [ref: pool, ref: mapper]}
streams:
  - {from: words, to: store, grouping: {type: SHUFFLE}}
""")
    assert sorted(flux.load(tmp_path / "topology.yaml").components) == ["store", "words"]
    with pytest.raises(InvalidTopologyError, match="HASH need an additional key"):
        RedisDataTypeDescription(RedisDataType.HASH)


def test_the_password_is_never_shown() -> None:
    """K12: errors and logs show configurations."""
    assert "secret" not in repr(RedisConfig("cache", password="secret"))


def test_a_call_is_not_tried_again_and_other_bytes_than_utf_8_are_read() -> None:
    """Storm's spouts try again: redis-py's own tries would take seconds for each tuple while Redis is down."""
    pytest.importorskip("redis")
    options = RedisConfig().client().connection_pool.connection_kwargs
    assert options["retry"].get_retries() == 0
    assert options["encoding_errors"] == "replace"


@pytest.mark.parametrize(("answer", "found"), [([None], None), ([(13.4, 52.5)], [(13.4, 52.5)])])
def test_a_place_that_redis_does_not_have_is_none(
    monkeypatch: pytest.MonkeyPatch, answer: Any, found: Any
) -> None:
    class Client:
        def geopos(self, whole: str, key: str) -> Any:
            return answer

        def close(self) -> None:
            """See `redis.Redis.close`."""

    monkeypatch.setattr(RedisConfig, "client", lambda self: Client())
    collector = given(RedisLookupBolt(RedisConfig(), Mapper(RedisDataType.GEO, "places")), ("berlin",))
    assert [emitted.values[1] for emitted in collector.emitted] == [found]
