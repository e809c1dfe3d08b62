"""Bolts of the topologies here: what they find goes to a file of each task."""

import json
from collections import Counter
from pathlib import Path

from heronpy.api import global_metrics
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.bolt.window_bolt import TumblingWindowBolt
from heronpy.api.metrics import CountMetric
from heronpy.api.state.stateful_component import StatefulComponent


class _Writes:
    def write_to(self, config, context):
        self.path = Path(config["out"]) / f"{context.get_component_id()}-{context.get_task_id()}.json"

    def write(self, found):
        self.path.write_text(json.dumps(found))


class CountBolt(Bolt, _Writes):
    """Counts words; fails the first tuple of each word, once."""

    outputs = ["word", "count"]

    def initialize(self, config, context):
        self.write_to(config, context)
        self.fails = config.get("fails", False)
        self.counts, self.failed, self.ticks = Counter(), set(), 0
        context.register_metric("counted", CountMetric(), 10)

    def process(self, tup):
        word = tup.values[0]
        if self.fails and word not in self.failed:
            self.failed.add(word)
            self.fail(tup)
            return
        self.counts[word] += 1
        global_metrics.safe_incr("words")
        self.emit([word, self.counts[word]], anchors=[tup])
        self.write(self.counts)
        self.ack(tup)

    def process_tick(self, tup):
        assert self.is_tick(tup) and tup.values is None
        self.ticks += 1


class LastBolt(Bolt, _Writes):
    """Keeps the greatest count of each word."""

    def initialize(self, config, context):
        self.write_to(config, context)
        self.last = {}

    def process(self, tup):
        word, count = tup.values
        self.last[word] = max(count, self.last.get(word, 0))
        self.write(self.last)
        self.ack(tup)


class StreamsBolt(Bolt, _Writes):
    """Counts tuples by where they come from."""

    def initialize(self, config, context):
        self.write_to(config, context)
        self.streams = Counter()

    def process(self, tup):
        self.streams[f"{tup.component}:{tup.stream}"] += 1
        self.write(self.streams)


class StatefulCountBolt(Bolt, StatefulComponent, _Writes):
    """Counts words in its state; raises once, which takes the batch back."""

    def init_state(self, state):
        self.state = state

    def pre_save(self, checkpoint_id):
        for word, count in self.counts.items():
            self.state.put(word, count)
        self.write({word: self.state.get(word) for _, word in self.state.enumerate()})

    def initialize(self, config, context):
        self.write_to(config, context)
        self.counts = Counter({word: self.state.get(word) for _, word in self.state.enumerate()})
        self.raised = Path(config["out"]) / "raised"

    def process(self, tup):
        self.counts[tup.values[0]] += 1
        if sum(self.counts.values()) == 40 and not self.raised.exists():
            self.raised.touch()
            raise RuntimeError("on purpose")


class SizesBolt(TumblingWindowBolt, _Writes):
    """Adds the sizes of windows up."""

    def initialize(self, config, context):
        super().initialize(config, context)
        self.write_to(config, context)
        self.found = Counter()

    def processWindow(self, window_info, tuples):  # noqa: N802 - heronpy's name
        assert window_info.end - window_info.start == 1
        self.found["windows"] += 1
        self.found["tuples"] += len(tuples)
        self.write(self.found)
