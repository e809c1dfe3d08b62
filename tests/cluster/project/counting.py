"""Numbers from 0 to 279, a few each batch: what becomes of each can be counted.

``sent`` has each number sent to a server at least once; ``counted`` has each counted exactly once
in its state, after it was sent; ``windows`` has the sums of ten numbers each counted there, and windows are state, too.
"""

from parts import Count, Send, Sum

from stormspark import Count as Tuples
from stormspark import Fields, TopologyBuilder
from stormspark.connectors import DataFrameSpout

NUMBERS = 280
A_BATCH = 40


def numbers(spark):
    source = (
        spark.readStream.format("rate-micro-batch").option("rowsPerBatch", A_BATCH).option("numPartitions", 3)
    )
    return source.load().where(f"value < {NUMBERS}").select("value")


def sent():
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(numbers, ["value"]), parallelism=3)
    builder.set_bolt("send", Send(), 3).fields_grouping("numbers", Fields("value"))
    return builder.create_topology("sent", {"topology.workers": 3})


def counted():
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(numbers, ["value"]), parallelism=3)
    builder.set_bolt("send", Send(), 3).fields_grouping("numbers", Fields("value"))
    builder.set_bolt("count", Count(), 3).fields_grouping("send", Fields("value"))
    return builder.create_topology("counted", {"topology.workers": 3})


def windows():
    builder = TopologyBuilder()
    builder.set_spout("numbers", DataFrameSpout(numbers, ["value"]), parallelism=3)
    builder.set_bolt("send", Send(), 3).fields_grouping("numbers", Fields("value"))
    builder.set_bolt("ten", Sum().with_tumbling_window(Tuples(10)), 1).global_grouping("send")
    builder.set_bolt("count", Count(), 3).fields_grouping("ten", Fields("value"))
    return builder.create_topology("windows", {"topology.workers": 3})
