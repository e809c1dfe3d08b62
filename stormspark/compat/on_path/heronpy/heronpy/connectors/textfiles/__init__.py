"""The package ``heronpy.connectors.textfiles``."""
