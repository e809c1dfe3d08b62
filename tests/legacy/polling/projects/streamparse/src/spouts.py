import time

from asking import Consumer, note, pipe_of_numbers
from streamparse import Spout


class Asks(Spout):
    outputs = ["task", "number", "at"]

    def initialize(self, stormconf, context):
        self.conf = stormconf
        self.secs = stormconf["test.secs"]
        self.open()

    def send(self, number):
        note(self.conf, "sent", self.task_id, number=number)
        self.emit([self.task_id, number, time.time()], tup_id=number)

    def ack(self, tup_id):
        note(self.conf, "acked", self.task_id, number=tup_id)


class SleepsSpout(Asks):
    def open(self):
        self.consumer = Consumer(self.secs)

    def next_tuple(self):
        self.send(self.consumer.poll())


class ForEverSpout(Asks):
    def open(self):
        self.consumer = Consumer(self.secs)

    def next_tuple(self):
        for number in self.consumer:
            self.send(number)


class ReadsSpout(Asks):
    def open(self):
        self.lines = pipe_of_numbers(self.secs)

    def next_tuple(self):
        self.send(int(self.lines.readline()))
