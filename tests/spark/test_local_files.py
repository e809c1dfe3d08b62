"""Files read without Spark are read as Spark reads them."""

from __future__ import annotations

import gzip
from datetime import date
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from stormspark.connectors.local_files import LocalFiles

pytestmark = pytest.mark.spark

SCHEMA = (
    "id long, small short, price decimal(6,2), ok boolean, day date, at timestamp, real double, name string"
)

JSON = r"""\
{"id": 7, "small": 3, "price": 1.5, "ok": true, "day": "2024-02-03", "at": "2024-02-03T04:05:06Z", "real": 1, "name": "x"}
{"id": "7", "small": 70000, "ok": 1, "name": 5}
{"name": {"a":[1,true]}, "price": 12345.5, "real": 1.25, "more": 1, "id": null}
{"at": "2024-02-03 04:05:06.5", "day": "then"}

no json
[1, 2]
{"id": 8, "name": "last"}"""

CSV = r"""\
7,3,1.5,true,2024-02-03,2024-02-03T04:05:06Z,1.5,x
8,70000,much,TRUE,then,then,x,"quoted, and \"more\""
9
10,,,,,,,

11,1,2.345,false,2024-02-03,2024-02-03 04:05:06,-1e3,y,surplus
"""

TEXT = "a\n\nb\r\nc\rd\u2028e\n  f  "


@pytest.mark.parametrize(("format", "text"), [("json", JSON), ("csv", CSV), ("text", TEXT)])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_the_same_rows(spark: SparkSession, tmp_path: Path, format: str, text: str, suffix: str) -> None:
    """Also of what fits no column, is empty, or is no record at all."""
    data = text.encode()
    (tmp_path / f"a.{format}{suffix}").write_bytes(gzip.compress(data) if suffix else data)
    schema = None if format == "text" else SCHEMA
    reader = spark.read.format(format)
    if schema is not None:
        reader = reader.schema(schema)
    table = reader.load(str(tmp_path)).toArrow()
    by_spark = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    here = [row for _, rows in LocalFiles(str(tmp_path), format, schema, {}).poll() for row in rows]
    assert list(map(plain, here)) == list(map(plain, by_spark))


def plain(row: tuple[object, ...]) -> tuple[object, ...]:
    """Times as text: zones of the same name are different classes."""
    return tuple(str(value) if isinstance(value, date) else value for value in row)
