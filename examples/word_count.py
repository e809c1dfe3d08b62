"""Counts words, as in Storm's tutorials. The text is the source of Python's standard library: 30 MB, 4 million words.

    stormspark run examples/word_count.py --workers 2 --until-idle 3 -c wordcount.output=/tmp/counts
    python examples/check_word_count.py /tmp/counts

`make demo` runs both commands. With `-c wordcount.folder=...`, the topology counts the Python files of another folder.
"""

import json
import re
from collections import Counter, deque
from pathlib import Path

from standard_library import lines

from stormspark import BasicBolt, Fields, Spout, TopologyBuilder

WORD = re.compile(r"[^\W\d]+")  # letters, and the underscores in names


class Lines(Spout):
    """A reliable spout. It emits each line with the line's number as message id, and emits a failed line again."""

    def open(self, conf, context, collector):
        self.collector = collector
        tasks = context.component_tasks(context.this_component_id)  # each task reads its share of the text
        self.lines = lines(context.this_task_index, len(tasks), conf.get("wordcount.folder"))
        self.open_lines = {}
        self.again = deque()

    def next_tuple(self):
        if self.again:
            number = self.again.popleft()
            line = self.open_lines[number]
        else:
            number, line = next(self.lines, (None, None))
            if line is None:
                return  # all lines have been emitted, so emit nothing
            self.open_lines[number] = line
        self.collector.emit((line,), message_id=number)

    def ack(self, message_id):
        del self.open_lines[message_id]

    def fail(self, message_id):
        self.again.append(message_id)

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("line"))


class Split(BasicBolt):
    """Emits each word of a line. A BasicBolt automatically anchors its emits and acks its input."""

    def execute(self, tup, collector):
        for word in WORD.findall(tup["line"]):
            collector.emit((word,))

    def declare_output_fields(self, declarer):
        declarer.declare(Fields("word"))


class Count(BasicBolt):
    """Counts words. The fields grouping sends equal words to the same task, so each word is counted by one task only."""

    def prepare(self, conf, context):
        self.counts = Counter()
        self.output = conf.get("wordcount.output")
        self.task = context.this_task_id

    def execute(self, tup, collector):
        self.counts[tup["word"]] += 1

    def cleanup(self):
        if self.output:
            folder = Path(self.output)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"task-{self.task}.json").write_text(json.dumps(self.counts))


def build():
    builder = TopologyBuilder()
    builder.set_spout("lines", Lines(), parallelism=2)
    builder.set_bolt("split", Split(), parallelism=2).shuffle_grouping("lines")
    builder.set_bolt("count", Count(), parallelism=2).fields_grouping("split", Fields("word")).set_num_tasks(
        4
    )
    # The words of a line that is emitted again are counted twice. To avoid this, the timeout is long enough for slow machines.
    return builder.create_topology("word-count", {"topology.message.timeout.secs": 300})
