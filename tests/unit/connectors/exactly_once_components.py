"""A spout whose numbers go on where its state ends, so that after any crash each number is emitted once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stormspark import Fields, OutputFieldsDeclarer, SpoutOutputCollector, TopologyContext
from tests.repeatable_spouts import NumbersFromState

__all__ = ["Numbers"]


class Numbers(NumbersFromState):
    """Emits ``row(n)`` for n = 0, 1, 2 ..., so many in each batch."""

    def __init__(self, row: Any, fields: tuple[str, ...], each_batch: int = 5) -> None:
        self.row, self.declared, self.each_batch = row, fields, each_batch

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        super().open(conf, context, collector)
        self.left = self.each_batch

    def next_tuple(self) -> None:
        if self.left:
            self.left -= 1
            row = self.row(self.n)
            self.n += 1
            if row is not None:
                self.collector.emit(row, message_id=self.n)

    def pre_save(self, checkpoint_id: int) -> None:
        super().pre_save(checkpoint_id)
        self.left = self.each_batch

    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields(*self.declared))
