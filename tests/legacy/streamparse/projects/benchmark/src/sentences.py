from random import Random

from streamparse import Spout

from benchmarks.data import sentences


class SentenceSpout(Spout):
    outputs = ["sentence"]

    def initialize(self, conf, context):
        self.sentences = sentences()
        self.random = Random(7 + context["taskid"]).random
        self.emitted = 0

    def next_tuple(self):
        sentence = self.sentences[int(self.random() * len(self.sentences))]
        self.emitted += 1
        self.emit([sentence], tup_id=self.emitted)
