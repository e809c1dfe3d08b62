"""Stand-ins for pystorm's classes around its pipe to Storm. Projects import their names, but there is no pipe here."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["JSONSerializer", "MsgpackSerializer", "Serializer", "StormWentAwayError"]


class StormWentAwayError(Exception):
    """Storm has closed the pipe. This is never raised here, because there is no pipe (B20)."""

    def __init__(self) -> None:
        super().__init__("Got EOF while reading from Storm")


class Serializer:
    """A stand-in for pystorm's serializers. It can be made but not used: values go from task to task as they are."""

    def __init__(self, input_stream: Any = None, output_stream: Any = None, *locks: Any) -> None:
        self.input_stream = input_stream
        self.output_stream = output_stream

    def send_message(self, msg_dict: Any) -> NoReturn:
        """Raise NotImplementedError: emit, ack, fail and log with the component's methods."""
        msg = f"there is no pipe to write {msg_dict!r:.80} to: use the component's emit, ack, fail, log or report_metric"
        raise NotImplementedError(msg)

    def read_message(self) -> NoReturn:
        """Raise NotImplementedError."""
        msg = "there is no pipe to read from: tuples come to process, commands to next_tuple, ack and fail"
        raise NotImplementedError(msg)


class JSONSerializer(Serializer):
    """The name of pystorm's JSON serializer."""


class MsgpackSerializer(Serializer):
    """The name of pystorm's MessagePack serializer."""
