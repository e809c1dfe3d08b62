"""Backpressure: how many tuples spouts may emit, and for how long spouts are called.

The package knows no clock and no queues: it gets times and the lengths of queues as arguments.
"""

from stormspark.backpressure.controller import (
    OPEN_TREES,
    BoltPressure,
    Controller,
    LimitChange,
    Pressure,
    SpoutPressure,
)
from stormspark.backpressure.local_preference import LimitedSpout, LocalPreference
from stormspark.backpressure.pending_cost import PendingCost
from stormspark.backpressure.quantum import SpoutQuantum
from stormspark.backpressure.signals import BoltLoad, Limits, SpoutLoad, TaskLoad
from stormspark.backpressure.water_marks import WaterMarks

__all__ = [
    "OPEN_TREES",
    "BoltLoad",
    "BoltPressure",
    "Controller",
    "LimitChange",
    "LimitedSpout",
    "Limits",
    "LocalPreference",
    "PendingCost",
    "Pressure",
    "SpoutLoad",
    "SpoutPressure",
    "SpoutQuantum",
    "TaskLoad",
    "WaterMarks",
]
