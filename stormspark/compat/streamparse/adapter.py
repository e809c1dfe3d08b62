"""What the adapters for pystorm's spouts and bolts have in common: they are pickled, and handle users' exceptions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, TypeVar

from stormspark.api import Component as ApiComponent
from stormspark.api import OutputFieldsDeclarer
from stormspark.compat.streamparse.component import Component
from stormspark.compat.streamparse.shipping import packed, unpacked
from stormspark.compat.streamparse.streams import StreamInfo

__all__ = ["Adapter", "handle"]

_C = TypeVar("_C", bound=Component)


class Adapter(ApiComponent, Generic[_C]):
    """An adapter that runs a pystorm component. The task imports the component's class, and makes the instance."""

    def __init__(
        self, component: type[_C], streams: Mapping[str, StreamInfo], *, early: bool = False
    ) -> None:
        self.component = component
        self.streams = dict(streams)
        #: Whether the component gets what streamparse 1 and 2 had, see `stormspark.compat.streamparse.early`.
        self.early = early

    def __reduce__(self) -> tuple[Any, ...]:
        return _revived, (type(self), packed(self.component), self.streams, self.early)

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        """Declare the component's streams."""
        for name, stream in self.streams.items():
            declarer.declare_stream(name, stream.output_fields, direct=stream.direct)


def _revived(
    adapter: type[Adapter[Any]], component: bytes, streams: Mapping[str, StreamInfo], early: bool
) -> Any:
    return adapter(unpacked(component), streams, early=early)


def handle(component: Component, error: Exception) -> None:
    """Handle an exception as pystorm does (C14). Raise it again if it ends the instance (``exit_on_exception``)."""
    try:
        component._handle_run_exception(error)
    except Exception as another:
        component._stormspark.reports.report_error(another)
    if component.exit_on_exception:
        raise error
