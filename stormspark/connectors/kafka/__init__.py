"""A spout that reads Kafka topics."""

from stormspark.connectors.kafka.config import (
    FirstPollOffsetStrategy,
    KafkaSpoutConfig,
    KafkaSpoutConfigBuilder,
    ProcessingGuarantee,
)
from stormspark.connectors.kafka.record import KafkaRecord
from stormspark.connectors.kafka.spout import KafkaSpout
from stormspark.connectors.kafka.translators import (
    ByTopicRecordTranslator,
    DefaultRecordTranslator,
    RecordTranslator,
    SimpleRecordTranslator,
)

__all__ = [
    "ByTopicRecordTranslator",
    "DefaultRecordTranslator",
    "FirstPollOffsetStrategy",
    "KafkaRecord",
    "KafkaSpout",
    "KafkaSpoutConfig",
    "KafkaSpoutConfigBuilder",
    "ProcessingGuarantee",
    "RecordTranslator",
    "SimpleRecordTranslator",
]
