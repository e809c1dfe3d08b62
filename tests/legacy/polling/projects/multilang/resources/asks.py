"""A spout with Storm's own storm.py that asks in the way that its argument says."""

import sys
import time

import storm
from asking import Consumer, note, pipe_of_numbers


class Asks(storm.Spout):
    def initialize(self, conf, context):
        self.conf, self.task = conf, context["taskid"]
        if sys.argv[1] == "reads":
            self.lines = pipe_of_numbers(conf["test.secs"])
        else:
            self.consumer = Consumer(conf["test.secs"])

    def nextTuple(self):  # noqa: N802 - storm.py's name
        if sys.argv[1] == "sleeps":
            self.send(self.consumer.poll())
        elif sys.argv[1] == "reads":
            self.send(int(self.lines.readline()))
        else:
            for number in self.consumer:
                self.send(number)

    def send(self, number):
        note(self.conf, "sent", self.task, number=number)
        storm.emit([self.task, number, time.time()], id=number)


Asks().run()
