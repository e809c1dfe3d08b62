"""All that depends on the version of Spark. What a version lacks is done in another way here.

    what                                             since     in earlier versions
    ``DataFrame.repartitionById``                    4.1       keys that Spark's hash partitioner sends to the right partitions
    ``arrow_udf``                                    4.1       a column that ``mapInArrow`` adds
    Unix sockets between the JVM and Python          4.1       loopback TCP, so each stage takes some 50 ms more
    files of a checkpoint in a package of their own  4.1       the same classes in the package above it
    the start of a batch is told to Python sources   4.2       the end of the last batch, at first from the offset log
    Python sources and ``Trigger.AvailableNow``      4.2       sources of ranges stop by themselves, under an ordinary trigger

Runtimes of vendors have features of later versions. So features are looked for, and versions are compared only where no session
runs yet. docs/versions.md is about the same for users.
"""

from __future__ import annotations

import ast
import json
import re
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from importlib.util import find_spec
from typing import Any

import pyarrow as pa
import pyspark
from py4j.java_gateway import JavaClass, JavaObject
from py4j.protocol import Py4JError
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf
from pyspark.sql.datasource import DataSourceStreamReader
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.types import DataType, IntegerType, StructField, StructType

from stormspark.doctor import LEAST_SPARK
from stormspark.errors import UnsupportedEnvironmentError

try:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, SupportsTriggerAvailableNow
except ImportError:  # before Spark 4.2
    TELLS_STARTS = False

    class ReadLimit:  # type: ignore[no-redef]
        """Stands for the class that Spark lacks."""

    class ReadAllAvailable(ReadLimit):  # type: ignore[no-redef]
        """Stands for the class that Spark lacks."""

    class SupportsTriggerAvailableNow(ABC):  # type: ignore[no-redef]  # noqa: B024
        """Stands for the class that Spark lacks."""
else:
    #: Whether Spark tells Python sources where a batch starts. Then Python sources also know ``Trigger.AvailableNow``.
    TELLS_STARTS = True

try:
    from pyspark.sql.pandas.functions import arrow_udf
except ImportError:  # before Spark 4.1
    arrow_udf = None  # type: ignore[assignment]

__all__ = [
    "HAS_UNIX_SOCKETS",
    "TELLS_STARTS",
    "ArrowFunction",
    "LimitedReader",
    "ReadAllAvailable",
    "ReadLimit",
    "SupportsTriggerAvailableNow",
    "bare_manager",
    "checkpoint_managers",
    "column_named",
    "keep_ticking",
    "keys_of_partitions",
    "number_of_streams",
    "offset_in_progress",
    "release",
    "repartition_by_function",
    "repartition_by_id",
    "require_delta",
    "require_spark",
    "unused_name",
    "with_arrow_column",
]


def release(version: str = pyspark.__version__) -> tuple[int, int]:
    """Return the first two numbers of a version; by default of PySpark's.

    >>> release("4.1.4"), release("4.0.0.dev1"), release("4.3-SNAPSHOT")
    ((4, 1), (4, 0), (4, 3))
    """
    numbers = [int(number) for number in re.findall(r"\d+", version)[:2]]
    return (numbers[0], numbers[1]) if len(numbers) > 1 else (0, 0)


def require_spark(version: str) -> None:
    """Raise `UnsupportedEnvironmentError` if topologies don't run on this version of Spark."""
    if release(version) < LEAST_SPARK:
        least = ".".join(map(str, LEAST_SPARK))
        msg = f"stormspark needs Spark {least} or later, but this session has Spark {version}: see docs/versions.md"
        raise UnsupportedEnvironmentError(msg)


#: The newest version of Spark for which there is a release of Delta, as far as this stormspark knows.
_NEWEST_WITH_DELTA = (4, 2)


def require_delta(why: str, version: str = pyspark.__version__) -> None:
    """Raise `UnsupportedEnvironmentError` if no release of Delta is for this version of Spark. ``why`` says what needs Delta.

    If Delta's Python package is installed, whoever has installed it knows better.
    """
    if release(version) > _NEWEST_WITH_DELTA and not find_spec("delta"):
        newest = ".".join(map(str, _NEWEST_WITH_DELTA))
        msg = (
            f"{why} needs Delta, and no known release of Delta is for Spark {version}: use Spark {newest}, or install the "
            f"delta-spark that is for it (docs/versions.md)"
        )
        raise UnsupportedEnvironmentError(msg)


#: Whether Spark's JVM and its Python processes can talk through Unix sockets.
HAS_UNIX_SOCKETS = release() >= (4, 1)


# --- partitions -----------------------------------------------------------------------------------------------------------


def repartition_by_id(df: DataFrame, partitions: int, column: str | Column) -> DataFrame:
    """Send each row to the partition whose number ``column`` has, as ``DataFrame.repartitionById`` does.

    As there, null stands for 0, and other numbers are taken modulo ``partitions``.
    """
    if hasattr(df, "repartitionById"):
        return df.repartitionById(partitions, column)
    number = sf.col(column) if isinstance(column, str) else column
    place = sf.pmod(sf.coalesce(number.cast("int"), sf.lit(0)), sf.lit(partitions)) + 1
    keys = sf.array(*map(sf.lit, keys_of_partitions(partitions)))
    return df.repartition(partitions, sf.element_at(keys, place))


def repartition_by_function(
    df: DataFrame, partitions: int, fields: Sequence[str], function: Callable[..., pa.Array]
) -> DataFrame:
    """Send each row to the partition whose number the function computes from the columns ``fields`` of a record batch."""
    if arrow_udf is not None and hasattr(df, "repartitionById"):
        # The function is variadic, so pyspark has no overload for it. Spark passes a whole record batch of each column.
        number: Any = arrow_udf(function, "int")  # type: ignore[call-overload]
        return df.repartitionById(partitions, number(*(column_named(df, field) for field in fields)))

    def numbers(batches: Iterator[Sequence[pa.Array]]) -> Iterator[pa.Array]:
        return (function(*columns) for columns in batches)

    name = unused_name(df, "partition")
    numbered = with_arrow_column(df, name, IntegerType(), fields, numbers)
    return repartition_by_id(numbered, partitions, name).drop(name)


def column_named(df: DataFrame, name: str) -> Column:
    """Return the column of this name. A dot in the name does not make a path."""
    return df["`" + name.replace("`", "``") + "`"]


def unused_name(df: DataFrame, name: str) -> str:
    """Return a name that no column has, not even in other case: ``name``, with underscores behind it if need be."""
    taken = {column.lower() for column in df.columns}
    while name in taken:
        name += "_"
    return name


@lru_cache(maxsize=64)
def keys_of_partitions(partitions: int) -> tuple[int, ...]:
    """Return one int per partition that Spark's hash partitioner sends there.

    >>> keys_of_partitions(4)
    (12, 6, 2, 0)
    """
    found: dict[int, int] = {}
    key = 0
    while len(found) < partitions:
        found.setdefault(_hash_of_int(key) % partitions, key)
        key += 1
    return tuple(found[partition] for partition in range(partitions))


#: Gets the columns of one record batch after another, and yields one array for each.
ArrowFunction = Callable[[Iterator[Sequence[pa.Array]]], Iterator[pa.Array]]


def with_arrow_column(
    df: DataFrame, name: str, kind: DataType, fields: Sequence[str], function: ArrowFunction
) -> DataFrame:
    """Add a column of the type ``kind`` that the function computes from the columns ``fields``, once for each partition."""
    if arrow_udf is not None:

        def of_structs(batches: Iterator[pa.Array]) -> Iterator[pa.Array]:
            return function(rows.flatten() for rows in batches)

        # With a struct the function gets one column, however many fields there are. It is declared not deterministic, so that
        # Spark computes it once per row, in the row's own partition.
        row = sf.struct(*(column_named(df, field) for field in fields))
        compute: Any = arrow_udf(of_structs, kind)  # type: ignore[call-overload]  # it is given a whole partition
        return df.select("*", compute.asNondeterministic()(row).alias(name))
    places = [df.columns.index(field) for field in fields]
    schema = StructType([*df.schema.fields, StructField(name, kind)])

    def of_batches(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        passed: deque[pa.RecordBatch] = deque()

        def columns() -> Iterator[Sequence[pa.Array]]:
            for batch in batches:
                passed.append(batch)
                yield [batch.column(place) for place in places]

        for added in function(columns()):
            batch = passed.popleft()
            yield pa.RecordBatch.from_arrays([*batch.columns, added], names=schema.names)

    # `mapInArrow` does not find columns with a dot in their names.
    plain = df.toDF(*(f"column{number}" for number in range(len(df.columns))))
    return plain.mapInArrow(of_batches, schema)


_32_BITS = 0xFFFFFFFF
#: The seed of Spark's hash partitioner.
_SEED = 42


def _hash_of_int(value: int) -> int:
    """Return the Murmur3 hash of an int, as Spark's SQL function ``hash`` does.

    >>> _hash_of_int(0), _hash_of_int(1)
    (933211791, -559580957)
    """
    mixed = value * 0xCC9E2D51 & _32_BITS
    mixed = (mixed << 15 | mixed >> 17) & _32_BITS
    hashed = _SEED ^ (mixed * 0x1B873593 & _32_BITS)
    hashed = (hashed << 13 | hashed >> 19) & _32_BITS
    hashed = (hashed * 5 + 0xE6546B64) & _32_BITS
    hashed ^= 4  # the number of bytes
    hashed = (hashed ^ hashed >> 16) * 0x85EBCA6B & _32_BITS
    hashed = (hashed ^ hashed >> 13) * 0xC2B2AE35 & _32_BITS
    hashed ^= hashed >> 16
    return hashed - (1 << 32) if hashed >> 31 else hashed


# --- files of a checkpoint ------------------------------------------------------------------------------------------------

_STREAMING = "org.apache.spark.sql.execution.streaming"


def bare_manager(version: str = pyspark.__version__) -> str:
    """Return the name of the class that writes a checkpoint's files through Hadoop's older interface for file systems.

    >>> bare_manager("4.0.1")
    'org.apache.spark.sql.execution.streaming.FileSystemBasedCheckpointFileManager'
    """
    package = f"{_STREAMING}.checkpointing" if release(version) >= (4, 1) else _STREAMING
    return f"{package}.FileSystemBasedCheckpointFileManager"


def checkpoint_managers(jvm: Any) -> Any:
    """Return Spark's object that finds the class for the files of a checkpoint."""
    streaming = jvm.org.apache.spark.sql.execution.streaming
    older = streaming.CheckpointFileManager
    return older if isinstance(older, JavaClass) else streaming.checkpointing.CheckpointFileManager


# --- Python sources -------------------------------------------------------------------------------------------------------


class LimitedReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """A reader that knows where a batch starts when it decides where the batch ends.

    Before Spark 4.2 it knows the start as long as it lives, because it has decided on it. ``planned`` is for its first batch: the
    end of the last batch that an earlier run of the query has planned (`stormspark.spark.checkpoint_folder.planned_offsets`).
    """

    _planned: Mapping[str, Any] | None = None

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's names
        """Return the offset before the first batch."""
        return {}

    @abstractmethod
    def next_offset(self, start: dict[str, Any]) -> dict[str, Any]:
        """Return the end of the batch that starts at ``start``."""

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        """Leave limits to `next_offset`."""
        return ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        """Read nothing that appears from now on, if the reader can know it."""

    def latestOffset(  # noqa: N802
        self, start: dict[str, Any] | None = None, limit: ReadLimit | None = None
    ) -> dict[str, Any]:
        """Return the end of the next batch. Spark gives no arguments before 4.2."""
        if start is None:
            start = self.initialOffset() if self._planned is None else dict(self._planned)
        end = self.next_offset(start)
        self._planned = end
        return end


def offset_in_progress(text: str) -> Any:
    """Return an offset that a query's progress has as text. Before Spark 4.2 this is Python's text, and not JSON.

    >>> [offset_in_progress(text) for text in ('{"commit": 7}', "{'commit': 7}", "null", "None")]
    [{'commit': 7}, {'commit': 7}, None, None]
    """
    try:
        return json.loads(text)
    except json.JSONDecodeError:
        return ast.literal_eval(text)


def number_of_streams(rows: DataFrame) -> int:
    """Return how many offsets Spark's offset log has for a streaming DataFrame.

    That is one for each place where the plan reads a stream, also where two places read the same one. A reference to a ``WITH``
    of SQL is a leaf of the plan, too, but Spark reads the stream where it is defined.
    """
    leaves: JavaObject = rows._jdf.queryExecution().analyzed().collectLeaves()
    found = (leaves.apply(number) for number in range(leaves.size()))
    return sum(leaf.isStreaming() and leaf.getClass().getSimpleName() != "CTERelationRef" for leaf in found)


def keep_ticking(query: StreamingQuery) -> None:
    """Let ``rate-micro-batch`` give rows to all further batches of a query with ``Trigger.AvailableNow``.

    Spark has told this source to end with the query's first batch. Call this on the query's thread in that batch, before Spark
    plans the next one. Raises `LookupError` if Spark has no such source.
    """
    try:
        sources: JavaObject = query._jsq.streamingQuery().sources()
        for number in range(sources.size()):
            source = sources.apply(number)
            if source.getClass().getSimpleName() == "RatePerMicroBatchStream":
                field = source.getClass().getDeclaredField("isTriggerAvailableNow")
                field.setAccessible(True)
                field.set(source, False)
                return
    except Py4JError as error:
        msg = f"this version of Spark does not let its source of ticks go on: {str(error).splitlines()[-1]}"
        raise LookupError(msg) from error
    msg = "this version of Spark has no source of ticks that can go on"
    raise LookupError(msg)
