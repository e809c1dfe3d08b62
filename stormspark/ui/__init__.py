"""The output for people who watch a topology run: the progress line, warnings, and the table at the end."""

from stormspark.ui.line import ProgressLine
from stormspark.ui.log_lines import LogLines
from stormspark.ui.output import TaskOutput
from stormspark.ui.progress import Progress, Speedometer
from stormspark.ui.summary import print_summary, summary_table
from stormspark.ui.watch import Ending, InterruptedStartError, Interrupts, watch

__all__ = [
    "Ending",
    "InterruptedStartError",
    "Interrupts",
    "LogLines",
    "Progress",
    "ProgressLine",
    "Speedometer",
    "TaskOutput",
    "print_summary",
    "summary_table",
    "watch",
]
