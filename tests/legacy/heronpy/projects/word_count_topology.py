"""The builder's style: a script with a main part, which takes the topology's name as its argument."""

import sys

import heronpy.api.api_constants as constants
from heronpy.api.stream import Grouping
from heronpy.api.topology import TopologyBuilder
from parts.bolts import CountBolt, LastBolt
from parts.sources import WordSpout

if __name__ == "__main__":
    if len(sys.argv) != 2:
        print("Which name?")
        sys.exit(1)
    builder = TopologyBuilder(name=sys.argv[1])
    words = builder.add_spout("words", WordSpout, par=2)
    count = builder.add_bolt(
        "count",
        CountBolt,
        par=2,
        inputs={words: Grouping.fields("word")},
        config={constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 1, "fails": True},
    )
    builder.add_bolt("last", LastBolt, par=1, inputs=[count])
    builder.set_config(
        {
            constants.TOPOLOGY_RELIABILITY_MODE: constants.TopologyReliabilityMode.ATLEAST_ONCE,
            constants.TOPOLOGY_MAX_SPOUT_PENDING: 50,
            "words": 500,
        }
    )
    builder.build_and_submit()
