"""Adds up what each customer has spent, exactly once, and shows the totals in SQL.

    stormspark run examples/exactly_once_totals.py --trigger available-now --checkpoint checkpoints/totals
    stormspark state checkpoints/totals totals
    python examples/exactly_once_totals.py checkpoints/totals

The last command shows the state in Spark SQL. The topology reads examples/data/orders, or the folder in the variable ORDERS.
`docs/examples/exactly-once-totals.md` explains it all.
"""

import os
import sys
from pathlib import Path

from stormspark import BasicBolt, Fields, StatefulBolt, TopologyBuilder, state
from stormspark.connectors import FileSpout

ORDERS = os.environ.get("ORDERS") or Path(__file__).parent / "data" / "orders"
QUERY = "SELECT key AS customer, value / 100 AS spent FROM totals ORDER BY spent DESC, customer"


class Totals(StatefulBolt):
    """Keeps a total for each customer. All of a batch's changes are committed together, or none."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def init_state(self, state):
        self.totals = state  # a map that outlives workers and drivers, and may be larger than memory

    def execute(self, order):
        total = self.totals.get(order["customer"], 0) + order["cents"]
        self.totals[order["customer"]] = total
        self.collector.emit((order["customer"], total), anchors=[order])
        self.collector.ack(order)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("customer", "total"))


class Report(BasicBolt):
    """Prints each total as it changes. What is printed is not undone if a batch runs again, but state is."""

    def execute(self, tup, collector):
        print(f"{tup['customer']} has spent {tup['total'] / 100:,.2f}")


def build():
    schema = "id long, customer string, item string, quantity long, cents long"
    orders = FileSpout(
        ORDERS,
        "json",
        schema=schema,
        fields=["customer", "cents"],
        translator=lambda row: (row[1], row[4]),
    )
    builder = TopologyBuilder()
    builder.set_spout("orders", orders)
    builder.set_bolt("totals", Totals(), 2).fields_grouping("orders", Fields("customer"))
    builder.set_bolt("report", Report()).global_grouping("totals")
    return builder.create_topology("exactly-once-totals")


def in_sql(checkpoint, spark):
    """Return the totals as a DataFrame, whether the topology runs now or has ended."""
    state(checkpoint, "totals", spark=spark).createOrReplaceTempView("totals")
    return spark.sql(QUERY)


if __name__ == "__main__":
    from stormspark.spark import local_session

    in_sql(sys.argv[1], local_session(1)).show()
