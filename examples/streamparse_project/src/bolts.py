"""The bolts: one reads lines, the other adds up batches of them."""

from streamparse import BatchingBolt, Bolt


class Parse(Bolt):
    outputs = ["path", "status", "ms"]

    def process(self, tup):
        _method, path, status, ms = tup.values.line.split()
        self.emit([path, int(status), int(ms)])


class Statistics(BatchingBolt):
    """Sums up the requests of each path, once per tick."""

    outputs = ["path", "requests", "ms"]
    ticks_between_batches = 1

    def group_key(self, tup):
        return tup.values.path

    def process_batch(self, path, tups):
        slowest = max(tup.values.ms for tup in tups)
        errors = sum(tup.values.status >= 400 for tup in tups)
        self.logger.info("%s: %d requests, %d errors, slowest %d ms", path, len(tups), errors, slowest)
        self.emit([path, len(tups), slowest])
