"""A stage is one declared operation on streamlets. It becomes a spout or a bolt of the topology."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from stormspark.api import BasicBolt, Bolt, SourceSpout, Spout, WindowedBolt
from stormspark.grouping import Grouping
from stormspark.streamlet.bolts import OUTPUT

__all__ = ["Input", "Lowering", "Made", "Stage", "in_order"]

#: The kinds of components that a stage can become.
Made = Spout | SourceSpout | Bolt | BasicBolt | WindowedBolt


class Lowering(NamedTuple):
    """The facts that a stage needs to make its component.

    These are the delivery semantics, the names of all stages, and the settings that only components get.
    """

    semantics: str
    names: Mapping[Stage, str]
    config: Mapping[str, Any]

    @property
    def tracked(self) -> bool:
        """Whether sources emit failed elements again."""
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
    """One operation. If ``name`` is None, the stage's name begins with ``prefix``. ``where`` is the user's line.

    ``make`` returns the component. ``holds_secs`` is the longest time for which the operation's windows keep an element.
    ``streams`` are the streams that the component emits; None for a user's own spout.
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
    """Return the stages that depend only on these sources. Each stage comes after the stages that it subscribes to.

    The order is depth first, because Heron numbers stages in this order.
    """
    order: dict[Stage, None] = {}
    waiting = list(sources)[::-1]
    while waiting:
        stage = waiting.pop()
        if stage not in order and all(one.stage in order for one in stage.inputs):
            order[stage] = None
            waiting += reversed(stage.children)
    return list(order)
