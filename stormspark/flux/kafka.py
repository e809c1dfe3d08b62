"""Stand-ins for Storm's Kafka classes in Flux files: the builder, the configuration, the retry service (K1, K4, K23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark.api import ExponentialBackoff
from stormspark.connectors import KafkaSpoutConfig
from stormspark.connectors.kafka.config import (
    FirstPollOffsetStrategy,
    ProcessingGuarantee,
)
from stormspark.connectors.kafka.config import KafkaSpoutConfigBuilder as _Builder
from stormspark.errors import InvalidTopologyError
from stormspark.flux.java_values import TimeUnit

_FOR_EVER = 2**31 - 1


class KafkaSpoutConfigBuilder(_Builder):
    """A stand-in for ``KafkaSpoutConfig$Builder``. The topics are given as names, as a list of names, or as a pattern."""

    def __init__(self, servers: str, *topics: Any) -> None:
        super().__init__(servers, topics[0] if len(topics) == 1 else topics)

    def set_prop(self, key: str | Mapping[str, Any], value: Any = None) -> KafkaSpoutConfigBuilder:
        """Add one setting, or a mapping of several."""
        self.set_props(key if isinstance(key, Mapping) else {key: value})
        return self

    def set_first_poll_offset_strategy(
        self, strategy: FirstPollOffsetStrategy | str
    ) -> KafkaSpoutConfigBuilder:
        """Set the strategy. ``strategy`` may also be the name of a constant."""
        super().set_first_poll_offset_strategy(_constant(FirstPollOffsetStrategy, strategy))
        return self

    def set_processing_guarantee(self, guarantee: ProcessingGuarantee | str) -> KafkaSpoutConfigBuilder:
        """Set the guarantee. ``guarantee`` may also be the name of a constant."""
        super().set_processing_guarantee(_constant(ProcessingGuarantee, guarantee))
        return self

    def set_start_time_stamp(self, timestamp: int) -> KafkaSpoutConfigBuilder:
        """Set the start timestamp, in milliseconds since 1970."""
        self.set_start_timestamp(timestamp)
        return self

    def set_metrics_time_bucket_size_in_secs(self, seconds: int) -> KafkaSpoutConfigBuilder:
        """Do nothing, because stormspark's metrics have their own intervals."""
        return self

    def set_tuple_listener(self, listener: object) -> KafkaSpoutConfigBuilder:
        """Raise `InvalidTopologyError`, because stormspark has no tuple listeners."""
        msg = "there are no tuple listeners here: use a subclass of KafkaSpout with open, ack and fail"
        raise InvalidTopologyError(msg)


def _constant(kind: Any, name: str) -> Any:
    if name not in kind.__members__:
        msg = f"there is no {kind.__name__} {name!r}; choose one of {', '.join(kind.__members__)}"
        raise InvalidTopologyError(msg)
    return kind[name]


def kafka_spout_config(builder: _Builder) -> KafkaSpoutConfig:
    """Stand in for the constructor of Java's KafkaSpoutConfig. As in Java, its argument is the builder."""
    if not isinstance(builder, _Builder):
        msg = f"KafkaSpoutConfig needs a KafkaSpoutConfig$Builder, as a ref: to a component, got {builder!r:.80}"
        raise InvalidTopologyError(msg)
    return builder.build()


class TimeInterval:
    """A stand-in for Java's TimeInterval: a length of time, in one of Java's units.

    >>> TimeInterval(5, TimeUnit.MILLISECONDS).secs, TimeInterval.seconds(2).secs
    (0.005, 2.0)
    """

    def __init__(self, length: int, unit: TimeUnit) -> None:
        self.secs = length * unit.value

    @classmethod
    def seconds(cls, length: int) -> TimeInterval:
        """Return an interval of ``length`` seconds."""
        return cls(length, TimeUnit.SECONDS)

    @classmethod
    def milli_seconds(cls, length: int) -> TimeInterval:
        """Return an interval of ``length`` milliseconds."""
        return cls(length, TimeUnit.MILLISECONDS)

    @classmethod
    def micro_seconds(cls, length: int) -> TimeInterval:
        """Return an interval of ``length`` microseconds."""
        return cls(length, TimeUnit.MICROSECONDS)


def retry_exponential_backoff(
    initial_delay: TimeInterval, delay_period: TimeInterval, max_retries: int, max_delay: TimeInterval
) -> ExponentialBackoff:
    """Stand in for ``KafkaSpoutRetryExponentialBackoff`` (K4). With Java's largest int, retries never end."""
    retries = None if max_retries >= _FOR_EVER else max_retries
    return ExponentialBackoff(initial_delay.secs, delay_period.secs, max_delay.secs, retries)
