"""Frames: the rows that Spark carries between workers. Each frame holds many tuples or acks."""

from stormspark.wire.frames import FRAME_DDL, Frame, FrameKind, frames_from, frames_to_batch

__all__ = ["FRAME_DDL", "Frame", "FrameKind", "frames_from", "frames_to_batch"]
