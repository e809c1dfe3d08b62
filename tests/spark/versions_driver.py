"""A driver that another one with another Spark goes on after. Arguments: folder, Kafka's address. `tools.upgrade` starts it.

numbers (Kafka), lines (files that Spark reads) -> count (how many it has had, in its state) -> a Delta table

It ends when ``done`` is there and all is worked off.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from stormspark import Fields, OutputCollector, OutputFieldsDeclarer, TopologyBuilder, TopologyContext, Tuple
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.connectors import DeltaBolt, FileSpout, KafkaSpout, KafkaSpoutConfig
from stormspark.spark import local_session, submit
from tests.end_when_done import end_when_done

_SCHEMA = pa.schema(
    [("source", pa.string()), ("number", pa.int64()), ("task", pa.int64()), ("nth", pa.int64())]
)


class Count(StatefulBolt[KeyValueState[str, int]]):
    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        self.collector, self.task = collector, context.this_task_index

    def init_state(self, state: KeyValueState[str, int]) -> None:
        self.state = state

    def execute(self, tup: Tuple) -> None:
        source = tup.source_component
        number = int(tup["line" if source == "lines" else "value"])
        nth = self.state["count"] = self.state.get("count", 0) + 1
        self.collector.emit((source, number, self.task, nth), anchors=[tup])
        self.collector.ack(tup)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields(*_SCHEMA.names))


folder, servers = Path(sys.argv[1]), sys.argv[2]
builder = TopologyBuilder()
builder.set_spout("lines", FileSpout(folder / "lines"))
builder.set_spout("numbers", KafkaSpout(KafkaSpoutConfig(servers, "numbers", max_offsets_per_trigger=100)), 2)
counting = builder.set_bolt("count", Count(), 2)
counting.fields_grouping("lines", Fields("line")).fields_grouping("numbers", Fields("value"))
builder.set_bolt("table", DeltaBolt(folder / "table", schema=_SCHEMA), 2).shuffle_grouping("count")
conf = {"topology.workers": 2, "stormspark.log.dir": str(folder / "logs"), "stormspark.batch.target.ms": 300}
spark = local_session(2, {})
print("Spark", spark.version, flush=True)
running = submit(builder.create_topology("versions"), spark, conf=conf, checkpoint=folder / "checkpoint")
end_when_done(running, folder)
