"""Translates Kafka's consumer settings from the Java client's names to librdkafka's (K6).

Settings for what stormspark does itself are rejected.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from stormspark.errors import InvalidTopologyError

__all__ = ["client_conf", "java_deserializers"]

_log = logging.getLogger(__name__)

#: The settings that have another name in librdkafka. All other settings have the same name, or don't exist in librdkafka.
_RENAMED = {
    "fetch.max.wait.ms": "fetch.wait.max.ms",
    "receive.buffer.bytes": "socket.receive.buffer.bytes",
    "send.buffer.bytes": "socket.send.buffer.bytes",
    "request.timeout.ms": "socket.timeout.ms",
    "socket.connection.setup.timeout.max.ms": "socket.connection.setup.timeout.ms",
}

#: Settings that conflict with what stormspark does, or that librdkafka does not have. The values say what to do instead.
_REFUSED = {
    "enable.auto.commit": "offsets are committed as tuples are acked; choose a processing_guarantee",  # K2
    "enable.auto.offset.store": "offsets are committed as tuples are acked; choose a processing_guarantee",
    "auto.commit.interval.ms": "use offset_commit_period_ms",  # K1
    "bootstrap.servers": "give the servers as the first argument",
    "enable.partition.eof": "stormspark needs it itself",
    "sasl.jaas.config": (
        "librdkafka does not support JAAS: set sasl.mechanism, sasl.username and sasl.password (for Kerberos "
        "sasl.kerberos.keytab and sasl.kerberos.principal)"
    ),
    "sasl.login.callback.handler.class": "a Java class; librdkafka takes sasl.oauthbearer.method=oidc with its settings",
    "sasl.client.callback.handler.class": "a Java class; librdkafka takes sasl.oauthbearer.method=oidc with its settings",
    "ssl.truststore.location": "librdkafka reads PEM: set ssl.ca.location (keytool and openssl convert a JKS)",
    "ssl.truststore.password": "librdkafka reads PEM: set ssl.ca.location, which has no password",
    "ssl.truststore.type": "librdkafka reads PEM: set ssl.ca.location",
    "ssl.truststore.certificates": "set ssl.ca.pem",
    "ssl.keystore.type": "librdkafka reads a PKCS#12 from ssl.keystore.location, or PEM from ssl.certificate.location",
    "ssl.keystore.key": "set ssl.key.pem",
    "ssl.keystore.certificate.chain": "set ssl.certificate.pem",
}

#: Settings that have no effect in stormspark: those of consumers that share the partitions of a group, and those of the Java
#: client's internals. They are dropped with a warning.
_MEANINGLESS = {
    "default.api.timeout.ms", "exclude.internal.topics", "group.instance.id", "group.protocol", "group.remote.assignor",
    "heartbeat.interval.ms", "interceptor.classes", "max.poll.interval.ms", "max.poll.records", "metric.reporters",
    "metrics.num.samples", "metrics.recording.level", "metrics.sample.window.ms", "partition.assignment.strategy",
    "session.timeout.ms",
}  # fmt: skip

#: Fetches are large, and go on as soon as there is room. With librdkafka's own default they would wait a whole second.
_TUNED = {
    "fetch.message.max.bytes": 4 << 20,
    "fetch.wait.max.ms": 100,
    "fetch.queue.backoff.ms": 2,
    "queued.min.messages": 100_000,
    "queued.max.messages.kbytes": 65_536,
    "reconnect.backoff.ms": 50,
    "reconnect.backoff.max.ms": 1000,
}

_OURS = {
    "enable.auto.commit": False,
    "enable.auto.offset.store": False,
    "enable.partition.eof": True,  # a range may end with offsets that have no message
    "auto.offset.reset": "error",  # missing messages are found and reported, not skipped silently
    "log_level": 0,  # otherwise each try to connect writes to stderr; `error_cb` gets the errors, too
}


def client_conf(servers: str, group_id: str | None, props: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration for librdkafka. Raises `InvalidTopologyError` for settings that can't be set.

    >>> conf = client_conf("broker:9092", "words", {"fetch.max.wait.ms": 20, "security.protocol": "SASL_SSL"})
    >>> conf["bootstrap.servers"], conf["group.id"], conf["fetch.wait.max.ms"], conf["security.protocol"]
    ('broker:9092', 'words', 20, 'SASL_SSL')
    """
    given: dict[str, Any] = {}
    for key, value in props.items():
        name = _RENAMED.get(key, key)
        if key in _REFUSED:
            msg = f"KafkaSpoutConfig: {key} can't be set: {_REFUSED[key]}"
            raise InvalidTopologyError(msg)
        if key == "auto.offset.reset":
            if value != "earliest":
                msg = (
                    f"KafkaSpoutConfig: auto.offset.reset={value!r} is not supported: use first_poll_offset_strategy for where "
                    f"to begin. Messages that retention has removed are skipped, as with 'earliest'"  # K3, K5
                )
                raise InvalidTopologyError(msg)
        elif key in _MEANINGLESS:
            _log.warning("KafkaSpoutConfig: %s has no effect here and is ignored", key)
        elif key not in _DESERIALIZERS:
            given[name] = value
    # Without a group nothing is ever committed, but librdkafka needs the name of a group.
    group = group_id or given.pop("group.id", None)
    return {"bootstrap.servers": servers, **_TUNED, **given, "group.id": group or "stormspark", **_OURS}


_DESERIALIZERS = {"key.deserializer": "key", "value.deserializer": "value"}


def java_deserializers(props: Mapping[str, Any]) -> dict[str, str]:
    """Return the deserializers that a Java configuration names, by ``key`` and ``value``."""
    return {_DESERIALIZERS[key]: str(value) for key, value in props.items() if key in _DESERIALIZERS}
