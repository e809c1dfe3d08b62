"""Two spouts that take their time, and three bolts one after the other. The name of the topology says how the spouts ask."""

import sys
import time

from asking import Consumer, note, pipe_of_numbers
from heronpy.api import api_constants
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.spout.spout import Spout
from heronpy.api.stream import Grouping
from heronpy.api.topology import TopologyBuilder

FIELDS = ["task", "number", "at"]


class Asks(Spout):
    outputs = FIELDS

    def initialize(self, config, context):
        self.config, self.task = config, context.get_task_id()
        self.open(config["test.secs"])

    def send(self, number):
        note(self.config, "sent", self.task, number=number)
        self.emit([self.task, number, time.time()], tup_id=number)


class SleepsSpout(Asks):
    def open(self, secs):
        self.consumer = Consumer(secs)

    def next_tuple(self):
        self.send(self.consumer.poll())


class ForEverSpout(SleepsSpout):
    def next_tuple(self):
        for number in self.consumer:
            self.send(number)


class ReadsSpout(Asks):
    def open(self, secs):
        self.lines = pipe_of_numbers(secs)

    def next_tuple(self):
        self.send(int(self.lines.readline()))


class PassOnBolt(Bolt):
    outputs = FIELDS

    def process(self, tup):
        self.emit(tup.values, anchors=[tup])
        self.ack(tup)


class KeepBolt(Bolt):
    def initialize(self, config, context):
        self.config, self.task = config, context.get_task_id()

    def process(self, tup):
        task, number, at = tup.values
        note(self.config, "came", self.task, task=task, number=number, at=at, took=time.time() - at)
        self.ack(tup)


if __name__ == "__main__":
    name = sys.argv[1]
    spout = {"sleeps": SleepsSpout, "for_ever": ForEverSpout, "reads": ReadsSpout}[name]
    builder = TopologyBuilder(name)
    spouts = [builder.add_spout(one, spout, 1) for one in ("asks", "asks_too")]
    first = builder.add_bolt("first", PassOnBolt, 1, dict.fromkeys(spouts, Grouping.SHUFFLE))
    second = builder.add_bolt("second", PassOnBolt, 1, {first: Grouping.SHUFFLE})
    builder.add_bolt("keeps", KeepBolt, 1, {second: Grouping.SHUFFLE})
    builder.set_config(
        {api_constants.TOPOLOGY_RELIABILITY_MODE: api_constants.TopologyReliabilityMode.ATLEAST_ONCE}
    )
    builder.build_and_submit()
