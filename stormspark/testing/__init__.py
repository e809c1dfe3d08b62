"""Tools for tests of topologies on either engine, and for tests of single components without an engine (J25, W10).

``docs/testing.md`` describes them.
"""

from stormspark.testing.acks import AckFailDelegate, AckTracker
from stormspark.testing.collectors import (
    Emitted,
    RecordingBasicCollector,
    RecordingCollector,
    RecordingSpoutCollector,
)
from stormspark.testing.complete import CompletedTopology, complete_topology
from stormspark.testing.components import (
    FixedTuple,
    FixedTupleSpout,
    IdentityBolt,
    TestAggregatesCounter,
    TestGlobalCount,
    TestPlannerBolt,
    TestPlannerSpout,
    TestWordCounter,
    TestWordSpout,
)
from stormspark.testing.context import RecordingContext, make_context
from stormspark.testing.feeder import FeederSpout
from stormspark.testing.tracked import TrackedTopology, wait_until_idle
from stormspark.testing.tuples import make_tuple, multiseteq, test_tuple

__all__ = [
    "AckFailDelegate",
    "AckTracker",
    "CompletedTopology",
    "Emitted",
    "FeederSpout",
    "FixedTuple",
    "FixedTupleSpout",
    "IdentityBolt",
    "RecordingBasicCollector",
    "RecordingCollector",
    "RecordingContext",
    "RecordingSpoutCollector",
    "TestAggregatesCounter",
    "TestGlobalCount",
    "TestPlannerBolt",
    "TestPlannerSpout",
    "TestWordCounter",
    "TestWordSpout",
    "TrackedTopology",
    "complete_topology",
    "make_context",
    "make_tuple",
    "multiseteq",
    "test_tuple",
    "wait_until_idle",
]
