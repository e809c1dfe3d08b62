"""What is written down of a chunk is what its task executes, though another thread may cut the chunk short meanwhile."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from stormspark import Fields
from stormspark.api import TupleSource
from stormspark.checkpoint.recorded_inputs import load_pairs
from stormspark.worker.replays.recording_inputs import TaskInputs


class Cut(list[Any]):
    """Is cut short after it has been read once, as by `BoltTask.look`."""

    def __iter__(self) -> Iterator[Any]:
        yield from list(self[:])
        del self[1:]


class Recording:
    """Keeps the chunks."""

    def __init__(self) -> None:
        self.chunks: list[Any] = []

    def add(self, chunk: Any) -> None:
        self.chunks.append(chunk)


def test_a_chunk_that_is_cut_while_it_is_written_down_can_be_read() -> None:
    sources = [TupleSource("a", task, "default", Fields("value")) for task in (1, 2, 1)]
    chunk = Cut(((number,), source, None) for number, source in enumerate(sources))
    recording = Recording()
    inputs = TaskInputs("b", 0, recording)  # type: ignore[arg-type]  # no files
    inputs.begins(chunk)
    inputs.ended(1)
    ((_, _, executed, written, _),) = recording.chunks
    assert executed == 1
    read = [(str(source), values) for source, values in load_pairs(written)]
    assert read == [(str(source), (number,)) for number, source in enumerate(sources)]
