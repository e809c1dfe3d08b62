"""The same word count in bare PySpark: what somebody would write who has no Storm topology. It acks nothing.

    python -m benchmarks.bare_pyspark [--form python] [--workers 2] [--seconds 20]

A source that makes as many rows as it is asked for, the sentences of `benchmarks.data` by the row's number, split into words, and
``groupBy("word").count()`` over one shuffle, to Spark's ``noop`` sink. ``--form native`` splits in SQL; ``--form python`` in a
`mapInArrow` function, as a team would whose code is Python. Prints one JSON line: words a second over the batches that end in the
window, as Spark's own progress counts rows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from benchmarks.cpu import CpuMeter
from benchmarks.data import sentences
from stormspark.spark import local_session

__all__ = ["FORMS", "run"]

FORMS = ("python", "native")
#: Sentences a batch: so many that what a batch costs by itself counts for little.
ROWS_A_BATCH = 500_000


def split(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Sentences -> words, in Arrow."""
    for batch in batches:
        yield pa.record_batch([pc.list_flatten(pc.split_pattern(batch.column(0), " "))], ["word"])


def word_counts(session: SparkSession, form: str, workers: int, rows: int) -> DataFrame:
    """The streaming query."""
    source = session.readStream.format("rate-micro-batch")
    numbers = source.option("rowsPerBatch", rows).option("numPartitions", workers).load()
    every = sf.array(*map(sf.lit, sentences()))
    place = (sf.col("value") * 7919 % len(sentences()) + 1).cast("int")
    lines = numbers.select(sf.element_at(every, place).alias("sentence"))
    if form == "native":
        words = lines.select(sf.explode(sf.split("sentence", " ")).alias("word"))
    else:
        words = lines.mapInArrow(split, "word string")
    return words.groupBy("word").count()


def run(
    spark: SparkSession, form: str, workers: int, seconds: float, warmup: float, rows: int = ROWS_A_BATCH
) -> dict[str, Any]:
    """Measure one form once."""
    session = spark.newSession()  # with Spark's own settings
    session.conf.set("spark.sql.shuffle.partitions", str(workers))
    folder = tempfile.mkdtemp(prefix="bare-pyspark-")
    writer = word_counts(session, form, workers, rows).writeStream.outputMode("update").format("noop")
    meter = CpuMeter()
    query = writer.option("checkpointLocation", folder).trigger(processingTime="0 seconds").start()
    try:
        while query.lastProgress is None or query.lastProgress["batchId"] < 2:
            _check(query)
            time.sleep(0.1)
        time.sleep(warmup)
        first, cpu, began = _ended(query), meter.read(), time.perf_counter()
        time.sleep(seconds)
        last, wall = _ended(query), time.perf_counter() - began
        after = meter.read()
    finally:
        query.stop()
        shutil.rmtree(folder, ignore_errors=True)
    used = {kind: after[kind] - cpu[kind] for kind in after}
    batches = last - first
    per_sentence = sum(len(line.split(" ")) for line in sentences()) / len(sentences())
    words = batches * rows * per_sentence
    return {
        "engine": f"pyspark-{form}",
        "case": "wordcount_unacked",
        "words_per_s": round(words / wall),
        "sentences_per_s": round(batches * rows / wall),
        "cpu_s": round(sum(used.values()), 2),
        "cpu_jvm_s": round(used["jvm"], 2),
        "cpu_python_s": round(used["python"], 2),
        "words_per_cpu_s": round(words / sum(used.values())),
        "wall_s": round(wall, 2),
        "workers": workers,
        "batches": batches,
        "batch_ms_mean": round(wall / batches * 1000, 1),
    }


def _ended(query: Any) -> int:
    """Wait for the end of a batch; return its number."""
    before = query.lastProgress["batchId"]
    while (now := query.lastProgress["batchId"]) == before:
        _check(query)
        time.sleep(0.005)
    return int(now)


def _check(query: Any) -> None:
    if not query.isActive:
        msg = f"the query ended: {query.exception()}"
        raise SystemExit(msg)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--form", choices=FORMS, default="python")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--warmup", type=float, default=10)
    parser.add_argument("--rows", type=int, default=ROWS_A_BATCH, help="sentences a batch")
    args = parser.parse_args()
    spark = local_session(args.workers)
    print(json.dumps(run(spark, args.form, args.workers, args.seconds, args.warmup, args.rows)))


if __name__ == "__main__":
    main()
