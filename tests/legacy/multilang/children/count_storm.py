"""With Storm's own storm.py: anchors and acks by itself."""

import storm


class Count(storm.Bolt):
    def initialize(self, conf, context):
        self.counts = {}
        storm.logInfo(f"task {context['taskid']} of {conf['topology.name']}")

    def process(self, tup):
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1
        storm.emit([word, self.counts[word]], anchors=[tup])
        storm.ack(tup)


Count().run()
