"""Storm's stream groupings: the rules that decide which tasks receive a tuple (D1-D17).

A `Grouping` is a frozen value with two uses. For one sender task it makes a chooser (`Grouping.chooser`): the function that is
called for each tuple, and returns the target tasks for the tuple's values. For a whole DataFrame it makes the `Repartitioning`
that puts the rows of target task i in partition i. Both come from one definition, so they agree.

The package is pure: it knows no clock, no IO, and no randomness but the `random.Random` in a `GroupingContext`.

    base            the base class of groupings, and the context that a sender task gives to a grouping
    streams         the name of a stream
    shuffle, fields, global_, all, none, local_or_shuffle, direct, partial_key, custom      one grouping each
    load_aware, local_first     one grouping each, which prefers targets with little load
    local_while_held    a wrapping for an even grouping, which stays local while max spout pending holds spouts back
    key             a chooser that looks up the key of a tuple, and checks of the key's fields
    key_memo        the remembered tasks of each key: the fast path of groupings with a key
    hashing         Storm's task index of a list of key values
    java_hash       hashCode of the Java classes that such values had in Storm
    java_time       hashCode of Java's dates and times
    java_random     java.util.Random, which partial key grouping draws from
    columns         Storm's task index for whole columns, in numpy
    text_index      Storm's task index of one string, for compiled code
    repartitioning  layouts of DataFrames, as values; stormspark.spark.repartition turns them into operations of Spark
"""

from __future__ import annotations

from stormspark.grouping.all import AllGrouping
from stormspark.grouping.base import Grouping, GroupingContext, LoadFollower
from stormspark.grouping.custom import CustomGrouping, CustomStreamGrouping
from stormspark.grouping.direct import DirectGrouping
from stormspark.grouping.fields import FieldsGrouping
from stormspark.grouping.global_ import GlobalGrouping
from stormspark.grouping.hashing import fields_task_index
from stormspark.grouping.load_aware import LoadAwareShuffleGrouping
from stormspark.grouping.local_first import LocalFirstGrouping
from stormspark.grouping.local_or_shuffle import LocalOrShuffleGrouping
from stormspark.grouping.local_while_held import LocalWhileHeld, LocalWhileHeldGrouping, without_wrapping
from stormspark.grouping.none import NoneGrouping
from stormspark.grouping.partial_key import PartialKeyGrouping, two_tasks
from stormspark.grouping.repartitioning import (
    ByChooser,
    ById,
    ByTask,
    CopyToEach,
    Repartitioning,
    RoundRobin,
    SinglePartition,
    Stay,
)
from stormspark.grouping.shuffle import ShuffleGrouping
from stormspark.grouping.streams import DEFAULT_STREAM, GlobalStreamId

__all__ = [
    "DEFAULT_STREAM",
    "AllGrouping",
    "ByChooser",
    "ById",
    "ByTask",
    "CopyToEach",
    "CustomGrouping",
    "CustomStreamGrouping",
    "DirectGrouping",
    "FieldsGrouping",
    "GlobalGrouping",
    "GlobalStreamId",
    "Grouping",
    "GroupingContext",
    "LoadAwareShuffleGrouping",
    "LoadFollower",
    "LocalFirstGrouping",
    "LocalOrShuffleGrouping",
    "LocalWhileHeld",
    "LocalWhileHeldGrouping",
    "NoneGrouping",
    "PartialKeyGrouping",
    "Repartitioning",
    "RoundRobin",
    "ShuffleGrouping",
    "SinglePartition",
    "Stay",
    "fields_task_index",
    "two_tasks",
    "without_wrapping",
]
