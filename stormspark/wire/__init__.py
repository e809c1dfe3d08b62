"""Frames between workers: batches of tuples and of acks, as rows that Spark can carry."""

from stormspark.wire.frames import FRAME_DDL, Frame, FrameKind, frames_from, frames_to_batch

__all__ = ["FRAME_DDL", "Frame", "FrameKind", "frames_from", "frames_to_batch"]
