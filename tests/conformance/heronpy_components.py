"""heronpy components whose effects can be looked at from outside."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from stormspark.compat.heronpy.components import Bolt, Spout
from stormspark.compat.heronpy.contexts import TopologyContext
from stormspark.compat.heronpy.custom_grouping import ICustomGrouping
from stormspark.compat.heronpy.serializer import IHeronSerializer
from stormspark.compat.heronpy.state import StatefulComponent
from stormspark.compat.heronpy.stream import Stream
from stormspark.compat.heronpy.task_hook import ITaskHook
from tests.conformance.components import Effects


def effects(config: dict[str, Any], context: TopologyContext) -> Effects:
    task: Any = SimpleNamespace(
        this_component_id=context.get_component_id(), this_task_id=context.get_task_id()
    )
    return Effects(config, task)


class Numbers(Spout):
    """0 .. n - 1, shared out over its tasks, replayed when they fail; ``group`` of them in one call."""

    outputs = ("n", "text")

    def initialize(self, config: dict[str, Any], context: TopologyContext) -> None:
        self.effects = effects(config, context)
        tasks = context.get_component_tasks(context.get_component_id())
        self.todo = list(range(tasks.index(context.get_task_id()), config["n"], len(tasks)))[::-1]
        self.group = config.get("group", 1)

    def next_tuple(self) -> None:
        for _ in range(min(self.group, len(self.todo))):
            number = self.todo.pop()
            self.emit([number, f"text {number}"], tup_id=number)

    def ack(self, tup_id: Any) -> None:
        self.effects.write("ack", tup_id)

    def fail(self, tup_id: Any) -> None:
        self.effects.write("fail", tup_id)
        self.todo.append(tup_id)


class Take(Bolt):
    """Writes what comes and acks it; fails each number once that ``fail.every`` divides."""

    def initialize(self, config: dict[str, Any], context: TopologyContext) -> None:
        self.effects = effects(config, context)
        self.fail_every = config.get("fail.every")
        self.failed: set[int] = set()

    def process(self, tup: Any) -> None:
        number = tup.values[0]
        if self.fail_every and number % self.fail_every == 0 and number not in self.failed:
            self.failed.add(number)
            self.fail(tup)
            return
        self.effects.write(*tup.values)
        self.ack(tup)


class Forget(Take):
    """Writes what comes and never acks it."""

    def ack(self, tup: Any) -> None:
        """Not done."""


class Relay(Bolt):
    """Emits what comes, anchored if ``anchored``, and acks it."""

    outputs = ("n", "text")

    def initialize(self, config: dict[str, Any], context: TopologyContext) -> None:
        self.anchored = config.get("anchored", True)

    def process(self, tup: Any) -> None:
        self.emit(tup.values, anchors=[tup] if self.anchored else None)
        self.ack(tup)


class ToTheLast(ICustomGrouping):
    """All to the last task; knows what a context tells."""

    def prepare(self, context: Any, component: str, stream: str, target_tasks: list[int]) -> None:
        assert (component, stream) == ("numbers", "default")
        assert context.get_component_tasks("take") == target_tasks
        self.last = target_tasks[-1]

    def choose_tasks(self, values: Any) -> list[int]:
        assert isinstance(values[0], int)
        return [self.last]


class Directed(Spout):
    """Sends each number to the task that it names."""

    outputs = (Stream(["n"], name="orders", direct=True),)

    def initialize(self, config: dict[str, Any], context: TopologyContext) -> None:
        self.tasks = context.get_component_tasks("take")
        self.todo = list(range(config["n"]))[::-1]

    def next_tuple(self) -> None:
        if self.todo:
            number = self.todo.pop()
            self.emit([number], stream="orders", direct_task=self.tasks[number % len(self.tasks)])


class Backwards(IHeronSerializer):
    """Values as text, backwards."""

    def serialize(self, obj: Any) -> bytes:
        return repr(obj).encode()[::-1]

    def deserialize(self, input_str: bytes) -> Any:
        return eval(input_str[::-1].decode())


class Sequence(Spout, StatefulComponent):
    """Numbers, whose position is its state."""

    outputs = ("n",)

    def init_state(self, state: Any) -> None:
        self.state = state

    def pre_save(self, checkpoint_id: Any) -> None:
        self.state.put("next", self.next)

    def initialize(self, config: dict[str, Any], context: TopologyContext) -> None:
        self.next = self.state.get("next") or 0
        self.n = config["n"]

    def next_tuple(self) -> None:
        if self.next < self.n:
            self.emit([self.next], tup_id=self.next)
            self.next += 1

    def ack(self, tup_id: Any) -> None:
        """Heard at once."""


class Counts(Bolt, StatefulComponent):
    """Counts digits, in a dict that is put once and changed in place; raises at ``raise.at``, once in its life."""

    def init_state(self, state: Any) -> None:
        assert not hasattr(self, "counts"), "init_state comes before initialize"
        self.state = state

    def pre_save(self, checkpoint_id: Any) -> None:
        self.effects.write("saved", dict(self.counts))

    def initialize(self, config: dict[str, Any], context: TopologyContext) -> None:
        self.effects = effects(config, context)
        if "counts" not in self.state:
            self.state.put("counts", Counter())
        self.counts = self.state.get("counts")
        self.raise_at = config.get("raise.at")

    def process(self, tup: Any) -> None:
        number = tup.values[0]
        self.counts[str(number % 10)] += 1
        if number == self.raise_at and ["raised"] not in self.effects.read():
            self.effects.write("raised")
            msg = "on purpose"
            raise ValueError(msg)


class TellingHook(ITaskHook):
    """Writes what it is told, by kinds."""

    def prepare(self, conf: dict[str, Any], context: TopologyContext) -> None:
        self.effects = effects(conf, context)
        self.told: Counter[str] = Counter()

    def clean_up(self) -> None:
        self.effects.write("hook", dict(self.told))

    def emit(self, emit_info: Any) -> None:
        assert len(emit_info.values) == 2
        self.told["emit"] += 1

    def spout_ack(self, spout_ack_info: Any) -> None:
        assert isinstance(spout_ack_info.message_id, int)
        self.told["spout_ack"] += 1

    def spout_fail(self, spout_fail_info: Any) -> None:
        self.told["spout_fail"] += 1

    def bolt_execute(self, bolt_execute_info: Any) -> None:
        assert bolt_execute_info.heron_tuple.component == "numbers"
        self.told["bolt_execute"] += 1

    def bolt_ack(self, bolt_ack_info: Any) -> None:
        assert bolt_ack_info.process_latency_ms >= 0
        self.told["bolt_ack"] += 1

    def bolt_fail(self, bolt_fail_info: Any) -> None:
        self.told["bolt_fail"] += 1
