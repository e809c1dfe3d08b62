"""The module ``heronpy.api.bolt.window_bolt``: some of the names of `stormspark.compat.heronpy.window_bolt`."""

from stormspark.compat.heronpy.window_bolt import SlidingWindowBolt, TumblingWindowBolt, WindowContext

__all__ = ["SlidingWindowBolt", "TumblingWindowBolt", "WindowContext"]
