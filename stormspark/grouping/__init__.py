"""Who gets this tuple? Storm's stream groupings, as frozen values (D1-D17).

A `Grouping` says two things. To one sender task it gives a function from a tuple's values to target tasks
(`Grouping.chooser`): the hot path. To a whole DataFrame it gives the `Repartitioning` that puts the rows of
target task i in partition i. Both come from one definition, so both sides agree.

The package is pure: no clock, no IO, and no randomness but the `random.Random` of the context.

    base            what a grouping is, and what a sender knows
    shuffle, fields, global_, all, local_or_shuffle, direct     one grouping each
    key_memo        which task each key went to: a fields grouping's fast path
    hashing         Storm's task index of a list of key values
    java_hash       hashCode of the Java classes that such values had in Storm
    java_time       the same for dates and times
    columns         the same index for whole columns, in numpy
    repartitioning  the Spark side, as values; stormspark.spark carries them out
"""

from __future__ import annotations

from stormspark.grouping.all import AllGrouping
from stormspark.grouping.base import Grouping, GroupingContext
from stormspark.grouping.direct import DirectGrouping
from stormspark.grouping.fields import FieldsGrouping
from stormspark.grouping.global_ import GlobalGrouping
from stormspark.grouping.hashing import fields_task_index
from stormspark.grouping.local_or_shuffle import LocalOrShuffleGrouping
from stormspark.grouping.repartitioning import (
    ById,
    ByTask,
    CopyToEach,
    Repartitioning,
    RoundRobin,
    SinglePartition,
    Stay,
)
from stormspark.grouping.shuffle import ShuffleGrouping

__all__ = [
    "AllGrouping",
    "ById",
    "ByTask",
    "CopyToEach",
    "DirectGrouping",
    "FieldsGrouping",
    "GlobalGrouping",
    "Grouping",
    "GroupingContext",
    "LocalOrShuffleGrouping",
    "Repartitioning",
    "RoundRobin",
    "ShuffleGrouping",
    "SinglePartition",
    "Stay",
    "fields_task_index",
]
