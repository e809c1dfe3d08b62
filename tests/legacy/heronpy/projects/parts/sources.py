"""Spouts of the topologies here."""

from heronpy.api.spout.spout import Spout
from heronpy.api.state.stateful_component import StatefulComponent
from heronpy.api.stream import Stream

WORDS = ("storm", "heron", "spark", "storm", "flink")


class WordSpout(Spout):
    """``words`` words, shared out over its tasks; what fails comes again."""

    outputs = ["word", Stream(fields=["number", "problem"], name="odd")]

    def initialize(self, config, context):
        tasks = context.get_component_tasks(context.get_component_id())
        self.waiting = list(range(tasks.index(context.get_task_id()), config["words"], len(tasks)))
        self.acked = 0

    def next_tuple(self):
        if not self.waiting:
            return
        number = self.waiting.pop()
        self.emit([WORDS[number % len(WORDS)]], tup_id=number)
        if number % 2:
            self.emit([number, "odd"], stream="odd")

    def ack(self, tup_id):
        self.acked += 1

    def fail(self, tup_id):
        self.waiting.append(tup_id)

    def close(self):
        self.log(f"{self.acked} acks")


class PositionSpout(Spout, StatefulComponent):
    """The same words, and its position is its state."""

    outputs = ["word"]

    def init_state(self, state):
        self.state = state

    def pre_save(self, checkpoint_id):
        self.state.put("position", self.position)

    def initialize(self, config, context):
        self.words = config["words"]
        self.position = self.state.get("position") or 0

    def next_tuple(self):
        if self.position < self.words:
            self.emit([WORDS[self.position % len(WORDS)]])
            self.position += 1
