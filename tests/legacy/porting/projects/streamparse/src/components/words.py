from collections import Counter
from itertools import cycle

from streamparse import Bolt, Spout


class Words(Spout):
    outputs = ["word"]

    def initialize(self, stormconf, context):
        self.words = cycle(["dog", "cat", "zebra"])

    def next_tuple(self):
        self.emit([next(self.words)])


class Count(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, ctx):
        self.counts = Counter()

    def process(self, tup):
        (word,) = tup.values
        self.counts[word] += 1
        self.emit([word, self.counts[word]])
