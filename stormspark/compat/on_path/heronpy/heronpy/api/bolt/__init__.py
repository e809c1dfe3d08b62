"""The package ``heronpy.api.bolt``."""
