"""Frames: the rows that Spark carries between workers. Most frames hold many tuples or many acks."""

from stormspark.wire.frames import FRAME_DDL, Frame, FrameKind, frames_from, frames_to_batch

__all__ = ["FRAME_DDL", "Frame", "FrameKind", "frames_from", "frames_to_batch"]
