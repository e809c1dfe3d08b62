"""A random topology as plain data, from a seed: what `components` run, and `model` foretells.

A *message* is what a spout emits under one id: (spout, task index, number). A tuple belongs to one message, or to the two that
a join has brought together; it carries their numbers and how often it has been round a loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from stormspark import CustomStreamGrouping
from stormspark.grouping import (
    AllGrouping,
    DirectGrouping,
    FieldsGrouping,
    GlobalGrouping,
    Grouping,
    LoadAwareShuffleGrouping,
    LocalFirstGrouping,
    LocalOrShuffleGrouping,
    NoneGrouping,
    PartialKeyGrouping,
    ShuffleGrouping,
)

__all__ = ["FIELDS", "BoltSpec", "Input", "SpoutSpec", "TopologySpec", "random_topology"]

#: Of every stream: the messages that a tuple belongs to, the number that joins bring together, the round of a loop.
FIELDS = ("messages", "number", "round")


class FirstAndLast(CustomStreamGrouping):
    """The first and the last task; nobody gets odd numbers where ``drops``."""

    def __init__(self, drops: bool) -> None:
        self.drops = drops

    def __repr__(self) -> str:
        return f"FirstAndLast({self.drops})"

    def prepare(self, context: Any, stream: Any, target_tasks: Sequence[int]) -> None:
        self.tasks = sorted({target_tasks[0], target_tasks[-1]})

    def choose_tasks(self, task_id: int, values: Sequence[Any]) -> list[int]:
        return [] if self.drops and values[1] % 2 else self.tasks


@dataclass(frozen=True)
class SpoutSpec:
    """``kind``: "reliable" emits one tuple with an id, "group" three under one id (X68), "unreliable" one without."""

    name: str
    tasks: int
    messages: int
    kind: str


@dataclass(frozen=True)
class Input:
    """One subscription."""

    source: str
    stream: str
    grouping: Grouping | FirstAndLast


@dataclass(frozen=True)
class BoltSpec:
    """A bolt. A loop's tuples go round to the bolt ``loop``, ``rounds`` times."""

    name: str
    tasks: int
    executors: int
    inputs: tuple[Input, ...]
    #: "basic"; "now"; "late", with a tick; "join": pairs of equal numbers, anchored to both, and what finds no partner is acked
    #: with a tick.
    acks: str = "basic"
    anchored: bool = True
    #: Tuples emitted on each stream for each one executed.
    fan_out: dict[str, int] = field(default_factory=dict)
    #: Numbers that it fails, and how: by "exception", by "call" of fail, or by "error", which restarts the task.
    fails: frozenset[int] = frozenset()
    how: str = "exception"
    loop: str | None = None
    rounds: int = 0
    resets: bool = False


@dataclass(frozen=True)
class TopologySpec:
    """Spouts, bolts such that inputs come from what stands before (but for loops), and settings."""

    seed: int
    spouts: tuple[SpoutSpec, ...]
    bolts: tuple[BoltSpec, ...]
    conf: dict[str, Any]


def _groupings(random: Random) -> list[Grouping | FirstAndLast]:
    return [
        ShuffleGrouping(),
        FieldsGrouping("messages"),
        FieldsGrouping(("number", "round")),
        AllGrouping(),
        GlobalGrouping(),
        LocalOrShuffleGrouping(),
        NoneGrouping(),
        PartialKeyGrouping("number"),
        LoadAwareShuffleGrouping(),
        LocalFirstGrouping(),
        FirstAndLast(drops=random.random() < 0.3),
    ]


def random_topology(seed: int) -> TopologySpec:
    """The topology of a seed: always the same one."""
    random = Random(seed)
    spouts = tuple(
        SpoutSpec(
            f"s{i}",
            tasks=random.randint(1, 2),
            messages=random.randint(1, 6),
            kind=random.choice(["reliable", "reliable", "group", "unreliable"]),
        )
        for i in range(random.randint(1, 3))
    )
    streams: dict[str, list[str]] = {spout.name: _streams_of(spout) for spout in spouts}
    bolts: list[BoltSpec] = []
    single = [spout.name for spout in spouts if spout.tasks == 1 and spout.kind != "group"]
    if len(single) >= 2 and random.random() < 0.5:
        inputs = tuple(Input(name, "default", FieldsGrouping("number")) for name in single[:2])
        bolts.append(BoltSpec("join", random.randint(1, 3), 1, inputs, acks="join", fan_out={"default": 1}))
        streams["join"] = ["default"]
    for i in range(random.randint(1, 5)):
        bolt = _random_bolt(f"b{i}", streams, random)
        streams[bolt.name] = list(bolt.fan_out)
        bolts.append(bolt)
    _add_loop(bolts, random)
    conf: dict[str, Any] = {
        "topology.enable.message.timeouts": False,
        "stormspark.task.max.restarts.in.row": 1_000_000,
    }
    if random.random() < 0.3:
        conf["topology.max.spout.pending"] = random.randint(1, 3)
    return TopologySpec(seed, spouts, tuple(bolts), conf)


def _streams_of(spout: SpoutSpec) -> list[str]:
    return ["default", "side"] if spout.kind == "group" else ["default"]


def _random_bolt(name: str, streams: dict[str, list[str]], random: Random) -> BoltSpec:
    tasks = random.randint(1, 4)
    sources = random.sample(sorted(streams), k=min(len(streams), random.randint(1, 2)))
    inputs = []
    for source in sources:
        stream = random.choice(streams[source]) if streams[source] else None
        if stream is not None:
            grouping = DirectGrouping() if stream == "direct" else random.choice(_groupings(random))
            inputs.append(Input(source, stream, grouping))
    acks = random.choice(["basic", "basic", "now", "late"])
    how = random.choice(["exception", "call", "error"])
    if acks == "late":
        how = "call"  # an error would fail what the task holds, and that is a matter of chance
    elif acks == "basic" and how == "call":
        how = "exception"
    fan_out = {
        stream: random.randint(0, 2) for stream in ("default", "side", "direct") if random.random() < 0.6
    }
    return BoltSpec(
        name,
        tasks,
        executors=random.randint(1, tasks),
        inputs=tuple(inputs),
        acks=acks,
        anchored=acks == "basic" or random.random() < 0.8,
        fan_out=fan_out,
        fails=frozenset(random.sample(range(6), random.choice([0, 0, 1]))),
        how=how,
        resets=random.random() < 0.2,
    )


def _add_loop(bolts: list[BoltSpec], random: Random) -> None:
    """Now and then: a bolt sends tuples back to one before it, or to itself, a bounded number of times (A15)."""
    candidates = [position for position, bolt in enumerate(bolts) if bolt.acks in ("basic", "now")]
    if not candidates or random.random() < 0.6:
        return
    begin = random.choice(candidates)
    back = random.choice([position for position in candidates if position <= begin])
    sender, receiver = bolts[begin], bolts[back]
    bolts[begin] = _with(sender, loop=receiver.name, rounds=random.randint(1, 3))
    receiver = bolts[back]
    grouping = random.choice([ShuffleGrouping(), FieldsGrouping("number"), GlobalGrouping()])
    bolts[back] = _with(receiver, inputs=(*receiver.inputs, Input(sender.name, "loop", grouping)))


def _with(bolt: BoltSpec, **changes: Any) -> BoltSpec:
    return BoltSpec(**{**vars(bolt), **changes})
