"""What the components of a run have in common: what was sent, executed, acked and told so far, and which rule that breaks."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from threading import Thread, get_ident
from typing import Any, NamedTuple

from stormspark.plan.physical import PhysicalPlan
from stormspark.worker.foreign_calls import start_unwatched
from tests.schedules.interleaved.scheduler import Scheduler

__all__ = ["Delivery", "Emission", "PlannedError", "World", "begin_world", "world"]


class PlannedError(Exception):
    """An error of user code that the run has planned."""


class Delivery(NamedTuple):
    """What a tuple carries: which tuple of its tree it is, which task and instance has sent it, and its number there."""

    emission: int
    node: tuple[int, ...]
    sender: int
    instance: int
    sequence: int


class Emission:
    """A tuple of a spout, and all that came of it."""

    def __init__(self, number: int, message: int, task: int, instance: int, *, tracked: bool) -> None:
        self.number, self.message, self.task, self.instance = number, message, task, instance
        self.tracked = tracked
        #: The tuples of its tree: those that were emitted, carried out, executed and acked.
        self.emitted: set[tuple[int, ...]] = set()
        self.carried: set[tuple[int, ...]] = set()
        self.executed: Counter[tuple[int, ...]] = Counter()
        self.acked: set[tuple[int, ...]] = set()
        self.verdicts: list[str] = []

    def __str__(self) -> str:
        return (
            f"emission {self.number} of message {self.message}, task {self.task}, instance {self.instance} (emitted: "
            f"{sorted(self.emitted)}, carried out: {sorted(self.carried)}, executed: {sorted(self.executed)}, acked: "
            f"{sorted(self.acked)}, told: {self.verdicts})"
        )


class _Seat:
    """The executor of a task, and what runs on it."""

    def __init__(self, name: str, *, threaded: bool) -> None:
        self.name, self.threaded = name, threaded
        self.inside = ""
        self.thread: int | None = None


class World:
    """The world of one run. ``faults``: how often user code raises at most, and ``kinds``: where."""

    def __init__(
        self, seed: int, scheduler: Scheduler, plan: PhysicalPlan, *, faults: int, kinds: Collection[str]
    ) -> None:
        self.random = Random(seed * 2 + 1)
        self.scheduler, self.plan = scheduler, plan
        self._faults, self._kinds = faults, kinds
        self._chance = self.random.choice((0.03, 0.1, 0.25))
        #: How likely a piece of user code waits.
        self._waits = self.random.choice((0.0, 0.2, 0.6))
        #: What went wrong, first things first.
        self.broken_rules: list[tuple[str, str]] = []
        #: From now on nothing is made difficult any more.
        self.calm = False
        #: Whether frames were lost between workers.
        self.lossy = False
        self.transactions = plan.exactly_once
        self.happened: Counter[str] = Counter()
        self.emissions: list[Emission] = []
        self.instances: Counter[int] = Counter()
        #: What each task of a spout has to emit, and which messages are done with.
        self.todo: dict[int, deque[int]] = defaultdict(deque)
        self.mine: dict[int, list[int]] = defaultdict(list)
        self.untracked: set[int] = set()
        #: How many messages a task of a spout with state had emitted when it saved its state.
        self.saved: dict[int, int] = {}
        self.done: set[int] = set()
        self._sequences: Counter[int] = Counter()
        self._last: Counter[tuple[int, int]] = Counter()
        #: The workers of the run.
        self.workers: list[Any] = []
        self._worker = get_ident()
        #: The tasks whose close or cleanup was called.
        self.closed: set[int] = set()
        seats: dict[tuple[str, int], _Seat] = {}
        self._seats: dict[int, _Seat] = {}
        for task in plan.tasks.values():
            key = task.component, task.executor
            threaded = bool(plan.components[task.component].threads_reason)
            seats.setdefault(key, _Seat(f"{key[0]}:{key[1]}", threaded=threaded))
            self._seats[task.id] = seats[key]

    # -- rules -------------------------------------------------------------------------------------------------------

    def broken(self, rule: str, what: str) -> None:
        """Note that a rule is broken."""
        if not self.broken_rules:
            self.broken_rules.append((rule, f"{what}\n{self.scheduler.story()}"))

    @contextmanager
    def call(self, task: int, what: str) -> Iterator[None]:
        """A call of user code of a task: it must be the only one of its executor, and on that one's thread."""
        seat, thread = self._seats[task], get_ident()
        what = f"{what} of task {task}"
        if seat.inside and seat.threaded:  # on the worker's thread an emit may suspend a call
            self.broken("calls of one executor overlap", f"{seat.name}: {what} during {seat.inside}")
        if seat.threaded and thread == self._worker:
            self.broken("a call is on the wrong thread", f"{seat.name}: {what} on the worker's thread")
        if seat.thread not in (None, thread):
            self.broken("a call is on the wrong thread", f"{seat.name}: {what}")
        if task in self.closed:
            self.broken("a call after the last one", f"{seat.name}: {what}")
        if what.startswith(("close", "cleanup")):
            self.closed.add(task)
        seat.thread, seat.inside = thread, what
        try:
            yield
        finally:
            seat.inside = ""

    def inside(self, task: int) -> str:
        """What runs on the executor of this task; empty if nothing does."""
        return self._seats[task].inside

    # -- what user code does -----------------------------------------------------------------------------------------

    def pause(self) -> None:
        """Wait now, perhaps."""
        if not self.calm and self.random.random() < self._waits:
            self.scheduler.pause()

    def beside(self, task: int, call: Callable[[], object]) -> None:
        """Make a call on another thread, now or later, if the task has a thread; else make it at once."""
        if not self._seats[task].threaded:
            call()
            return

        def run() -> None:
            self.pause()
            call()

        self.scheduler.start(Thread(name=f"beside task {task}", daemon=True), run, start_unwatched)

    def draw(self, most: int) -> int:
        """Draw a number below ``most``; 0 once all is calm."""
        return 0 if self.calm else self.random.randrange(most)

    def may(self, kind: str) -> bool:
        """Return whether something of this kind goes wrong now."""
        if self.calm or not self._faults or kind not in self._kinds or self.random.random() >= self._chance:
            return False
        self._faults -= 1
        self.happened[kind] += 1
        return True

    def may_raise(self, kind: str) -> None:
        """Raise, perhaps."""
        if self.may(kind):
            msg = f"planned: {kind}"
            raise PlannedError(msg)

    # -- what becomes of tuples --------------------------------------------------------------------------------------

    def emission(self, message: int, task: int, instance: int) -> Emission:
        """Begin to emit a message."""
        tracked = message not in self.untracked
        emission = Emission(len(self.emissions), message, task, instance, tracked=tracked)
        self.emissions.append(emission)
        return emission

    def delivery(self, emission: int, node: tuple[int, ...], sender: int, instance: int) -> Delivery:
        """Make the values of a tuple that is emitted now."""
        self._sequences[sender] += 1
        self.emissions[emission].emitted.add(node)
        return Delivery(emission, node, sender, instance, self._sequences[sender])

    def carried_out(self, sent: Delivery) -> None:
        """An emit is carried out."""
        emission = self.emissions[sent.emission]
        if sent.instance != self.instances[sent.sender]:
            self.broken("an emit of an ended instance is carried out", f"{sent}: {emission}")
        if sent.node in emission.carried:
            self.broken("an emit is carried out twice", f"{sent}: {emission}")
        emission.carried.add(sent.node)

    def sent_to(self, sent: Delivery, tasks: Sequence[int]) -> None:
        """An emit has returned the tasks that got the tuple."""
        if len(tasks) != 1 or sent.node not in self.emissions[sent.emission].carried:
            self.broken("an emit has returned before it was carried out", f"{sent}: {list(tasks)}")

    def executed(self, task: int, got: Delivery) -> None:
        """A tuple is executed."""
        emission = self.emissions[got.emission]
        emission.executed[got.node] += 1
        if emission.executed[got.node] > 1:
            self.broken("a tuple is executed twice", f"task {task}: {got}: {emission}")
        if got.node not in emission.carried:
            self.broken("a tuple is executed that nobody has sent", f"task {task}: {got}: {emission}")
        if self._last[got.sender, task] >= got.sequence:
            what = f"task {task} gets {got} after {self._last[got.sender, task]}"
            self.broken("the order between two tasks is lost", what)
        self._last[got.sender, task] = got.sequence

    def told(self, task: int, instance: int, number: int, verdict: str) -> None:
        """A spout gets a verdict."""
        emission = self.emissions[number]
        emission.verdicts.append(verdict)
        if (emission.task, emission.instance) != (task, instance):
            self.broken("a verdict for another instance", f"task {task}, instance {instance}: {emission}")
        if len(emission.verdicts) > 1:
            self.broken("two verdicts", str(emission))
        if verdict == "ack":
            self.done.add(emission.message)
            if emission.acked != emission.emitted:
                self.broken("an ack before all is done", str(emission))
        else:
            self.todo[task].append(emission.message)

    def opened(self, task: int) -> None:
        """A new instance of a spout's task begins: it emits all that is not done, for verdicts of old emits never come."""
        sent = {one.message for one in self.emissions if not one.tracked and one.carried}
        self.todo[task] = deque(
            message for message in self.mine[task] if message not in self.done and message not in sent
        )

    def open_of(self, task: int, instance: int) -> int:
        """Count the emits of an instance that are tracked, and were not carried out."""
        return sum(
            one.tracked and not one.carried and one.task == task and one.instance == instance
            for one in self.emissions
        )

    def unheard_of(self, task: int, instance: int) -> int:
        """Count the emits of an instance that are tracked, and of which it has heard no verdict."""
        return sum(
            one.tracked and not one.verdicts and one.task == task and one.instance == instance
            for one in self.emissions
        )

    # -- the end -----------------------------------------------------------------------------------------------------

    def is_done(self) -> bool:
        """Whether all messages are acked, and each tuple that was sent was executed."""
        return not self._undone() and not self._unexecuted()

    def _undone(self) -> list[int]:
        sent = {one.message for one in self.emissions if one.carried}
        undone = []
        for task, messages in self.mine.items():
            if task in self.saved:
                undone += messages[self.saved[task] :]
            else:
                undone += [
                    one for one in messages if one not in (sent if one in self.untracked else self.done)
                ]
        return undone

    def _unexecuted(self) -> list[Emission]:
        if self.lossy or self.transactions:
            return []
        return [one for one in self.emissions if one.carried - one.executed.keys()]

    def all_of(self, message: int) -> str:
        """Tell what has become of a message."""
        return "".join(f"\n    {one}" for one in self.emissions if one.message == message)

    def check_end(self) -> None:
        """Check what has to be true when all is done."""
        for emission in self._unexecuted():
            self.broken("a tuple is lost", str(emission))
        undone = self._undone()
        if undone:
            self.broken(
                "a message is not done",
                f"message {undone[0]}, {len(undone)} in all: {self.all_of(undone[0])}",
            )
        for emission in self.emissions:
            lives = emission.tracked and emission.instance == self.instances[emission.task]
            if lives and not emission.verdicts:
                self.broken("no verdict", str(emission))


_world: World


def begin_world(one: World) -> None:
    """Let this be the world of all components."""
    global _world  # noqa: PLW0603
    _world = one


def world() -> World:
    """Return the world."""
    return _world
