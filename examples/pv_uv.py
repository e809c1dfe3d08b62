"""The figures of a site's owner, for each day and at any moment: page views, unique visitors, buyers, revenue.

    stormspark run examples/pv_uv.py --engine local --trigger available-now
    python examples/pv_uv.py

The second command prints the table. `docs/examples/pv-uv.md` explains it all.
"""

import os
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa

from stormspark import Fields, StatefulBolt, TopologyBuilder
from stormspark.connectors import DeltaBolt, FileSpout

TABLE = os.path.abspath(os.environ.get("FIGURES_TABLE", "figures"))
COLUMNS = pa.schema(
    [("day", pa.string()), *((name, pa.int64()) for name in ("pv", "uv", "buyers", "revenue"))]
)


def with_day(row):
    at, user, _page, cents = row
    return f"{datetime.fromtimestamp(at / 1000, UTC):%Y-%m-%d}", user, cents


class Visitors(StatefulBolt):
    """Finds a visitor's first view and first purchase of the day. Its tasks share the visitors among them."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def init_state(self, state):
        self.seen = state

    def execute(self, view):
        day, user, cents = view.values
        is_new = self.first(day, "visit", user)
        buys_first = cents > 0 and self.first(day, "purchase", user)
        self.collector.emit((day, int(is_new), int(buys_first), cents), anchors=[view])
        self.collector.ack(view)

    def first(self, *key):
        if key in self.seen:
            return False
        self.seen[key] = None
        return True

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("day", "new", "buys_first", "cents"))


class Figures(StatefulBolt):
    """Adds up. A batch's last row of a day replaces that day's row in the table."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def init_state(self, state):
        self.figures = state

    def execute(self, view):
        day, *more = view.values
        figures = tuple(map(sum, zip(self.figures.get(day, (0, 0, 0, 0)), (1, *more), strict=True)))
        self.figures[day] = figures
        self.collector.emit((day, *figures), anchors=[view])
        self.collector.ack(view)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields(*COLUMNS.names))


def build():
    views = FileSpout(
        Path(__file__).parent / "data" / "clicks",
        "json",
        schema="at long, user string, page string, cents long",
        fields=["day", "user", "cents"],
        translator=with_day,
    )
    builder = TopologyBuilder()
    builder.set_spout("views", views)
    builder.set_bolt("visitors", Visitors(), 4).fields_grouping("views", Fields("user"))
    builder.set_bolt("figures", Figures()).fields_grouping("visitors", Fields("day"))
    table = DeltaBolt(TABLE, schema=COLUMNS, merge_on=["day"])
    builder.set_bolt("table", table).fields_grouping("figures", Fields("day"))
    return builder.create_topology("pv-uv")


if __name__ == "__main__":
    from deltalake import DeltaTable, QueryBuilder

    query = "SELECT * FROM figures ORDER BY day"
    for row in pa.table(QueryBuilder().register("figures", DeltaTable(TABLE)).execute(query)).to_pylist():
        print(f"{row['day']}: PV {row['pv']}, UV {row['uv']}, {row['buyers']} buyers, {row['revenue']} cents")
