"""The classes that users write topologies with.

`stormspark.spi` adds the classes that front-ends and the engine need.
"""

from stormspark.api.arrow_components import (
    ROW_BY_ROW,
    ArrowBolt,
    ArrowOutputCollector,
    ArrowSpout,
    ArrowSpoutOutputCollector,
    PandasBolt,
    PandasOutputCollector,
)
from stormspark.api.async_components import (
    AsyncBolt,
    AsyncOutputCollector,
    AsyncSpout,
    AsyncSpoutOutputCollector,
)
from stormspark.api.collector import BasicOutputCollector, OutputCollector, SpoutOutputCollector
from stormspark.api.components import BasicBolt, Bolt, Component, Spout, TickTupleAwareBolt
from stormspark.api.configuration import Config
from stormspark.api.context import TaskServices, TopologyContext
from stormspark.api.declarers import BoltDeclarer, ComponentDeclaration, SpoutDeclarer
from stormspark.api.event_logger import EventInfo, EventLogger
from stormspark.api.fields import Fields
from stormspark.api.hooks import (
    BoltAckInfo,
    BoltExecuteInfo,
    BoltFailInfo,
    EmitInfo,
    SpoutAckInfo,
    SpoutFailInfo,
    TaskHook,
)
from stormspark.api.metrics_consumer import MetricsConsumer, TaskInfo
from stormspark.api.retry import ExponentialBackoff
from stormspark.api.source import (
    FiniteLocalSource,
    LocalSource,
    PerTrigger,
    Routed,
    SourceProgress,
    SourceSpout,
)
from stormspark.api.streams import (
    DEFAULT_STREAM,
    SYSTEM_COMPONENT,
    TICK_STREAM,
    GlobalStreamId,
    OutputFieldsDeclarer,
    StreamDeclaration,
)
from stormspark.api.topology import Topology, TopologyBuilder
from stormspark.api.tuples import TICK_SOURCE, Tuple, TupleSource
from stormspark.api.windows import (
    LATE_TUPLE_FIELD,
    Count,
    Duration,
    StatefulWindowedBolt,
    TupleWindow,
    WindowedBolt,
    WindowTime,
)
from stormspark.api.worker_hook import WorkerHook, WorkerHookDeclaration, WorkerUserContext

__all__ = [
    "DEFAULT_STREAM",
    "LATE_TUPLE_FIELD",
    "ROW_BY_ROW",
    "SYSTEM_COMPONENT",
    "TICK_SOURCE",
    "TICK_STREAM",
    "ArrowBolt",
    "ArrowOutputCollector",
    "ArrowSpout",
    "ArrowSpoutOutputCollector",
    "AsyncBolt",
    "AsyncOutputCollector",
    "AsyncSpout",
    "AsyncSpoutOutputCollector",
    "BasicBolt",
    "BasicOutputCollector",
    "Bolt",
    "BoltAckInfo",
    "BoltDeclarer",
    "BoltExecuteInfo",
    "BoltFailInfo",
    "Component",
    "ComponentDeclaration",
    "Config",
    "Count",
    "Duration",
    "EmitInfo",
    "EventInfo",
    "EventLogger",
    "ExponentialBackoff",
    "Fields",
    "FiniteLocalSource",
    "GlobalStreamId",
    "LocalSource",
    "MetricsConsumer",
    "OutputCollector",
    "OutputFieldsDeclarer",
    "PandasBolt",
    "PandasOutputCollector",
    "PerTrigger",
    "Routed",
    "SourceProgress",
    "SourceSpout",
    "Spout",
    "SpoutAckInfo",
    "SpoutDeclarer",
    "SpoutFailInfo",
    "SpoutOutputCollector",
    "StatefulWindowedBolt",
    "StreamDeclaration",
    "TaskHook",
    "TaskInfo",
    "TaskServices",
    "TickTupleAwareBolt",
    "Topology",
    "TopologyBuilder",
    "TopologyContext",
    "Tuple",
    "TupleSource",
    "TupleWindow",
    "WindowTime",
    "WindowedBolt",
    "WorkerHook",
    "WorkerHookDeclaration",
    "WorkerUserContext",
]
