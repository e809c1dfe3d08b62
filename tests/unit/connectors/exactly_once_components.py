"""A spout whose numbers go on where its state ends, so that after any crash each number is emitted once."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping
from typing import Any

from stormspark import Fields, OutputFieldsDeclarer, Spout, SpoutOutputCollector, TopologyContext
from stormspark.api.state import StatefulComponent

__all__ = ["Numbers"]


class Numbers(StatefulComponent, Spout):
    """Emits ``row(n)`` for n = 0, 1, 2 ..., so many in each batch."""

    def __init__(self, row: Any, fields: tuple[str, ...], each_batch: int = 5) -> None:
        self.row, self.fields, self.each_batch = row, fields, each_batch

    def init_state(self, state: MutableMapping[Any, Any]) -> None:
        self.state, self.n = state, state.get("n", 0)

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        self.collector, self.left = collector, self.each_batch

    def next_tuple(self) -> None:
        if self.left:
            self.left -= 1
            row = self.row(self.n)
            self.n += 1
            if row is not None:
                self.collector.emit(row, message_id=self.n)

    def pre_save(self, checkpoint_id: int) -> None:
        self.state["n"], self.left = self.n, self.each_batch

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields(*self.fields))
