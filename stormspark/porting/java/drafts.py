"""Drafts record what Java code adds to a topology when it calls builders and declarers. Values in a draft may be unknown."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from stormspark.porting.findings import Place
from stormspark.porting.java.evaluation import Condition
from stormspark.porting.java.values import Pair, Pairs, Value

__all__ = [
    "Builder",
    "Built",
    "ComponentDraft",
    "DeclaredStreams",
    "Declarer",
    "InputDraft",
    "StreamDraft",
    "StreamOf",
    "Streams",
    "Submission",
]


@dataclass(eq=False)
class InputDraft:
    """A call on a declarer that subscribes a bolt to a stream, such as ``shuffleGrouping``."""

    source: Value
    stream: Value
    grouping: str
    fields: Value | None
    place: Place
    #: The object of a custom grouping.
    custom: Value | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(eq=False)
class ComponentDraft:
    """A component that the code has added to a builder."""

    id: Value
    kind: Literal["spout", "bolt"]
    component: Value
    parallelism: Value
    place: Place
    conditions: tuple[Condition, ...] = ()
    inputs: list[InputDraft] = field(default_factory=list)
    settings: list[Pair] = field(default_factory=list)
    tasks: Value | None = None
    #: If the component is a lambda, the fields that it emits.
    fields: tuple[Value, ...] = ()
    committer: bool = False
    #: Methods that could not be followed, although they received the component's declarer and may have called it.
    escapes: list[tuple[str, Place]] = field(default_factory=list)
    shared_memory: bool = False


@dataclass(frozen=True)
class Submission:
    """The submission of a topology: its name, its configuration and its place."""

    name: Value
    conf: Pairs | None
    place: Place


@dataclass(eq=False)
class Builder(Value):
    """A builder, with everything that the code has added to it."""

    kind: str
    #: The place that makes the builder. All builders that one place makes count as one topology.
    place: Place
    #: The arguments of the builder's constructor.
    arguments: tuple[Value, ...] = ()
    #: The branches and loops around the place.
    conditions: tuple[Condition, ...] = ()
    components: list[ComponentDraft] = field(default_factory=list)
    submissions: list[Submission] = field(default_factory=list)
    #: Whether the walk that made the builder has reached the end of the code; see `evaluation`.
    followed: bool = True
    #: Methods that could not be followed, although they received the builder and may have called it.
    escapes: list[tuple[str, Place]] = field(default_factory=list)
    #: Other methods of the builder that were called, such as those that add worker hooks and state spouts.
    others: list[tuple[str, Place]] = field(default_factory=list)


@dataclass(eq=False)
class Declarer(Value):
    """The object that ``setBolt`` and ``setSpout`` return."""

    builder: Builder
    draft: ComponentDraft


@dataclass(eq=False)
class Streams(Value):
    """A builder of Trident, of Storm's Streams API or of Heron's streamlets. It has the operations on its streams."""

    kind: str
    place: Place
    operations: list[tuple[str, str, Place]] = field(default_factory=list)
    submissions: list[Submission] = field(default_factory=list)


@dataclass(eq=False)
class StreamOf(Value):
    """A stream of a `Streams` builder."""

    of: Streams


@dataclass(eq=False)
class Built(Value):
    """The result of ``builder.createTopology()``."""

    builder: Builder | Streams


@dataclass(frozen=True)
class StreamDraft:
    """A call of ``declare`` or ``declareStream``."""

    id: Value
    fields: Value
    direct: bool
    place: Place
    conditions: tuple[Condition, ...]


@dataclass(eq=False)
class DeclaredStreams(Value):
    """The argument of ``declareOutputFields``. It records the streams that the method declares."""

    streams: list[StreamDraft] = field(default_factory=list)
    #: Methods that could not be followed, although they received this object and may have declared streams.
    escapes: list[tuple[str, Place]] = field(default_factory=list)
