"""A random topology as plain data, from a seed: what `components` run, and `model` foretells.

A *message* is what a spout emits under one id: (spout, task index, number, life of the task). A tuple belongs to one message, or
to the two that a join has brought together; it carries them, their number, how often it has been round a loop, and its sender's
count of what it has emitted so far.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any, TypeAlias

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

__all__ = [
    "FIELDS",
    "WAITS",
    "BoltSpec",
    "FirstAndLast",
    "Input",
    "Message",
    "SpoutSpec",
    "TopologySpec",
    "message_id",
    "random_topology",
    "topology_from",
    "waiting_topology",
]

#: The setting for how many milliseconds components wait at most, each time that they do something.
WAITS = "fuzz.waits.ms"
#: Of every stream.
FIELDS = ("messages", "number", "round", "sent")

#: (spout, task index, number, life of the task)
Message: TypeAlias = tuple[str, int, int, int]


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
    """A spout, which emits each message once.

    ``kind``: "reliable" with an id; "shared" with an id that the next messages have too (B6); "direct" to a named task of one
    subscriber; "group" as several tuples, some of them direct (X68); "unreliable" without an id. ``burst`` messages leave in one
    call of ``next_tuple``. The first life of a task raises after ``raises_after`` messages, if that is not None, and the next one
    begins anew (B10).
    """

    name: str
    tasks: int
    messages: int
    kind: str
    burst: int
    raises_after: int | None = None

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it declares."""
        return {"group": ("default", "side", "direct"), "direct": ("direct",)}.get(self.kind, ("default",))


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
    #: "basic"; "now"; "twice", the second time in vain (E14); "late", with a tick, in another order; "join": pairs of equal
    #: numbers, anchored to both, and what finds no partner is acked with a tick.
    acks: str = "basic"
    anchored: bool = True
    #: Tuples emitted on each stream for each one executed.
    fan_out: dict[str, int] = field(default_factory=dict)
    #: Numbers that it fails, and how: by "exception", "reported" exception, "call" of fail, or by "error", which restarts the
    #: task.
    fails: frozenset[int] = frozenset()
    how: str = "exception"
    loop: str | None = None
    rounds: int = 0
    resets: bool = False


@dataclass(frozen=True)
class TopologySpec:
    """Spouts, bolts such that inputs come from what stands before (but for loops), and settings."""

    name: str
    spouts: tuple[SpoutSpec, ...]
    bolts: tuple[BoltSpec, ...]
    conf: dict[str, Any]
    #: The components whose executors have threads of their own, where the clock is a real one.
    threads: frozenset[str] = frozenset()

    @property
    def acking(self) -> bool:
        """Whether there are ackers."""
        return bool(self.conf.get("topology.acker.executors", 1))

    @property
    def joins(self) -> bool:
        """Whether a bolt brings tuples of two messages together."""
        return any(bolt.acks == "join" for bolt in self.bolts)


def message_id(kind: str, message: Message) -> str:
    """The id under which a spout of that kind emits a message."""
    spout, index, number, life = message
    return json.dumps([spout, index, number // 3, life] if kind == "shared" else message)


def random_topology(seed: int) -> TopologySpec:
    """The topology of a seed: always the same one."""
    return topology_from(Random(seed), f"fuzz-{seed}")


def topology_from(random: Random, name: str) -> TopologySpec:
    """A topology that ``random`` decides."""
    spouts = tuple(
        SpoutSpec(
            f"s{i}",
            tasks=random.randint(1, 2),
            messages=random.randint(1, 6),
            kind=random.choice(["reliable", "reliable", "shared", "group", "direct", "unreliable"]),
            burst=random.randint(1, 3),
        )
        for i in range(random.randint(1, 3))
    )
    streams: dict[str, list[str]] = {spout.name: list(spout.streams) for spout in spouts}
    bolts: list[BoltSpec] = []
    single = [spout.name for spout in spouts if spout.tasks == 1 and spout.streams == ("default",)]
    if len(single) >= 2 and random.random() < 0.5:
        inputs = tuple(Input(name, "default", FieldsGrouping("number")) for name in single[:2])
        bolts.append(BoltSpec("join", random.randint(1, 3), 1, inputs, acks="join", fan_out={"default": 1}))
        streams["join"] = ["default"]
    for i in range(random.randint(1, 5)):
        bolt = _random_bolt(f"b{i}", streams, random)
        streams[bolt.name] = list(bolt.fan_out)
        bolts.append(bolt)
    _add_loop(bolts, random)
    if bolts[0].acks != "join" and random.random() < 0.2:  # a join would meet the same number twice
        spouts = (replace(spouts[0], raises_after=random.randint(0, spouts[0].messages)), *spouts[1:])
    conf: dict[str, Any] = {
        "topology.enable.message.timeouts": False,
        "stormspark.task.max.restarts.in.row": 1_000_000,
        # Tracing changes nothing.
        "stormspark.story.sample": random.choice((0, 1, 3)),
        "stormspark.story.samples.per.sec": 1_000_000,
        "stormspark.executor.threads": "never",
    }
    if random.random() < 0.3:
        conf["topology.max.spout.pending"] = random.randint(1, 3)
    if random.random() < 0.1:
        conf["topology.acker.executors"] = 0
    return TopologySpec(name, spouts, tuple(bolts), conf)


def waiting_topology(seed: int, *, exactly_once: bool = False) -> TopologySpec:
    """The topology of a seed, whose components wait at random, most of them on threads of their executors' own.

    ``exactly_once``: batches are transactions. Then nothing fails on purpose, because a batch that fails is executed again.
    """
    spec, random = random_topology(seed), Random(seed)
    names = [*(spout.name for spout in spec.spouts), *(bolt.name for bolt in spec.bolts)]
    threads = frozenset(name for name in names if random.random() < 0.8)
    conf = {**spec.conf, WAITS: random.choice((0.5, 3.0))}
    spouts, bolts = spec.spouts, spec.bolts
    if exactly_once:
        conf["stormspark.exactly.once"] = True
        conf["topology.acker.executors"] = 1
        spouts = tuple(replace(spout, raises_after=None) for spout in spouts)
        bolts = tuple(replace(bolt, fails=frozenset()) for bolt in bolts)
    return replace(spec, name=f"{spec.name}-waits", spouts=spouts, bolts=bolts, conf=conf, threads=threads)


def _random_bolt(name: str, streams: dict[str, list[str]], random: Random) -> BoltSpec:
    tasks = random.randint(1, 4)
    there = [(source, stream) for source in sorted(streams) for stream in streams[source]]
    inputs = tuple(
        Input(source, stream, _random_grouping(stream, random))
        for source, stream in random.sample(there, k=min(len(there), random.choice([1, 1, 2, 3])))
    )
    acks = random.choice(["basic", "basic", "now", "twice", "late"])
    how = random.choice(["exception", "reported", "call", "error"])
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
        inputs=inputs,
        acks=acks,
        anchored=acks == "basic" or random.random() < 0.8,
        fan_out=fan_out,
        fails=frozenset(random.sample(range(6), random.choice([0, 0, 1]))),
        how=how,
        resets=random.random() < 0.2,
    )


def _random_grouping(stream: str, random: Random) -> Grouping | FirstAndLast:
    if stream == "direct":
        return DirectGrouping()
    groupings: list[Grouping | FirstAndLast] = [
        ShuffleGrouping(),
        FieldsGrouping("messages"),
        FieldsGrouping(("number", "round")),
        AllGrouping(),
        GlobalGrouping(),
        LocalOrShuffleGrouping(),
        NoneGrouping(),
        PartialKeyGrouping("number"),
        PartialKeyGrouping(),
        LoadAwareShuffleGrouping(),
        LoadAwareShuffleGrouping(stay_local=True),
        LocalFirstGrouping(),
        FirstAndLast(drops=False),
        FirstAndLast(drops=True),
    ]
    return random.choice(groupings)


def _add_loop(bolts: list[BoltSpec], random: Random) -> None:
    """Now and then: a bolt sends tuples back to one before it, or to itself, a bounded number of times (A15)."""
    candidates = [position for position, bolt in enumerate(bolts) if bolt.acks not in ("late", "join")]
    if not candidates or random.random() < 0.6:
        return
    begin = random.choice(candidates)
    back = random.choice([position for position in candidates if position <= begin])
    bolts[begin] = replace(bolts[begin], loop=bolts[back].name, rounds=random.randint(1, 3))
    grouping = random.choice([ShuffleGrouping(), FieldsGrouping("number"), GlobalGrouping()])
    loop = Input(bolts[begin].name, "loop", grouping)
    bolts[back] = replace(bolts[back], inputs=(*bolts[back].inputs, loop))
