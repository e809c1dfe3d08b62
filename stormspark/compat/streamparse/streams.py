"""Output streams, and references to them (A33, A35)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stormspark.compat.streamparse.errors import SpecTypeError
from stormspark.user_line import user_line

__all__ = ["GlobalStreamId", "Stream", "StreamInfo"]


@dataclass
class StreamInfo:
    """The fields of a stream, and whether it is direct."""

    output_fields: list[str]
    direct: bool = False


class Stream:
    """An output stream. List it in a component's ``outputs`` (A33).

    >>> Stream(["word"], name="errors").direct
    False
    """

    def __init__(
        self, fields: list[str] | tuple[str, ...] | None = None, name: str = "default", direct: bool = False
    ) -> None:
        if fields is not None and not isinstance(fields, list | tuple):
            _refuse(f"Stream fields must be a list, tuple, or None; given: {fields!r}")
        self.fields = list(fields or ())
        for field in self.fields:
            if not isinstance(field, str):
                _refuse(f"All field names must be strings; given: {field!r}")
        if not isinstance(name, str):
            _refuse(f"Stream name must be a string; given: {name!r}")
        if not isinstance(direct, bool):
            _refuse(f'"direct" must be either True or False; given: {direct!r}')
        self.name = name
        self.direct = direct

    def __repr__(self) -> str:
        return f"Stream(fields={self.fields!r}, name={self.name!r}, direct={self.direct!r})"


class GlobalStreamId:
    """A reference to a stream, by the names of the component and the stream.

    The component need not exist yet, so that loops can be written (A35).

    >>> GlobalStreamId(componentId="count", streamId="default") == GlobalStreamId("count", "default")
    True
    """

    def __init__(self, componentId: Any = None, streamId: str | None = None) -> None:  # noqa: N803 - Storm's names
        self.componentId = componentId  # a name, or a spec that has no name yet
        self.streamId = streamId

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, GlobalStreamId)
            and self.componentId == other.componentId
            and self.streamId == other.streamId
        )

    def __hash__(self) -> int:
        return hash(self.componentId) ^ hash(self.streamId)

    def __repr__(self) -> str:
        return f"GlobalStreamId(componentId={self.componentId!r}, streamId={self.streamId!r})"


def _refuse(problem: str) -> None:
    msg = f"{user_line()}: {problem}"
    raise SpecTypeError(msg)
