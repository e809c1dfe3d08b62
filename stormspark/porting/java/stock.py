"""Lists Storm's and Heron's base classes and stock components, each with the stormspark class that replaces it, if any."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, Literal, NamedTuple

from stormspark.porting.java.values import Call, Instance, Items, Value, field_names, text

__all__ = [
    "BASES",
    "STOCK",
    "Base",
    "Stock",
    "base_of",
    "fits",
    "stock_of",
    "transactional_base",
    "translated_streams",
]

_Streams = dict[str, tuple[str, ...]]

#: The kinds of stormspark's component classes. The kind decides which methods a skeleton has.
Style = Literal[
    "spout",
    "bolt",
    "basic",
    "windowed",
    "tick",
    "stateful",
    "stateful-windowed",
    "shell-spout",
    "shell-bolt",
    "batch",
    "committer",
    "tx-spout",
    "tx-partitioned",
    "tx-opaque",
]


class Base(NamedTuple):
    """The replacement for a base class in Java. ``ours`` is stormspark's base class. ``remark`` is the difference, if any."""

    style: Style
    ours: str
    remark: str = ""


_SPOUT = Base("spout", "stormspark.Spout")
_BOLT = Base("bolt", "stormspark.Bolt")
_BASIC = Base("basic", "stormspark.BasicBolt")
_WINDOWED = Base("windowed", "stormspark.WindowedBolt")
_STATEFUL_WINDOWED = Base(
    "stateful-windowed",
    "stormspark.StatefulWindowedBolt",
    "its windows are state, as all windows are if batches are transactions, so it needs no message id field",  # C41
)
_SHELL = "its child process runs unchanged, over Storm's multilang protocol"

#: For each class or interface of Storm's and Heron's libraries, stormspark's base class.
BASES: Final[dict[str, Base]] = {
    "BaseRichSpout": _SPOUT,
    "IRichSpout": _SPOUT,
    "ISpout": _SPOUT,
    "ShellSpout": Base("shell-spout", "stormspark.multilang.ShellSpout", _SHELL),
    "FluxShellSpout": Base("shell-spout", "stormspark.multilang.ShellSpout", _SHELL),
    "ShellBolt": Base("shell-bolt", "stormspark.multilang.ShellBolt", _SHELL),
    "FluxShellBolt": Base("shell-bolt", "stormspark.multilang.ShellBolt", _SHELL),
    "BaseTickTupleAwareRichBolt": Base("tick", "stormspark.TickTupleAwareBolt"),
    "BaseStatefulWindowedBolt": _STATEFUL_WINDOWED,
    "IStatefulWindowedBolt": _STATEFUL_WINDOWED,
    "BaseWindowedBolt": _WINDOWED,
    "IWindowedBolt": _WINDOWED,
    "BaseStatefulBolt": Base("stateful", "stormspark.StatefulBolt"),
    "IStatefulBolt": Base("stateful", "stormspark.StatefulBolt"),
    "BaseTransactionalBolt": Base("batch", "stormspark.transactional.BatchBolt"),
    "BaseBatchBolt": Base("batch", "stormspark.transactional.BatchBolt"),
    "IBatchBolt": Base("batch", "stormspark.transactional.BatchBolt"),
    "BaseTransactionalSpout": Base("tx-spout", "stormspark.transactional.TransactionalSpout"),
    "ITransactionalSpout": Base("tx-spout", "stormspark.transactional.TransactionalSpout"),
    "BasePartitionedTransactionalSpout": Base(
        "tx-partitioned", "stormspark.transactional.PartitionedTransactionalSpout"
    ),
    "IPartitionedTransactionalSpout": Base(
        "tx-partitioned", "stormspark.transactional.PartitionedTransactionalSpout"
    ),
    "BaseOpaquePartitionedTransactionalSpout": Base(
        "tx-opaque", "stormspark.transactional.OpaquePartitionedTransactionalSpout"
    ),
    "IOpaquePartitionedTransactionalSpout": Base(
        "tx-opaque", "stormspark.transactional.OpaquePartitionedTransactionalSpout"
    ),
    "BaseBasicBolt": _BASIC,
    "IBasicBolt": _BASIC,
    "BaseRichBolt": _BOLT,
    "IRichBolt": _BOLT,
    "IBolt": _BOLT,
    "BaseComponent": _BOLT,
}


def base_of(types: Iterable[str]) -> Base | None:
    """Return stormspark's base class for a Java class, given the names of what that class extends or implements.

    The first known name counts. But ``BaseComponent`` counts only if no other name is known, because spouts extend it too.

    >>> base_of(["BaseStatefulWindowedBolt"]).style
    'stateful-windowed'
    >>> base_of(["BaseComponent", "IRichSpout"]).style
    'spout'
    >>> base_of(["Serializable"]) is None
    True
    """
    known = [one for one in types if one in BASES]
    return BASES[min(known, key=_GENERAL.__contains__)] if known else None


#: The base classes that say least.
_GENERAL: Final = {"BaseComponent"}


def fits(base: Base, kind: Literal["spout", "bolt"], *, transactional: bool) -> bool:
    """Return whether a topology can have a class of this base as a spout or bolt.

    The spout of a transactional topology is of a transactional kind, and its bolts are batch bolts or basic bolts (G1).

    >>> fits(BASES["BaseRichSpout"], "spout", transactional=True), fits(BASES["BaseRichSpout"], "bolt", transactional=False)
    (False, False)
    """
    if kind == "spout":
        return base.style.startswith("tx-") if transactional else base.style in ("spout", "shell-spout")
    if transactional:
        return base.style in ("batch", "committer", "basic")
    return base.style not in ("spout", "shell-spout") and not base.style.startswith("tx-")


def transactional_base(name: str, kind: Literal["spout", "bolt"]) -> Base:
    """Return the base class for a component of a transactional topology of which nothing but its name is known.

    Storm's own transactional spouts, in memory or for Kafka, have partitions. So do those of others that say so in their names.

    >>> transactional_base("OpaqueTransactionalKafkaSpout", "spout").style, transactional_base("Feed", "spout").style
    ('tx-opaque', 'tx-spout')
    """
    if kind == "bolt":
        return BASES["IBatchBolt"]
    if "Opaque" in name:
        return BASES["IOpaquePartitionedTransactionalSpout"]
    if name == "MemoryTransactionalSpout" or "Partition" in name or "Kafka" in name:
        return BASES["IPartitionedTransactionalSpout"]
    return BASES["ITransactionalSpout"]


class Stock(NamedTuple):
    """A stock component of Storm. ``ours`` is the stormspark class that replaces it; empty if there is none.

    ``streams`` returns the streams of an instance, or None if they are not known.
    """

    kind: Literal["spout", "bolt"]
    ours: str
    streams: Callable[[Instance], _Streams | None]
    remark: str = ""


def _emits(*fields: str) -> Callable[[Instance], _Streams]:
    return lambda made: {"default": fields} if fields else {}


def _unknown(made: Instance) -> None:
    return None


def _given_fields(position: int) -> Callable[[Instance], _Streams | None]:
    """Return a function that finds the streams of a component whose constructor gets the fields as its argument ``position``."""

    def streams(made: Instance) -> _Streams | None:
        names = field_names(made.arguments[position]) if len(made.arguments) > position else None
        return None if names is None else {"default": names}

    return streams


def _shell_fields(made: Instance) -> _Streams | None:
    """Return the streams that ``new FluxShellBolt(command, fields)`` and later calls on this object declare."""
    streams: _Streams = {}
    if len(made.arguments) == 2:
        names = field_names(made.arguments[1])
        if names is None:
            return None
        streams["default"] = names
    for call in made.calls:
        if call.name == "setDefaultStream" and call.arguments:
            stream: str | None = "default"
        elif call.name == "setNamedStream" and len(call.arguments) == 2:
            stream = text(call.arguments[0])
        else:
            continue
        names = field_names(call.arguments[-1])
        if stream is None or names is None:
            return None
        streams[stream] = names
    return streams


_KAFKA_FIELDS: Final = ("topic", "partition", "offset", "key", "value")


def _kafka_streams(made: Instance) -> _Streams | None:
    config = made.arguments[0] if made.arguments else None
    if not isinstance(config, Instance):
        return None
    translators = [one for one in config.calls if one.name == "setRecordTranslator"]
    return translated_streams(translators[-1]) if translators else {"default": _KAFKA_FIELDS}


def translated_streams(call: Call) -> _Streams | None:
    """Return the streams that a call of ``setRecordTranslator`` declares.

    The arguments of the call are a function and its fields, or a translator object.
    """
    given: list[tuple[Value, ...]] = [call.arguments]
    first = call.arguments[0] if call.arguments else None
    if len(call.arguments) == 1 and isinstance(first, Instance):
        if first.java_class is not None or "Translator" not in first.type:
            return None
        given = [first.arguments, *(one.arguments[1:] for one in first.calls if one.name == "forTopic")]
    streams: _Streams = {}
    for arguments in given:
        names = [one for one in arguments if field_names(one) is not None and not isinstance(one, Items)]
        if not names:
            return None
        stream = next((string for one in arguments if (string := text(one)) is not None), "default")
        streams[stream] = field_names(names[0]) or ()
    return streams


_TESTING: Final = "stormspark.testing"
_CONNECTORS: Final = "stormspark.connectors"
_NOT_THERE: Final = "stormspark has no such component yet"
_NO_DRPC: Final = "stormspark has no DRPC yet"

#: The stock components by their simple names. If the project has a class with such a name, that class is no stock component.
STOCK: Final[dict[str, Stock]] = {
    "TestWordSpout": Stock("spout", f"{_TESTING}.TestWordSpout", _emits("word")),
    "TestWordCounter": Stock("bolt", f"{_TESTING}.TestWordCounter", _emits("word", "count")),
    "TestGlobalCount": Stock("bolt", f"{_TESTING}.TestGlobalCount", _emits("global-count")),
    "TestAggregatesCounter": Stock("bolt", f"{_TESTING}.TestAggregatesCounter", _emits("agg-global")),
    "FeederSpout": Stock("spout", f"{_TESTING}.FeederSpout", _given_fields(0)),
    "IdentityBolt": Stock("bolt", f"{_TESTING}.IdentityBolt", _given_fields(0)),
    "KafkaSpout": Stock(
        "spout", f"{_CONNECTORS}.KafkaSpout", _kafka_streams, "Spark plans the batches (docs/kafka.md)"
    ),
    "KafkaBolt": Stock("bolt", f"{_CONNECTORS}.KafkaBolt", _emits(), "see docs/sinks.md"),
    "HdfsBolt": Stock(
        "bolt",
        f"{_CONNECTORS}.FileBolt",
        _emits(),
        "a file appears when it is complete (docs/sinks.md)",  # K10
    ),
    "FluxShellBolt": Stock("bolt", "stormspark.multilang.ShellBolt", _shell_fields, _SHELL),
    "FluxShellSpout": Stock("spout", "stormspark.multilang.ShellSpout", _shell_fields, _SHELL),
    "DRPCSpout": Stock("spout", "", _emits("args", "return-info"), _NO_DRPC),
    "ReturnResults": Stock("bolt", "", _emits(), _NO_DRPC),
    "JoinBolt": Stock("bolt", "", _unknown, "write the join as a WindowedBolt (docs/windows.md)"),
    "HdfsSpout": Stock("spout", "", _unknown, f"see {_CONNECTORS}.FileSpout (docs/sources.md)"),
    "SequenceFileBolt": Stock(
        "bolt", "", _emits(), f"see {_CONNECTORS}.FileBolt with a record format of your own"
    ),
    "AvroGenericRecordBolt": Stock(
        "bolt", "", _emits(), f"see {_CONNECTORS}.FileBolt with a record format of your own"
    ),
    "JdbcInsertBolt": Stock(
        "bolt", "", _emits(), f"see {_CONNECTORS}.jdbc_bolt.JdbcInsertBolt (docs/sinks.md)"
    ),
    "JdbcLookupBolt": Stock(
        "bolt", "", _unknown, f"see {_CONNECTORS}.jdbc_bolt.JdbcLookupBolt (docs/sinks.md)"
    ),
    "RedisStoreBolt": Stock(
        "bolt", "", _emits(), f"see {_CONNECTORS}.redis_bolt.RedisStoreBolt (docs/sinks.md)"
    ),
    "RedisLookupBolt": Stock(
        "bolt", "", _unknown, f"see {_CONNECTORS}.redis_bolt.RedisLookupBolt (docs/sinks.md)"
    ),
    "RedisFilterBolt": Stock(
        "bolt", "", _unknown, f"see {_CONNECTORS}.redis_bolt.RedisFilterBolt (docs/sinks.md)"
    ),
    "JmsSpout": Stock("spout", "", _unknown, _NOT_THERE),
    "JmsBolt": Stock("bolt", "", _emits(), _NOT_THERE),
}


def stock_of(made: Instance) -> Stock | None:
    """Return the stock component of which ``made`` is an instance; None if ``made`` is another object."""
    return STOCK.get(made.simple_type) if made.java_class is None else None
