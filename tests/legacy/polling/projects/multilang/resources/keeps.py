import time

import storm
from asking import note


class Keeps(storm.BasicBolt):
    def initialize(self, conf, context):
        self.conf, self.task = conf, context["taskid"]

    def process(self, tup):
        task, number, at = tup.values
        note(self.conf, "came", self.task, task=task, number=number, at=at, took=time.time() - at)


Keeps().run()
