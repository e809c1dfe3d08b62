"""Raises ImportError, as `heronpy.connectors.pulsar.pulsarspout` does."""

from heronpy.connectors.pulsar import pulsarspout

__all__ = ["pulsarspout"]
