"""The package ``heronpy.connectors.mock``."""
