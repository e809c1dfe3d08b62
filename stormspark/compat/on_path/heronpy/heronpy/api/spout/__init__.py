"""The package ``heronpy.api.spout``."""
