"""The word count that is measured: random sentences, each with an id, split and counted."""

from sentences import SentenceSpout
from streamparse import Grouping, Topology
from words import CountBolt, SplitBolt

EACH = {"one": 1, "two": 2, "three": 3}


class WordCount(Topology):
    spout = SentenceSpout.spec(par=EACH)
    split = SplitBolt.spec(inputs=[spout], par=EACH)
    count = CountBolt.spec(inputs={split: Grouping.fields("word")}, par=EACH)
