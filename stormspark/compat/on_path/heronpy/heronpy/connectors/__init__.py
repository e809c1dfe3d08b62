"""The package ``heronpy.connectors``."""
