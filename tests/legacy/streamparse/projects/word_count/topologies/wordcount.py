"""Counts the words of a poem."""

from bolts.counting import WordCountBolt
from bolts.splitting import SplitBolt
from spouts.lines import LineSpout
from streamparse import Grouping, Topology


class WordCount(Topology):
    config = {"test.repeat": 3}
    line_spout = LineSpout.spec(par=2)
    split_bolt = SplitBolt.spec(inputs=[line_spout], par={"prod": 3, "beta": 1})
    count_bolt = WordCountBolt.spec(inputs={split_bolt: Grouping.fields("word")}, par=2)
