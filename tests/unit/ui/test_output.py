"""What tasks log and print, on streams that may have no reader."""

import io
import logging

from rich.console import Console

from stormspark.ui import ProgressLine, TaskOutput


class NoReader(io.StringIO):
    def write(self, text):
        raise BrokenPipeError


def printed(text):
    return logging.LogRecord("stdout", logging.INFO, "", 0, text, None, None)


def test_nobody_has_to_read_what_tasks_print():
    TaskOutput(ProgressLine(Console(file=io.StringIO())), NoReader(), NoReader()).show("a[0]", printed("x"))


def test_quiet_shows_nothing():
    out = io.StringIO()
    TaskOutput(ProgressLine(Console(file=out)), out, out, quiet=True).show("a[0]", printed("x"))
    assert out.getvalue() == ""


def test_own_messages_of_stormspark_are_left_to_others():
    out = io.StringIO()
    output = TaskOutput(ProgressLine(Console(file=out)), out, out)
    record = logging.makeLogRecord({"name": "stormspark.worker", "msg": "ours", "levelname": "INFO"})
    output.show("a[0]", record)
    assert out.getvalue() == ""
