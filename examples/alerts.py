"""Watches sensors: every ten seconds a tick compares what came since the last one with limits, and alerts if that has changed.

    stormspark run examples/alerts.py --engine local --trigger available-now

`docs/examples/alerts.md` explains it.
"""

from pathlib import Path
from statistics import mean

from stormspark import BasicBolt, Fields, TickTupleAwareBolt, TopologyBuilder
from stormspark.connectors import FileSpout

LIMITS = {"cellar": 14.0, "fridge": 7.0, "oven": 200.0}  # degrees Celsius


class Watch(TickTupleAwareBolt):
    """Emits an alert when a sensor's mean gets too high, when the sensor falls silent, and when it is well again."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.readings = {}  # sensor: what came since the last tick
        self.states = {}  # sensor: how it was at the last tick

    def process(self, tup):
        self.readings.setdefault(tup["sensor"], []).append(tup["celsius"])
        self.collector.ack(tup)

    def on_tick_tuple(self, tup):
        for sensor, readings in self.readings.items():
            celsius = mean(readings) if readings else None
            state = self.state_at(sensor, celsius)
            if state != self.states.get(sensor, "well"):
                self.collector.emit((sensor, state, celsius), anchors=[tup])
            self.states[sensor] = state
            self.readings[sensor] = []
        self.collector.ack(tup)

    def state_at(self, sensor, celsius):
        if celsius is None:
            return "silent"
        return "too hot" if celsius > LIMITS.get(sensor, 30.0) else "well"

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("sensor", "state", "celsius"))

    def get_component_configuration(self):
        return {"topology.tick.tuple.freq.secs": 10}


class Notify(BasicBolt):
    """Prints alerts. Yours may send a message."""

    def execute(self, tup, collector):
        sensor, state, celsius = tup.values
        print(f"{sensor} is {state}" + ("" if celsius is None else f": {celsius:.1f} degrees"))


def build():
    readings = FileSpout(
        Path(__file__).parent / "data" / "readings",
        "json",
        schema="sensor string, celsius double",
        fields=["sensor", "celsius"],
    )
    builder = TopologyBuilder()
    builder.set_spout("readings", readings)
    builder.set_bolt("watch", Watch(), 2).fields_grouping("readings", Fields("sensor"))
    builder.set_bolt("notify", Notify()).global_grouping("watch")
    return builder.create_topology("alerts")
