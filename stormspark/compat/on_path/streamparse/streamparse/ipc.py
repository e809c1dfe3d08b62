"""The module of streamparse 1 for the pipe to Storm. stormspark has no pipe; tuples and logs have their names here."""

import json
import logging

from stormspark.compat.streamparse.component import LogStream
from stormspark.compat.streamparse.pipes import JSONSerializer
from stormspark.compat.streamparse.task_log import TASK_LEVELS
from stormspark.compat.streamparse.tuples import Tuple

__all__ = ["LogStream", "Tuple", "json", "log", "send_message"]

#: Raises an error that says which methods to use.
send_message = JSONSerializer().send_message


def log(message: object, level: str | None = None) -> None:
    """Write a message to the log of the task that calls this."""
    logging.getLogger("streamparse").log(TASK_LEVELS.get(level or "info", logging.INFO), "%s", message)
