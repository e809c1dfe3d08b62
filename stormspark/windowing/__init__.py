"""Windows over tuples. This package decides which tuples a window has, when it fires, and when a tuple leaves its last window
(C23-C34).

Times are integers, in epoch milliseconds. The package is pure: it has no clock and no timers, and its *items* can be any objects.
`ProcessingTimeWindows` receives the time with every item, and also at the end of every period. `EventTimeWindows` receives the
items' own timestamps, and the watermarks that `Watermarks` computes. Both return windows, which the caller executes, and report
expired items, which the caller acks.
"""

from stormspark.windowing.event_time import EventTimeWindows
from stormspark.windowing.lengths import Count, Duration, Length, as_duration, as_length
from stormspark.windowing.pages import ItemsOfPages, PagedItems, Rows
from stormspark.windowing.processing_time import ProcessingTimeWindows
from stormspark.windowing.settings import WindowSettings
from stormspark.windowing.watermarks import IdlingWatermarks, Watermarks
from stormspark.windowing.window import Window

__all__ = [
    "Count",
    "Duration",
    "EventTimeWindows",
    "IdlingWatermarks",
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
