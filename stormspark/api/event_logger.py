"""Event loggers, which get a sample of what components emit while somebody looks (J20)."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from stormspark.api.worker_hook import WorkerUserContext

__all__ = ["EventInfo", "EventLogger"]

#: What would begin another line.
_BREAKS = {ord(letter): repr(letter)[1:-1] for letter in "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"}

#: A value of more characters is cut in `EventInfo`'s string. A sample of heavy tuples would need as much memory as they, and
#: fill the log.
_LONGEST_VALUE = 10_000


class EventInfo(NamedTuple):
    """A tuple that a task has emitted. ``at`` is in seconds since 1970. ``message_id`` is that of a spout's tuple, or None.

    As a string it is the line that Storm's ``FileBasedEventLogger`` writes: time, component, task, message id and values, each
    value with at most 10,000 characters.

    >>> str(EventInfo(0.0, "split", 7, None, ("a", 1)))[-16:]
    ',split,7,,[a, 1]'
    """

    at: float
    component: str
    task: int
    message_id: Any
    values: tuple[Any, ...]

    def __str__(self) -> str:
        when = time.strftime("%a %b %d %H:%M:%S %Z %Y", time.localtime(self.at))
        message_id = "" if self.message_id is None else _text(self.message_id)
        values = ", ".join(map(_text, self.values))
        return f"{when},{self.component},{self.task},{message_id},[{values}]".translate(_BREAKS)


def _text(value: object) -> str:
    """Return a value as a string. One that has none, such as a number of 5,000 digits, must not end the log for all others."""
    try:
        heavy = isinstance(value, str | bytes | bytearray) and len(value) > _LONGEST_VALUE
        text = str(value[:_LONGEST_VALUE] if heavy else value)  # type: ignore[index]
        return f"{text[:_LONGEST_VALUE]}..." if heavy or len(text) > _LONGEST_VALUE else text
    except Exception as error:
        return f"<{type(value).__name__}: str raised {type(error).__name__}>"


class EventLogger(ABC):
    """Gets events in a worker, while `stormspark debug` or the REST API samples a component.

    ``topology.event.logger.register`` names the class as ``module:Class``. Each worker makes an instance when somebody first
    looks. If a method raises, the error is logged, and the instance gets no more events.

        class ToQueue(EventLogger):
            def prepare(self, conf, arguments, context):
                self.queue = connect(arguments["url"])

            def log(self, event):
                self.queue.put(event.component, event.values)

        conf = Config().register_event_logger(ToQueue, {"url": "redis://..."})
    """

    def prepare(self, conf: Mapping[str, Any], arguments: Any, context: WorkerUserContext) -> None:  # noqa: B027
        """Called first. ``arguments`` are those of the registration, and ``context`` is the worker's."""

    @abstractmethod
    def log(self, event: EventInfo) -> None:
        """Called for each sampled tuple, on the worker's thread, so it must not wait."""

    def close(self) -> None:  # noqa: B027
        """Called when the worker ends."""
