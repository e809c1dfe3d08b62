"""What belongs to the pipes between pystorm and Storm: names that projects import, for pipes that there are none of."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["JSONSerializer", "MsgpackSerializer", "Serializer", "StormWentAwayError"]


class StormWentAwayError(Exception):
    """Nobody raises it here: there is no other end that could go away (B20)."""

    def __init__(self) -> None:
        super().__init__("Got EOF while reading from Storm")


class Serializer:
    """Wrote messages for Storm. It can be made, and does nothing: values go from task to task as they are."""

    def __init__(self, input_stream: Any = None, output_stream: Any = None, *locks: Any) -> None:
        self.input_stream = input_stream
        self.output_stream = output_stream

    def send_message(self, msg_dict: Any) -> NoReturn:
        """Raises NotImplementedError: emit, ack, fail and log by a component's methods."""
        msg = f"there is no pipe to write {msg_dict!r:.80} to: use the component's emit, ack, fail, log or report_metric"
        raise NotImplementedError(msg)

    def read_message(self) -> NoReturn:
        """Raises NotImplementedError."""
        msg = "there is no pipe to read from: tuples come to process, commands to next_tuple, ack and fail"
        raise NotImplementedError(msg)


class JSONSerializer(Serializer):
    """JSON."""


class MsgpackSerializer(Serializer):
    """MessagePack."""
