"""As in heronpy."""

from stormspark.compat.heronpy.window_bolt import SlidingWindowBolt, TumblingWindowBolt, WindowContext

__all__ = ["SlidingWindowBolt", "TumblingWindowBolt", "WindowContext"]
