from poem import LINES
from streamparse.spout import Spout


class LineSpout(Spout):
    outputs = ["line"]

    def initialize(self, stormconf, context):
        tasks = sorted(int(t) for t, name in context["task->component"].items() if name == "line_spout")
        mine = LINES[tasks.index(self.task_id) :: len(tasks)]
        self.lines = iter(mine * stormconf["test.repeat"])
        self.open = 0

    def next_tuple(self):
        line = next(self.lines, None)
        if line is not None:
            self.open += 1
            self.emit([line], tup_id=f"{self.task_id}-{self.open}")

    def fail(self, tup_id):
        raise AssertionError(tup_id)
