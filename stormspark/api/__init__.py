"""What users write topologies with."""

from stormspark.api.collector import BasicOutputCollector, OutputCollector, SpoutOutputCollector
from stormspark.api.components import BasicBolt, Bolt, Component, Spout
from stormspark.api.context import TopologyContext
from stormspark.api.fields import Fields
from stormspark.api.streams import DEFAULT_STREAM, GlobalStreamId, OutputFieldsDeclarer, StreamDeclaration
from stormspark.api.topology import (
    BoltDeclarer,
    ComponentDeclaration,
    SpoutDeclarer,
    Topology,
    TopologyBuilder,
)
from stormspark.api.tuples import Tuple, TupleSource

__all__ = [
    "DEFAULT_STREAM",
    "BasicBolt",
    "BasicOutputCollector",
    "Bolt",
    "BoltDeclarer",
    "Component",
    "ComponentDeclaration",
    "Fields",
    "GlobalStreamId",
    "OutputCollector",
    "OutputFieldsDeclarer",
    "Spout",
    "SpoutDeclarer",
    "SpoutOutputCollector",
    "StreamDeclaration",
    "Topology",
    "TopologyBuilder",
    "TopologyContext",
    "Tuple",
    "TupleSource",
]
