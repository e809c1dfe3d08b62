import logging
import threading

from petrel import storm
from petrel.emitter import Spout

log = logging.getLogger("ships")

MANIFESTS = [
    "anna rye rye salt",
    "berta salt",
    "clara",
    "dora rye tar",
]


class Ships(Spout):
    def __init__(self):
        super().__init__(script=__file__)
        self.lock = threading.Lock()  # can't be pickled, and need not be
        self.waiting = list(enumerate(MANIFESTS))

    @classmethod
    def declareOutputFields(cls):
        return ["ship"]

    def initialize(self, conf, context):
        self.harbour = conf["harbour"]
        storm.log("%s opens as task %d" % (self.harbour, context["taskid"]))

    def nextTuple(self):
        if self.waiting:
            number, ship = self.waiting.pop(0)
            storm.emit([ship], id=[number])

    def fail(self, id):
        self.waiting.append((id[0], MANIFESTS[id[0]]))


def run():
    Ships().run()
