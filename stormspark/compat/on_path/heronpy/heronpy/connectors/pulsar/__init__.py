"""The package ``heronpy.connectors.pulsar``."""
