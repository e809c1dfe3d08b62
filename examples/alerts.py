"""Watches sensors: every ten seconds a tick compares what came since the last one with limits, and alerts if that has changed.

    stormspark run examples/alerts.py --engine local --trigger available-now

`docs/examples/alerts.md` explains it.
"""

from pathlib import Path
from statistics import mean

from stormspark import BasicBolt, Fields, TickTupleAwareBolt, TopologyBuilder
from stormspark.connectors import FileSpout

LIMITS = {"cellar": 14.0, "fridge": 7.0, "oven": 200.0}  # degrees Celsius
SILENT_TICKS = 6  # a sensor is silent if nothing came for so many ticks


class Watch(TickTupleAwareBolt):
    """Emits an alert when a sensor's mean gets too high, when the sensor falls silent, and when it is well again."""

    def prepare(self, conf, context, collector):
        self.collector = collector
        self.readings = {}  # sensor: what came since the last tick
        self.quiet = {}  # sensor: for how many ticks nothing has come
        self.states = {}  # sensor: how it was when that last changed

    def process(self, tup):
        self.readings.setdefault(tup["sensor"], []).append(tup["celsius"])
        self.collector.ack(tup)

    def on_tick_tuple(self, tup):
        for sensor, readings in self.readings.items():
            celsius = mean(readings) if readings else None
            self.quiet[sensor] = 0 if readings else self.quiet[sensor] + 1
            before = self.states.get(sensor, "well")
            state = self.state_of(sensor, celsius, before)
            if state != before:
                self.collector.emit((sensor, state, celsius), anchors=[tup])
            self.states[sensor] = state
            self.readings[sensor] = []
        self.collector.ack(tup)

    def state_of(self, sensor, celsius, before):
        if celsius is None:
            return "silent" if self.quiet[sensor] >= SILENT_TICKS else before
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
