"""With Storm's own storm.py: counts, and emits nothing."""

import storm


class Tally(storm.BasicBolt):
    def initialize(self, conf, context):
        self.counts = {}

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1


Tally().run()
