"""Parts of the counting topology: its bolts."""

import socket
import time

from stormspark import BasicBolt, StatefulBolt, WindowedBolt


class Send(BasicBolt):
    """Sends each number to a server, ``cluster.store``, and waits until the server has it on its disk. Then it waits longer, if
    ``cluster.pause.secs`` says so.
    """

    def prepare(self, conf, context):
        self.address = conf["cluster.store"].split(":")
        self.pause_secs = float(conf.get("cluster.pause.secs", 0))
        self.stream = None

    def execute(self, tup, collector):
        try:
            if self.stream is None:
                connection = socket.create_connection(self.address, timeout=20)
                self.stream = connection.makefile("rw", encoding="ascii")
            self.stream.write(f"{tup['value']}\n")
            self.stream.flush()
            if self.stream.readline() != "ok\n":
                raise OSError(f"the store at {self.address} has closed the connection")
        except OSError:
            self.stream = None
            raise
        if self.pause_secs:
            time.sleep(self.pause_secs)
        collector.emit([tup["value"]])

    def declare_output_fields(self, declarer):
        declarer.declare("value")


class Count(StatefulBolt):
    """Counts numbers, and adds them up, by their last digit."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def init_state(self, state):
        self.sums = state

    def execute(self, tup):
        digit = tup["value"] % 10
        count, sum_ = self.sums.get(digit, (0, 0))
        self.sums[digit] = (count + 1, sum_ + tup["value"])
        self.collector.ack(tup)


class Sum(WindowedBolt):
    """Adds up the numbers of a window."""

    def prepare(self, conf, context, collector):
        self.collector = collector

    def execute(self, window):
        self.collector.emit([sum(tup["value"] for tup in window)])

    def declare_output_fields(self, declarer):
        declarer.declare("value")
