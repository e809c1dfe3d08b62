"""What builders, declarers and configurations of Java were given, known or not."""

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
    """A grouping as it was called."""

    source: Value
    stream: Value
    grouping: str
    fields: Value | None
    place: Place
    #: What is behind a custom grouping.
    custom: Value | None = None
    conditions: tuple[Condition, ...] = ()


@dataclass(eq=False)
class ComponentDraft:
    """A component as it was added."""

    id: Value
    kind: Literal["spout", "bolt"]
    component: Value
    parallelism: Value
    place: Place
    conditions: tuple[Condition, ...] = ()
    inputs: list[InputDraft] = field(default_factory=list)
    settings: list[Pair] = field(default_factory=list)
    tasks: Value | None = None
    #: Of a lambda.
    fields: tuple[Value, ...] = ()
    committer: bool = False
    #: Methods that its declarer was handed to and that could not be followed.
    escapes: list[tuple[str, Place]] = field(default_factory=list)
    shared_memory: bool = False


@dataclass(frozen=True)
class Submission:
    """Where a topology was submitted, under which name, with which configuration."""

    name: Value
    conf: Pairs | None
    place: Place


@dataclass(eq=False)
class Builder(Value):
    """A builder, and all that was added to it."""

    kind: str
    place: Place
    #: Where it is made: one place is one topology, however often the code comes by.
    arguments: tuple[Value, ...] = ()
    #: Branches and loops that it is made in.
    conditions: tuple[Condition, ...] = ()
    components: list[ComponentDraft] = field(default_factory=list)
    submissions: list[Submission] = field(default_factory=list)
    #: Whether the code that adds to it was followed to its end.
    followed: bool = True
    #: Methods that it was handed to and that could not be followed.
    escapes: list[tuple[str, Place]] = field(default_factory=list)
    #: What else was called on it: worker hooks, state spouts.
    others: list[tuple[str, Place]] = field(default_factory=list)


@dataclass(eq=False)
class Declarer(Value):
    """What ``setBolt`` and ``setSpout`` return."""

    builder: Builder
    draft: ComponentDraft


@dataclass(eq=False)
class Streams(Value):
    """Builders of Trident, of Storm's streams and of Heron's streamlets, and the operations on them."""

    kind: str
    place: Place
    operations: list[tuple[str, str, Place]] = field(default_factory=list)
    submissions: list[Submission] = field(default_factory=list)


@dataclass(eq=False)
class StreamOf(Value):
    """A stream of such a builder."""

    of: Streams


@dataclass(eq=False)
class Built(Value):
    """``builder.createTopology()``."""

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
    """What `declareOutputFields` is given, to see what it declares."""

    streams: list[StreamDraft] = field(default_factory=list)
    #: Methods that it was handed to and that could not be followed.
    escapes: list[tuple[str, Place]] = field(default_factory=list)
