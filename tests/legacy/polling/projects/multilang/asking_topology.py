"""Two spouts that ask in a way that takes its time, and three bolts one after the other, all of them children."""

from stormspark import TopologyBuilder
from stormspark.multilang import ShellBolt, ShellSpout

FIELDS = ["task", "number", "at"]


def asking(*spout):
    builder = TopologyBuilder()
    builder.set_spout("asks", ShellSpout(spout, FIELDS), 2)
    passes = ["python3", "passes.py"]
    builder.set_bolt("first", ShellBolt(passes, FIELDS)).shuffle_grouping("asks")
    builder.set_bolt("second", ShellBolt(passes, FIELDS)).shuffle_grouping("first")
    builder.set_bolt("keeps", ShellBolt(["python3", "keeps.py"])).shuffle_grouping("second")
    return builder.create_topology("asking")


sleeps, reads, for_ever = (asking("python3", "asks.py", how) for how in ("sleeps", "reads", "for_ever"))
sleeps_in_ruby, sleeps_in_node = asking("ruby", "asks.rb"), asking("node", "asks.js")
