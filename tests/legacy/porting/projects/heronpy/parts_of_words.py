from heronpy.api.bolt.bolt import Bolt
from heronpy.api.spout.spout import Spout


class WordSpout(Spout):
    outputs = ["word"]

    def next_tuple(self):
        self.emit(["dog"])


class PrintBolt(Bolt):
    def process(self, tup):
        self.log(str(tup.values))
        self.ack(tup)
