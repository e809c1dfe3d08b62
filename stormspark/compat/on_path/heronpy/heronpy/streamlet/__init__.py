"""The package ``heronpy.streamlet``: see `stormspark.streamlet`."""
