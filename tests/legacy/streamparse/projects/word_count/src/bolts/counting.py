import os
from collections import Counter

from streamparse import Bolt


class WordCountBolt(Bolt):
    outputs = ["word", "count"]

    def initialize(self, conf, ctx):
        self.counter = Counter()
        self.out = os.path.join(conf["test.folder"], f"{self.task_id}.txt")

    def process(self, tup):
        word = tup.values[0]
        self.counter[word] += 1
        with open(self.out, "a") as file:
            file.write(f"{word} {self.counter[word]}\n")
        if self.counter[word] % 10 == 0:
            self.logger.info("%s: counted [%i]", word, self.counter[word])
        self.emit([word, self.counter[word]])
