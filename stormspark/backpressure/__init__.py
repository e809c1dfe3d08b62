"""May this spout emit, and for how long? Pure: time and levels are arguments."""

from stormspark.backpressure.quantum import SpoutQuantum
from stormspark.backpressure.water_marks import WaterMarks

__all__ = ["SpoutQuantum", "WaterMarks"]
