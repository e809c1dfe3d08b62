import sys

from heronpy.api import api_constants as constants
from heronpy.api.stream import Grouping
from heronpy.api.topology import TopologyBuilder
from parts_of_words import PrintBolt, WordSpout

if __name__ == "__main__":
    builder = TopologyBuilder(name=sys.argv[1])
    words = builder.add_spout("words", WordSpout, par=2)
    builder.add_bolt("print", PrintBolt, par=3, inputs={words: Grouping.fields("word")})
    builder.set_config({constants.TOPOLOGY_RELIABILITY_MODE: constants.TopologyReliabilityMode.ATLEAST_ONCE})
    builder.build_and_submit()
