"""A topology for heronpy, with acks: the mean temperature of each sensor.

    stormspark run examples/heronpy_topology.py:temperatures --engine local --until-idle 2

`docs/examples/heronpy.md` explains it.
"""

import sys

import heronpy.api.api_constants as constants
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.spout.spout import Spout
from heronpy.api.stream import Grouping
from heronpy.api.topology import TopologyBuilder

READINGS = [("cellar", 11.5), ("oven", 182.0), ("cellar", 11.7), ("oven", 191.0), ("fridge", 4.1)]


class Readings(Spout):
    """Emits the readings, and again what failed."""

    outputs = ["sensor", "celsius"]

    def initialize(self, config, context):
        self.todo = list(range(len(READINGS)))

    def next_tuple(self):
        if self.todo:
            number = self.todo.pop(0)
            self.emit(list(READINGS[number]), tup_id=number)

    def fail(self, tup_id):
        self.todo.append(tup_id)


class Mean(Bolt):
    """Keeps the sum and the number of each sensor's readings."""

    outputs = ["sensor", "mean"]

    def initialize(self, config, context):
        self.sums = {}

    def process(self, tup):
        sensor, celsius = tup.values
        total, number = self.sums.get(sensor, (0.0, 0))
        self.sums[sensor] = total, number = total + celsius, number + 1
        self.emit([sensor, total / number], anchors=[tup])
        self.ack(tup)


class Show(Bolt):
    def process(self, tup):
        sensor, mean = tup.values
        print(f"{sensor}: {mean:.2f} degrees")
        self.ack(tup)


if __name__ == "__main__":
    builder = TopologyBuilder(sys.argv[1])  # `heron submit` and `stormspark run FILE:NAME` pass the name
    readings = builder.add_spout("readings", Readings, par=1)
    mean = builder.add_bolt("mean", Mean, par=2, inputs={readings: Grouping.fields("sensor")})
    builder.add_bolt("show", Show, par=1, inputs=[mean])
    builder.set_config({constants.TOPOLOGY_RELIABILITY_MODE: constants.TopologyReliabilityMode.ATLEAST_ONCE})
    builder.build_and_submit()
