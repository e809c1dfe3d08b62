"""``heronpy.streamlet``: see `stormspark.streamlet`."""
