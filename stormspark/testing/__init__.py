"""Tools to test topologies: run one to its end with mocked spouts, and Storm's own test components (J25)."""

from stormspark.testing.complete import CompletedTopology, complete_topology
from stormspark.testing.components import (
    FixedTuple,
    FixedTupleSpout,
    TestGlobalCount,
    TestWordCounter,
    TestWordSpout,
)

__all__ = [
    "CompletedTopology",
    "FixedTuple",
    "FixedTupleSpout",
    "TestGlobalCount",
    "TestWordCounter",
    "TestWordSpout",
    "complete_topology",
]
