from collections import defaultdict

from streamparse.bolt import BatchingBolt, Bolt


class Sums(Bolt):
    def initialize(self, conf, ctx):
        self.sums = defaultdict(int)

    def process(self, tup):
        customer, amount = tup.values
        self.sums[customer] += amount
        self.log(f"{customer}: {self.sums[customer]}")
        self.emit([customer, self.sums[customer]])


class Batches(BatchingBolt):
    """By time, as in streamparse 1."""

    secs_between_batches = 0.2

    def process_batch(self, key, tups):
        self.emit([[tup.values[0] for tup in tups]])
