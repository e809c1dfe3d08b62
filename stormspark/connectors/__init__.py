"""Spouts that read from other systems, and bolts that write to them: Kafka, files, Delta tables, Spark's streaming DataFrames."""

from stormspark.connectors.dataframe import DataFrameSpout
from stormspark.connectors.delta_bolt import DeltaBolt
from stormspark.connectors.delta_spout import DeltaSpout
from stormspark.connectors.file_bolt import FileBolt
from stormspark.connectors.file_bolt_formats import (
    DefaultFileNameFormat,
    DelimitedRecordFormat,
    JsonRecordFormat,
)
from stormspark.connectors.file_bolt_policies import (
    CountSyncPolicy,
    FileRotationPolicy,
    FileSizeRotationPolicy,
    MoveFileAction,
    NoRotationPolicy,
    SyncPolicy,
    TimedRotationPolicy,
)
from stormspark.connectors.files import FileSpout
from stormspark.connectors.kafka import (
    ByTopicRecordTranslator,
    FirstPollOffsetStrategy,
    KafkaRecord,
    KafkaSpout,
    KafkaSpoutConfig,
    ProcessingGuarantee,
    SimpleRecordTranslator,
)
from stormspark.connectors.kafka_bolt import (
    FieldIndexTopicSelector,
    FieldNameBasedTupleToKafkaMapper,
    FieldNameTopicSelector,
    KafkaBolt,
)
from stormspark.connectors.outbox import Outbox

__all__ = [
    "ByTopicRecordTranslator",
    "CountSyncPolicy",
    "DataFrameSpout",
    "DefaultFileNameFormat",
    "DelimitedRecordFormat",
    "DeltaBolt",
    "DeltaSpout",
    "FieldIndexTopicSelector",
    "FieldNameBasedTupleToKafkaMapper",
    "FieldNameTopicSelector",
    "FileBolt",
    "FileRotationPolicy",
    "FileSizeRotationPolicy",
    "FileSpout",
    "FirstPollOffsetStrategy",
    "JsonRecordFormat",
    "KafkaBolt",
    "KafkaRecord",
    "KafkaSpout",
    "KafkaSpoutConfig",
    "MoveFileAction",
    "NoRotationPolicy",
    "Outbox",
    "ProcessingGuarantee",
    "SimpleRecordTranslator",
    "SyncPolicy",
    "TimedRotationPolicy",
]
