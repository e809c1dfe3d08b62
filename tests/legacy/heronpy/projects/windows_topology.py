"""A script without a main part, whose components are in the same file, under heronpy's older names."""

import sys

from heron.api.src.python import Grouping, TopologyBuilder
from parts.bolts import SizesBolt
from parts.sources import WordSpout


class Upper(WordSpout):
    outputs = ["word"]

    def next_tuple(self):
        if self.waiting:
            self.emit([f"W{self.waiting.pop()}"])


builder = TopologyBuilder(sys.argv[1])
builder.add_bolt(
    "sizes",
    SizesBolt,
    1,
    {builder.add_spout("words", Upper, 1): Grouping.SHUFFLE},
    config={SizesBolt.WINDOW_DURATION_SECS: 1},
)
builder.set_config({"words": int(sys.argv[2])})
builder.build_and_submit()
