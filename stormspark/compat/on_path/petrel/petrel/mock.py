"""Petrel's helper for tests of components."""

from stormspark.compat.petrel.mock import (
    LIST,
    NAMEDTUPLE,
    STORM_TUPLE,
    TUPLE,
    Mock,
    MockSpout,
    run_simple_topology,
)

__all__ = ["LIST", "NAMEDTUPLE", "STORM_TUPLE", "TUPLE", "Mock", "MockSpout", "run_simple_topology"]
