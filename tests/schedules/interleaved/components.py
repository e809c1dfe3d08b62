"""The components of a run. All that they do is drawn by the run's seed, and noted in its world."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from stormspark import BasicBolt, Bolt, Fields, OutputFieldsDeclarer, Spout, Tuple
from stormspark.api import TaskHook
from stormspark.api.state import KeyValueState, StatefulBolt
from stormspark.errors import FailedException
from stormspark.grouping import CustomStreamGrouping
from tests.repeatable_spouts import NumbersFromState
from tests.schedules.interleaved.world import Delivery, PlannedError, world

__all__ = ["Basic", "Count", "Feed", "Numbers", "Route", "Work"]


class Route(CustomStreamGrouping):
    """Chooses a task by the message. The worker's thread calls it when an emit is carried out."""

    def prepare(self, context: Any, stream: Any, target_tasks: list[int]) -> None:
        self.targets = target_tasks

    def choose_tasks(self, task: int, values: Sequence[Any]) -> list[int]:
        sent = Delivery(*values)
        world().may_raise("route of a child" if sent.node else "route of a message")
        world().carried_out(sent)
        return [self.targets[(sent.emission + len(sent.node)) % len(self.targets)]]


class _Hook(TaskHook):
    """Waits wherever it is called."""

    def emit(self, info: Any) -> None:
        world().pause()

    bolt_execute = bolt_ack = spout_ack = emit


class _Declares:
    def declare_output_fields(self, declarer: OutputFieldsDeclarer) -> None:
        declarer.declare(Fields(*Delivery._fields))


class Feed(_Declares, Spout):
    """Emits the messages of its task, and again those that fail. ``most``: at most so many in one call."""

    def __init__(self, most: int, *, hooks: bool, looks: bool) -> None:
        self.most, self.hooks, self.looks = most, hooks, looks

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.task = collector, context.this_task_id
        self.most_pending = conf.get("topology.max.spout.pending")
        self.instance = world().instances[self.task]
        self.active = False
        with world().call(self.task, "open"):
            if self.instance > 1:
                world().may_raise("open")
            world().opened(self.task)
            if self.hooks:
                context.add_task_hook(_Hook())
            world().pause()

    def activate(self) -> None:
        with world().call(self.task, "activate"):
            self.active = True

    def deactivate(self) -> None:
        with world().call(self.task, "deactivate"):
            self.active = False

    def next_tuple(self) -> None:
        here = world()
        with here.call(self.task, "next_tuple"):
            self.check()
            here.pause()
            here.may_raise("next_tuple")
            todo = here.todo[self.task]
            for _ in range(self.most):
                if not todo:
                    break
                emission = here.emission(todo.popleft(), self.task, self.instance)
                values = here.delivery(emission.number, (), self.task, self.instance)
                sent = self.collector.emit(values, message_id=emission.number if emission.tracked else None)
                if self.looks:
                    here.sent_to(values, sent)
                here.pause()

    def check(self) -> None:
        """Check that this call may be."""
        here = world()
        if not self.active:
            here.broken("next_tuple of an inactive spout", f"task {self.task}")
        if self.most_pending:
            task = self.collector._task
            if here.transactions:  # verdicts wait for the commit, and are not pending
                pending = task.account.pending + here.open_of(self.task, self.instance)
            else:
                pending = here.unheard_of(self.task, self.instance)
            if pending >= self.most_pending and self.instance == here.instances[self.task]:
                here.broken("max spout pending is exceeded", f"task {self.task}: {pending} are open")

    def ack(self, message_id: Any) -> None:
        with world().call(self.task, "ack"):
            world().told(self.task, self.instance, message_id, "ack")
            world().pause()
            world().may_raise("ack")

    def fail(self, message_id: Any) -> None:
        with world().call(self.task, "fail"):
            world().told(self.task, self.instance, message_id, "fail")
            world().pause()

    def close(self) -> None:
        with world().call(self.task, "close"):
            world().pause()


class Numbers(NumbersFromState):
    """Emits numbers, at most ``most`` in one call; the number after the last one is its state."""

    fields = Delivery._fields

    def __init__(self, most: int) -> None:
        self.most = most

    def open(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector, self.task = collector, context.this_task_id
        self.instance = world().instances[self.task]
        with world().call(self.task, "open"):
            world().pause()

    def next_tuple(self) -> None:
        here = world()
        with here.call(self.task, "next_tuple"):
            here.pause()
            here.may_raise("next_tuple")
            for _ in range(self.most):
                if self.n >= len(here.mine[self.task]):
                    return
                number = here.mine[self.task][self.n]
                self.n += 1
                emission = here.emission(number, self.task, self.instance)
                values = here.delivery(emission.number, (), self.task, self.instance)
                self.collector.emit(values, message_id=emission.number)
                here.pause()

    def close(self) -> None:
        with world().call(self.task, "close"):
            world().pause()

    def pre_save(self, checkpoint_id: int) -> None:
        with world().call(self.task, "pre_save"):
            super().pre_save(checkpoint_id)
            world().saved[self.task] = self.n
            world().pause()

    def ack(self, message_id: Any) -> None:
        with world().call(self.task, "ack"):
            world().told(self.task, self.instance, message_id, "ack")
            world().pause()

    def fail(self, message_id: Any) -> None:
        world().broken("a spout with a state hears of a fail", f"task {self.task}, message {message_id}")


class _Bolt:
    """What the bolts have in common.

    ``children``: into how many tuples they turn one at most. ``looks``: they look which tasks got a tuple.
    """

    children = 0
    hooks = looks = timer = False

    def begins(self, context: Any) -> None:
        self.task = context.this_task_id
        self.instance = world().instances[self.task]
        with world().call(self.task, "prepare"):
            if self.instance > 1:
                world().may_raise("prepare")
            if self.hooks:
                context.add_task_hook(_Hook())
            if self.timer:
                context.set_timer(world().random.choice((0.005, 0.2)), self.at_timer)
            world().pause()

    def at_timer(self) -> None:
        with world().call(self.task, "a timer"):
            world().pause()
            world().may_raise("timer")

    def cleanup(self) -> None:
        with world().call(self.task, "cleanup"):
            world().pause()

    def takes(self, tup: Tuple) -> Delivery:
        got = Delivery(*tup.values)
        world().executed(self.task, got)
        world().pause()
        return got

    def made_of(self, got: Delivery) -> list[Delivery]:
        """The tuples to emit: one after the other, for each gets its number when it is emitted."""
        return [got._replace(node=(*got.node, n)) for n in range(world().draw(self.children + 1))]

    def new(self, child: Delivery) -> Delivery:
        return world().delivery(child.emission, child.node, self.task, self.instance)


class Work(_Declares, _Bolt, Bolt):
    """Acks by itself: at once, or (``holds``) with a later tuple or a tick, or (``beside``) on a thread of its own."""

    def __init__(
        self, children: int, *, holds: bool, hooks: bool, looks: bool, timer: bool, beside: bool
    ) -> None:
        self.children, self.holds, self.hooks, self.looks, self.timer = children, holds, hooks, looks, timer
        self.beside = beside

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.kept: list[Tuple] = []
        self.acked: list[Tuple] = []
        self.begins(context)

    def execute(self, tup: Tuple) -> None:
        here = world()
        with here.call(self.task, "execute"):
            if tup.is_tick:
                self.let_go()
                return
            got = self.takes(tup)
            here.may_raise("execute")
            for child in self.made_of(got):
                sent = self.collector.emit(self.new(child), anchors=[tup])
                if self.looks:
                    here.sent_to(child, sent)
                here.pause()
            if here.may("fail"):
                self.collector.fail(tup, "planned: fail")
            elif here.may("FailedException"):
                raise FailedException("planned: FailedException")
            elif self.holds and here.draw(2):
                self.kept.append(tup)
                return
            elif self.beside and here.draw(2):
                here.beside(self.task, partial(self.acks, tup))
            else:
                self.acks(tup)
            here.pause()
            here.may_raise("execute")
            if self.kept and not here.draw(3):
                self.let_go()

    def let_go(self) -> None:
        while self.kept:
            self.acks(self.kept.pop(0))
            world().pause()

    def acks(self, tup: Tuple) -> None:
        got = Delivery(*tup.values)
        world().emissions[got.emission].acked.add(got.node)
        self.collector.ack(tup)
        self.acked.append(tup)


class Basic(_Declares, _Bolt, BasicBolt):
    """Its tuples are acked when its execute returns."""

    def __init__(self, children: int, *, hooks: bool, looks: bool, timer: bool) -> None:
        self.children, self.hooks, self.looks, self.timer = children, hooks, looks, timer

    def prepare(self, conf: Any, context: Any) -> None:
        self.begins(context)

    def execute(self, tup: Tuple, collector: Any) -> None:
        here = world()
        with here.call(self.task, "execute"):
            if tup.is_tick:
                here.pause()
                return
            got = self.takes(tup)
            here.may_raise("execute")
            for child in self.made_of(got):
                sent = collector.emit(self.new(child))
                if self.looks:
                    here.sent_to(child, sent)
                here.pause()
            if here.may("FailedException"):
                raise FailedException("planned: FailedException")
            here.may_raise("execute")
            here.emissions[got.emission].acked.add(got.node)


class Count(_Declares, _Bolt, StatefulBolt[KeyValueState[int, int]]):
    """Counts messages in its state, and passes them on."""

    def __init__(self, children: int, *, hooks: bool) -> None:
        self.children, self.hooks = children, hooks

    def prepare(self, conf: Any, context: Any, collector: Any) -> None:
        self.collector = collector
        self.begins(context)

    def init_state(self, state: KeyValueState[int, int]) -> None:
        self.state = state

    def execute(self, tup: Tuple) -> None:
        here = world()
        with here.call(self.task, "execute"):
            if tup.is_tick:
                return
            got = self.takes(tup)
            here.may_raise("execute")
            message = here.emissions[got.emission].message
            self.state[message] = self.state.get(message, 0) + 1
            here.pause()
            if self.children:
                self.collector.emit(self.new(got._replace(node=(*got.node, 0))), anchors=[tup])
                here.pause()
            if here.may("fail"):
                self.collector.fail(tup, "planned: fail")
                return
            here.emissions[got.emission].acked.add(got.node)
            self.collector.ack(tup)
            here.pause()
            if here.may("execute"):
                msg = "planned: execute"
                raise PlannedError(msg)

    def pre_prepare(self, txid: int) -> None:
        with world().call(self.task, "pre_prepare"):
            world().pause()
            world().may_raise("pre_prepare")
