"""The package ``heronpy.api.component``."""
