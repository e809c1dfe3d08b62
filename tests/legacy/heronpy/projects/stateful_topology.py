"""Exactly once: state in a spout and in bolts, and an exception on the way."""

import sys

from heronpy.api import api_constants
from heronpy.api.stream import Grouping
from heronpy.api.topology import TopologyBuilder
from parts.bolts import StatefulCountBolt
from parts.sources import PositionSpout


def main():
    builder = TopologyBuilder(sys.argv[1])
    words = builder.add_spout("words", PositionSpout, 1)
    builder.add_bolt("count", StatefulCountBolt, 2, {words: Grouping.fields("word")})
    builder.set_config(
        {
            api_constants.TOPOLOGY_RELIABILITY_MODE: api_constants.TopologyReliabilityMode.EFFECTIVELY_ONCE,
            api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: 30,
            "words": 300,
        }
    )
    builder.build_and_submit()


if __name__ == "__main__":
    sys.exit(main())
