"""stormspark: Storm and Heron topologies, written in Python, run as Spark Structured Streaming queries.

    api            what users write: builder, spouts, bolts, tuples, fields, collectors, context
    spi            kinds of components that front-ends make and engines run, and that users never see
    grouping       pure: which tasks get this tuple?
    acker          pure: is this tree done?
    backpressure   pure: may this spout emit, and for how long?
    windowing      pure: what is in which window?
    metrics        pure: exact counters and latencies
    plan           from a declared topology to a physical plan: valid, with tasks, workers and supersteps
    wire           frames between workers
    checkpoint     what must survive a restart
    state_reading  the state of components as DataFrames
    worker         hosts tasks and runs their supersteps; knows no Spark
    driver         the driver's side of batches, for both engines
    local          the local engine: one process, no Java
    spark          the Spark engine, the only folder that imports pyspark
    connectors     Kafka, files, Delta tables, DataFrames
    cli, ui        the command line, such as ``stormspark run``; progress and tables
    testing        tools to test topologies

``ARCHITECTURE.md`` lists all packages, also those for topologies that were written for other tools.

Users import the names below. Importing them does not need Java.
"""

import stormspark.tuple_path  # noqa: F401 - first: it decides whether sources or compiled modules are imported
from stormspark.api import (
    ROW_BY_ROW,
    ArrowBolt,
    ArrowSpout,
    AsyncBolt,
    AsyncSpout,
    BasicBolt,
    BasicOutputCollector,
    Bolt,
    Config,
    Count,
    Duration,
    EventLogger,
    Fields,
    GlobalStreamId,
    MetricsConsumer,
    OutputCollector,
    OutputFieldsDeclarer,
    PandasBolt,
    Spout,
    SpoutOutputCollector,
    StatefulWindowedBolt,
    TaskHook,
    TaskInfo,
    TickTupleAwareBolt,
    Topology,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    TupleWindow,
    WindowedBolt,
    WorkerHook,
)
from stormspark.api.state import KeyValueState, StatefulBolt, StatefulComponent, TwoPhaseStatefulComponent
from stormspark.errors import FailedException, ReportedFailedException, StormsparkError
from stormspark.grouping import CustomStreamGrouping
from stormspark.state_reading import state

__version__ = "0.1.0"

__all__ = [
    "ROW_BY_ROW",
    "ArrowBolt",
    "ArrowSpout",
    "AsyncBolt",
    "AsyncSpout",
    "BasicBolt",
    "BasicOutputCollector",
    "Bolt",
    "Config",
    "Count",
    "CustomStreamGrouping",
    "Duration",
    "EventLogger",
    "FailedException",
    "Fields",
    "GlobalStreamId",
    "KeyValueState",
    "MetricsConsumer",
    "OutputCollector",
    "OutputFieldsDeclarer",
    "PandasBolt",
    "ReportedFailedException",
    "Spout",
    "SpoutOutputCollector",
    "StatefulBolt",
    "StatefulComponent",
    "StatefulWindowedBolt",
    "StormsparkError",
    "TaskHook",
    "TaskInfo",
    "TickTupleAwareBolt",
    "Topology",
    "TopologyBuilder",
    "TopologyContext",
    "Tuple",
    "TupleWindow",
    "TwoPhaseStatefulComponent",
    "WindowedBolt",
    "WorkerHook",
    "__version__",
    "state",
]
