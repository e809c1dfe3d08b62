"""Stand-ins for the classes of pystorm's pipe to Storm. Projects import their names, but stormspark has no such pipe."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["JSONSerializer", "MsgpackSerializer", "Serializer", "StormWentAwayError"]


class StormWentAwayError(Exception):
    """The error that pystorm raises if Storm has closed the pipe. stormspark never raises it, because it has no pipe (B20)."""

    def __init__(self) -> None:
        super().__init__("Got EOF while reading from Storm")


class Serializer:
    """A stand-in for pystorm's serializers. Objects can be made but not used, because stormspark needs no serializer."""

    def __init__(self, input_stream: Any = None, output_stream: Any = None, *locks: Any) -> None:
        self.input_stream = input_stream
        self.output_stream = output_stream

    def send_message(self, msg_dict: Any) -> NoReturn:
        """Raise NotImplementedError. To emit, ack, fail or log, use the component's methods."""
        msg = f"there is no pipe to write {msg_dict!r:.80} to: use the component's emit, ack, fail, log or report_metric"
        raise NotImplementedError(msg)

    def read_message(self) -> NoReturn:
        """Raise NotImplementedError."""
        msg = "there is no pipe to read from: tuples come to process, commands to next_tuple, ack and fail"
        raise NotImplementedError(msg)


class JSONSerializer(Serializer):
    """A stand-in for pystorm's JSON serializer."""


class MsgpackSerializer(Serializer):
    """A stand-in for pystorm's MessagePack serializer."""
