"""A stage: one operation of a topology of streamlets, as written, and the spout or bolt that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stormspark.api import BasicBolt, Bolt, SourceSpout, Spout, WindowedBolt
from stormspark.grouping import Grouping
from stormspark.streamlet.bolts import OUTPUT

__all__ = ["Input", "Lowering", "Made", "Stage", "in_order"]

#: What a stage becomes.
Made = Spout | SourceSpout | Bolt | BasicBolt | WindowedBolt


class Lowering(NamedTuple):
    """What a stage has to know to become a component: the delivery semantics, the names of all stages, and what of the
    configuration is not for the engine.
    """

    semantics: str
    names: Mapping[Stage, str]
    config: Mapping[str, Any]

    @property
    def tracked(self) -> bool:
        """Whether sources emit again what has failed."""
        return self.semantics != "ATMOST_ONCE"

    @property
    def stateful(self) -> bool:
        """Whether batches are transactions."""
        return self.semantics == "EFFECTIVELY_ONCE"


class Input(NamedTuple):
    """A stream that a stage subscribes to."""

    stage: Stage
    stream: str
    grouping: Grouping


@dataclass(eq=False)
class Stage:
    """One operation. ``prefix`` is what its name begins with unless ``name`` is given; ``where`` is the user's line.

    ``make`` gives the component. ``holds_secs`` is how long windows hold an element. ``streams`` are those that it emits; None
    for a spout of the user's own.
    """

    prefix: str
    where: str
    make: Callable[[Lowering], Made]
    inputs: tuple[Input, ...] = ()
    partitions: int = 1
    name: str | None = None
    holds_secs: float = 0
    streams: tuple[str, ...] | None = (OUTPUT,)
    children: list[Stage] = field(default_factory=list)

    def __post_init__(self) -> None:
        for one in self.inputs:
            one.stage.children.append(self)


def in_order(sources: Iterable[Stage]) -> list[Stage]:
    """All stages that come of ``sources`` alone, each after those it subscribes to: depth first, as Heron numbers their names."""
    order: dict[Stage, None] = {}
    waiting = list(sources)[::-1]
    while waiting:
        stage = waiting.pop()
        if stage not in order and all(one.stage in order for one in stage.inputs):
            order[stage] = None
            waiting += reversed(stage.children)
    return list(order)
