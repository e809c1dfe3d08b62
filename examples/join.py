"""Joins two streams, orders and payments, by the number of the order. What finds no partner in time goes to a stream of its own.

    stormspark run examples/join.py --engine local --trigger available-now

`docs/examples/join.md` explains it.
"""

import time
from pathlib import Path

from stormspark import BasicBolt, Bolt, Fields, TopologyBuilder
from stormspark.connectors import FileSpout

PATIENCE_SECS = 20  # how long an order or a payment waits for its partner; less than the message timeout


class Join(Bolt):
    """Holds the first tuple of a pair until the second one comes. Both are acked together."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.waiting = {"orders": {}, "payments": {}}  # component: {order's number: (time, tuple)}

    def execute(self, tup):
        if tup.is_tick:
            self.give_up(before=time.monotonic() - PATIENCE_SECS)
            self.collector.ack(tup)
            return
        number, of = tup["order_id"], tup.source_component
        partners = self.waiting["payments" if of == "orders" else "orders"]
        if number not in partners:
            self.waiting[of][number] = time.monotonic(), tup
            return
        _, partner = partners.pop(number)
        order, payment = (tup, partner) if of == "orders" else (partner, tup)
        self.collector.emit((number, order["customer"], payment["by"]), anchors=[order, payment])
        self.collector.ack(order)
        self.collector.ack(payment)

    def end_of_input(self):
        self.give_up(before=float("inf"))  # nothing more comes, so nobody waits

    def give_up(self, before):
        for of, waiting in self.waiting.items():
            for number, (since, tup) in list(waiting.items()):
                if since < before:
                    del waiting[number]
                    self.collector.emit((number, of), stream="alone", anchors=[tup])
                    self.collector.ack(tup)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("order_id", "customer", "by"))
        declarer.declare_stream("alone", Fields("order_id", "of"))

    def get_component_configuration(self):
        return {"topology.tick.tuple.freq.secs": 5}


class Report(BasicBolt):
    def execute(self, tup, collector):
        if tup.source_stream == "alone":
            print(f"order {tup['order_id']}: nothing but its {tup['of'].removesuffix('s')}")
        else:
            print(f"order {tup['order_id']}: {tup['customer']} paid by {tup['by']}")


def build():
    data = Path(__file__).parent / "data"
    orders = FileSpout(
        data / "orders", "json", schema="id long, customer string", fields=["order_id", "customer"]
    )
    payments = FileSpout(
        data / "payments", "json", schema="order_id long, by string", fields=["order_id", "by"]
    )
    number = Fields("order_id")
    builder = TopologyBuilder()
    builder.set_spout("orders", orders)
    builder.set_spout("payments", payments)
    join = builder.set_bolt("join", Join(), 2)
    join.fields_grouping("orders", number).fields_grouping("payments", number)
    builder.set_bolt("report", Report()).global_grouping("join").global_grouping("join", "alone")
    return builder.create_topology("join", {"topology.message.timeout.secs": 60})
