"""With Storm's own storm.py: the sentences of a file, each again until it is acked."""

import sys

import storm


class Sentences(storm.Spout):
    def initialize(self, conf, context):
        tasks = sorted(int(t) for t, c in context["task->component"].items() if c == context["componentid"])
        with open(sys.argv[1]) as file:
            lines = file.read().splitlines()
        self.left = dict(enumerate(lines[tasks.index(context["taskid"]) :: len(tasks)]))
        self.open = {}

    def nextTuple(self):  # noqa: N802 - storm.py's name
        if self.left:
            number, line = self.left.popitem()
            self.open[number] = line
            storm.emit([line], id=number)

    def ack(self, id):
        del self.open[id]

    def fail(self, id):
        self.left[id] = self.open.pop(id)


Sentences().run()
