import json
import os
from collections import defaultdict

from petrel import storm
from petrel.emitter import Bolt


class Tally(Bolt):
    def __init__(self, note):
        super().__init__(script=__file__)
        self.note = note
        self.counts = defaultdict(int)
        self.failed = set()

    def declareOutputFields(self):
        return []

    def initialize(self, conf, context):
        self.file = os.path.join(conf["test.folder"], "tally.jsonl")

    def process(self, tup):
        if tup.stream == "empty" and tup.values[0] not in self.failed:
            self.failed.add(tup.values[0])
            storm.fail(tup)
            return
        if tup.stream == "default":
            good, (count, origin) = tup.values
            self.counts[good] += count
            assert origin["from"]
        with open(self.file, "a") as out:
            out.write(
                json.dumps([self.note, tup.component, tup.stream, tup.values[0], self.counts[tup.values[0]]])
                + "\n"
            )
        storm.ackId(tup.id)


def run():
    Tally("run makes this one").run()
