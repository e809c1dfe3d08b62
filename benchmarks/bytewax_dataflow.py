"""The word count as a Bytewax user writes it; `benchmarks.bytewax_peer` runs one process of it for each worker.

    python bytewax_dataflow.py PROCESS ADDRESSES BATCH        (with a Python that has Bytewax, and the repository on its path)

The same sentences as everywhere here, split, keyed by word, counted in Bytewax's keyed state. Its documentation counts
words by ``count_final``, which ends with its input; over an endless one it is ``stateful_batch``, whose logic is called once
for all words of a key that came together, and is a fifth faster than a function a word (``stateful_flat_map``). It emits
nothing, as the peers' counting bolts. There are no acks and, without a recovery store, no snapshots: if a process dies
the counts are gone.
Each line on stdin is answered with the number of words that this process has counted.
"""

from __future__ import annotations

import os
import sys
import threading
from random import Random
from typing import Any

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.operators import StatefulBatchLogic
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.run import cli_main

from benchmarks.data import sentences


class _Sentences(StatelessSourcePartition[str]):  # type: ignore[misc]
    """Random sentences for ever."""

    def __init__(self, index: int, batch: int) -> None:
        self._items, self._random, self._batch = sentences(), Random(7 + index).random, batch

    def next_batch(self) -> list[str]:
        items, random = self._items, self._random
        return [items[int(random() * len(items))] for _ in range(self._batch)]


class Sentences(DynamicSource[str]):  # type: ignore[misc]
    """As many spouts as workers."""

    def __init__(self, batch: int) -> None:
        self._batch = batch

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Sentences:
        """The spout of one worker."""
        return _Sentences(worker_index, self._batch)


class _Nothing(StatelessSinkPartition[Any]):  # type: ignore[misc]
    def write_batch(self, items: list[Any]) -> None:
        pass


class Nothing(DynamicSink[Any]):  # type: ignore[misc]
    """Forgets what it gets, which is nothing."""

    def build(self, step_id: str, worker_index: int, worker_count: int) -> _Nothing:
        """The sink of one worker."""
        return _Nothing()


class Counted:
    """How many words this process has counted."""

    words = 0


def split(sentence: str) -> list[str]:
    """Sentence -> words."""
    return sentence.split(" ")


class Count(StatefulBatchLogic[str, Any, int]):  # type: ignore[misc]
    """Counts one word."""

    def __init__(self, so_far: int | None) -> None:
        self.count = so_far or 0

    def on_batch(self, values: list[str]) -> tuple[tuple[()], bool]:
        """Count those that came together, and stay."""
        self.count += len(values)
        Counted.words += len(values)
        return (), False

    def snapshot(self) -> int:
        """For a recovery store, if there were one."""
        return self.count


def dataflow(batch: int) -> Dataflow:
    """Sentences, split, key, count."""
    flow = Dataflow("word_count")
    lines = op.input("sentences", flow, Sentences(batch))
    words = op.flat_map("split", lines, split)
    keyed = op.key_on("key", words, lambda word: word)
    counts = op.stateful_batch("count", keyed, Count)
    op.output("out", counts, Nothing())
    return flow


def _answer() -> None:
    for _ in sys.stdin:
        print(Counted.words, flush=True)
    os._exit(0)  # who asked is gone


def main(process: str, addresses: str, batch: str) -> None:
    """One process of the cluster; for ever."""
    threading.Thread(target=_answer, daemon=True).start()
    known = addresses.split(";")
    if len(known) == 1:
        cli_main(dataflow(int(batch)))
    else:
        cli_main(dataflow(int(batch)), process_id=int(process), addresses=known)


if __name__ == "__main__":
    main(*sys.argv[1:])
