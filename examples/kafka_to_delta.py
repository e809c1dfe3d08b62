"""Counts the clicks on each page in windows of ten seconds, by the time of the clicks, and appends the counts to a Delta table.

    KAFKA_SERVERS=broker:9092 stormspark run examples/kafka_to_delta.py --checkpoint checkpoints/clicks
    stormspark run examples/kafka_to_delta.py:from_files --engine local --trigger available-now
    python examples/kafka_to_delta.py

The last command prints the table. `docs/examples/kafka-to-delta.md` explains it all.
"""

import json
import os
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from stormspark import BasicBolt, Duration, Fields, TopologyBuilder, WindowedBolt
from stormspark.connectors import DeltaBolt, FileSpout, KafkaSpout, KafkaSpoutConfig, SimpleRecordTranslator

TABLE = os.path.abspath(os.environ.get("CLICKS_TABLE", "clicks_per_page"))
COLUMNS = pa.schema([("until", pa.timestamp("us", "UTC")), ("page", pa.string()), ("clicks", pa.int64())])


class Parse(BasicBolt):
    """Reads a click from a line such as {"at": 1795737570663, "user": "ann", "page": "/tea", "cents": 250}."""

    def execute(self, tup, collector):
        try:
            click = json.loads(tup["line"])
            values = (int(click["at"]), str(click["page"]))
        except (ValueError, KeyError, TypeError) as error:
            print(f"left out, because it is no click ({error!r}): {tup['line']!r}")
            return  # the line counts as processed; with FailedException it would come again, and become a dead letter
        collector.emit(values)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("at", "page"))


class CountClicks(WindowedBolt):
    """Emits how many clicks each page had in a window. The fields grouping sends all clicks of a page to one task."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        until = datetime.fromtimestamp(window.end_timestamp / 1000, UTC)
        for page, clicks in sorted(Counter(click["page"] for click in window).items()):
            self.collector.emit((until, page, clicks))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("until", "page", "clicks"))


def topology(clicks):
    windows = CountClicks().with_tumbling_window(Duration.seconds(10)).with_timestamp_field("at")
    # A window waits five seconds of the clicks' time for clicks that come out of order.
    windows = windows.with_lag(Duration.seconds(5))
    builder = TopologyBuilder()
    builder.set_spout("clicks", clicks)
    builder.set_bolt("parse", Parse(), 2).shuffle_grouping("clicks")
    builder.set_bolt("count", windows, 2).fields_grouping("parse", Fields("page"))
    builder.set_bolt("table", DeltaBolt(TABLE, schema=COLUMNS)).shuffle_grouping("count")
    # Each click counts once, and each row is in the table once, whatever is killed and whenever.
    return builder.create_topology("kafka-to-delta", {"stormspark.exactly.once": True})


def build():
    values = SimpleRecordTranslator(lambda record: (record.value,), ["line"])
    servers = os.environ.get("KAFKA_SERVERS", "localhost:9092")
    config = KafkaSpoutConfig(servers, ["clicks"], group_id="clicks-per-page", record_translator=values)
    return topology(KafkaSpout(config))


def from_files():
    return topology(FileSpout(Path(__file__).parent / "data" / "clicks"))


if __name__ == "__main__":
    from deltalake import DeltaTable, QueryBuilder

    query = "SELECT until, page, clicks FROM clicks ORDER BY until, page"
    for row in pa.table(QueryBuilder().register("clicks", DeltaTable(TABLE)).execute(query)).to_pylist():
        print(f"until {row['until']:%H:%M:%S}  {row['page']:<8} {row['clicks']}")
