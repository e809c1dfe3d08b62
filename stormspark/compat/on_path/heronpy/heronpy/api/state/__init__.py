"""The package ``heronpy.api.state``."""
