"""Windows over tuples: what is in them, when they fire, when a tuple leaves (C23-C34). Times are integers, epoch milliseconds.

Pure: no clock, no timers, no tuples even. `ProcessingTimeWindows` is told the time with every item and whenever its period
has passed; `EventTimeWindows` is told the items' own timestamps and the watermarks that `Watermarks` computes. Who calls
them executes the windows that they give and acks the items that they say have expired.
"""

from stormspark.windowing.event_time import EventTimeWindows
from stormspark.windowing.lengths import Count, Duration, Length, as_duration, as_length
from stormspark.windowing.pages import ItemsOfPages, PagedItems, Rows
from stormspark.windowing.processing_time import ProcessingTimeWindows
from stormspark.windowing.settings import WindowSettings
from stormspark.windowing.watermarks import Watermarks
from stormspark.windowing.window import Window

__all__ = [
    "Count",
    "Duration",
    "EventTimeWindows",
    "ItemsOfPages",
    "Length",
    "PagedItems",
    "ProcessingTimeWindows",
    "Rows",
    "Watermarks",
    "Window",
    "WindowSettings",
    "as_duration",
    "as_length",
]
