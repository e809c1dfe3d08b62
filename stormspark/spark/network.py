"""Reads the settings of connections between hosts from Spark's configuration and from the topology's."""

from __future__ import annotations

import re
from dataclasses import dataclass

from pyspark.sql import SparkSession

from stormspark.config import Settings
from stormspark.spark.certificate import encrypting_key, new_certificate
from stormspark.worker.host.addresses import Address, Ports, without_brackets

__all__ = ["Network"]

_SPARKS_RETRIES = 16
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


@dataclass(frozen=True)
class Network:
    """The settings of connections between hosts, in the form that `Nimbus` and `Attempt` take.

    ``address`` is the driver's address for Spark executors on other hosts. It is None if there are no such executors.
    """

    address: Address | None
    certificate: bytes
    worker_ports: Ports
    silence_secs: float

    @classmethod
    def of(cls, spark: SparkSession, settings: Settings) -> Network:
        """Read the configuration. Raises `UnsupportedEnvironmentError` if traffic has to be encrypted and can't be."""
        context = spark.sparkContext
        conf, master = context.getConf(), context.master or ""
        retries = settings.port_retries
        if retries is None:
            retries = int(conf.get("spark.port.maxRetries") or _SPARKS_RETRIES)
        host, bind = (
            without_brackets(conf.get(key) or "") for key in ("spark.driver.host", "spark.driver.bindAddress")
        )
        address = None
        one_process = re.match(r"local(\[|$)", master) is not None
        if not one_process and not (master.startswith("local-cluster") and host in _LOOPBACK):
            address = Address(
                host, bind or None, Ports(settings.nimbus_port, retries, "stormspark.nimbus.port")
            )
        key = None if address is None else encrypting_key(conf.get, settings.network_crypto)
        return cls(
            address,
            b"" if key is None else new_certificate(key),
            Ports(settings.worker_port, retries, "stormspark.worker.port"),
            settings.network_timeout_secs,
        )

    def workers_log_folder(self, named: str | None, drivers: str) -> str | None:
        """Return the log folder for workers: the one that the user has ``named``, or else the driver's folder ``drivers``.

        Workers get the driver's folder only if all of Spark runs on this host, because then all its processes belong to the
        driver's user. Otherwise return None, which stands for each worker's own default. Even on one host the default may differ,
        if the driver's temporary folder has changed since Spark was started.
        """
        return named or (drivers if self.address is None else None)
