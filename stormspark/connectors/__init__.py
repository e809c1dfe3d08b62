"""Spouts and bolts that read and write what is outside: Kafka, files, streams of Spark."""

from stormspark.connectors.dataframe import DataFrameSpout
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

__all__ = [
    "ByTopicRecordTranslator",
    "DataFrameSpout",
    "FieldIndexTopicSelector",
    "FieldNameBasedTupleToKafkaMapper",
    "FieldNameTopicSelector",
    "FileSpout",
    "FirstPollOffsetStrategy",
    "KafkaBolt",
    "KafkaRecord",
    "KafkaSpout",
    "KafkaSpoutConfig",
    "ProcessingGuarantee",
    "SimpleRecordTranslator",
]
