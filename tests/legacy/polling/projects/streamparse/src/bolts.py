import time

from asking import note
from streamparse import Bolt


class PassOnBolt(Bolt):
    outputs = ["task", "number", "at"]

    def process(self, tup):
        self.emit(tup.values)


class KeepBolt(Bolt):
    outputs = []

    def initialize(self, conf, ctx):
        self.conf = conf

    def process(self, tup):
        task, number, at = tup.values
        note(self.conf, "came", self.task_id, task=task, number=number, at=at, took=time.time() - at)
