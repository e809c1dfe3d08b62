"""The Arrow messages in which frames travel between a forwarder and a worker. Each message holds one record batch of frames."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stormspark.extras import pyarrow as pa
from stormspark.wire.frames import FRAME_SCHEMA, Frame, frames_to_batch

__all__ = ["messages_from", "record_batches_in"]

#: A message has at most about this many bytes, so that Spark never has to hold a huge record batch.
_MESSAGE_BYTES = 16 * 1024 * 1024


def record_batches_in(messages: Iterable[pa.Buffer | bytes]) -> list[pa.RecordBatch]:
    """Read the record batches of a request."""
    return [pa.ipc.read_record_batch(pa.py_buffer(message), FRAME_SCHEMA) for message in messages]


def messages_from(frames: Sequence[Frame]) -> list[pa.Buffer]:
    """Pack frames into messages of a bounded size. Only a message with a single frame may be larger."""
    messages: list[pa.Buffer] = []
    begin = size = 0
    for position, frame in enumerate(frames):
        if size and size + len(frame.payload) > _MESSAGE_BYTES:
            messages.append(frames_to_batch(frames[begin:position]).serialize())
            begin, size = position, 0
        size += len(frame.payload)
    if begin < len(frames):
        messages.append(frames_to_batch(frames[begin:]).serialize())
    return messages
