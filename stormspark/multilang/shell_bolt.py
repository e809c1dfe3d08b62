"""A bolt in any language (I6-I9, I13, I14, I17).

Tuples are sent ahead while the child works: up to ``topology.shellbolt.max.pending`` at a time, in one write for many. What the
child says is done by the task's own thread, since only that one learns the task ids that an emit is answered with; the worker
waits for it while it has nothing else to do (`stormspark.api.outside`).

**When is a child through?** A tuple may be acked long after, if the child holds it on purpose, and a batch must not wait for
that. A heartbeat tells: it stands behind the tuples that were sent before it, so with its answer the child has been given all
of these (I13). What is not acked by then is held, and nobody waits for it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from typing import Any

from stormspark.api import (
    DEFAULT_STREAM,
    Bolt,
    OutputCollector,
    TopologyContext,
    Tuple,
    WorksOutside,
)
from stormspark.config import Settings
from stormspark.errors import MultilangError, ReportedFailedException
from stormspark.multilang.component import ShellComponent
from stormspark.multilang.conversation import Conversation, Surroundings

__all__ = ["ShellBolt"]

_DEFAULT_PENDING = 100
#: More than a child is given in one write makes it wait for nothing.
_WRITE_BYTES = 16384
#: Ids of ticks begin so: they belong to no tree, and nothing is kept for one that is never acked (I17).
_TICK = "-"


class ShellBolt(ShellComponent, Bolt, WorksOutside):
    """Runs a child that speaks Storm's multilang protocol as a bolt.

    ``command`` are its words; ``outputs`` the fields of the default stream, or of each stream by name; ``env`` are variables
    beside the worker's own; ``cwd`` is the folder it starts in, by default the topology's resources folder (I3); ``metrics``
    are those that the child may update, by name (I11).

    >>> split = ShellBolt(["python3", "split.py"], ["word"])
    >>> class Split(ShellBolt):                                     # as in Storm (I18)
    ...     def __init__(self):
    ...         super().__init__(["python3", "split.py"])
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(["word"])

    Raises `InvalidTopologyError` for a command, outputs or variables that are none.
    """

    _talk: _BoltConversation | None = None

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Start the child; raises `MultilangError` where it does not come up."""
        surroundings = Surroundings(self._command, self._folder(conf), self._environment(), self._metrics)
        self._talk = _BoltConversation(surroundings, conf, context, collector)

    def execute(self, tup: Tuple) -> None:
        """Send the child a tuple, with the next `send` at the latest; where there is no room, wait until there is."""
        assert self._talk is not None, "execute comes after prepare"
        self._talk.give(tup)

    def cleanup(self) -> None:
        """End the child."""
        if self._talk is not None:
            self._talk.log_lines()
            self._talk.child.stop()
            self._talk = None

    def let_go(self) -> None:
        """End the child at once."""
        if self._talk is not None:
            self._talk.child.kill()
            self._talk = None

    # -- see WorksOutside --------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more tuples it may have before it (I14)."""
        return self._talk.room if self._talk is not None else 0

    @property
    def outside(self) -> int:
        """Tuples that the child has not got through yet."""
        return len(self._talk.before_it) if self._talk is not None else 0

    def fileno(self) -> int:
        """Readable when the child has said something, or takes more."""
        return self._talk.child.fileno() if self._talk is not None else -1

    def send(self) -> None:
        """Write what waits."""
        if self._talk is not None:
            self._talk.child.flush()

    @property
    def asks(self) -> bool:
        """Whether the child waits for task ids (I8)."""
        return self._talk is not None and self._talk.asks

    def take_in(self) -> int:
        """Do what the child has said."""
        return self._talk.take_in() if self._talk is not None else 0


class _BoltConversation(Conversation):
    kind = "bolt"
    _collector: OutputCollector

    def __init__(
        self,
        surroundings: Surroundings,
        conf: Mapping[str, Any],
        context: TopologyContext,
        collector: OutputCollector,
    ) -> None:
        self._most = int(conf.get("topology.shellbolt.max.pending") or _DEFAULT_PENDING)
        self._number = 0
        self._done = 0
        #: By id: tuples that the child has not got through yet, oldest first; and those that it holds.
        self.before_it: dict[str, Tuple] = {}
        self._held: dict[str, Tuple] = {}
        #: Whether the child has ever wanted the task ids of an emit.
        self.asks = False
        #: For each question that is not answered yet, the last tuple before it.
        self._asked: deque[int] = deque()
        # There can be no sync before the hands are shaken, but a question may be asked.
        self._heartbeat: bytes | None = None
        super().__init__(surroundings, conf, context, collector)
        self._say, self._task_ids = self.child.say, self.child.messages.task_ids
        self._heartbeat = self.child.messages.encode(
            {"id": "0", "comp": context.this_component_id, "stream": "__heartbeat", "task": -1, "tuple": []}
        )
        timeout = Settings.read(conf).timeout_secs
        if timeout is not None:
            context.set_timer(timeout / 4, self._spare)

    @property
    def room(self) -> int:
        return self._most - len(self.before_it)

    def give(self, tup: Tuple) -> None:
        """Send a tuple."""
        while len(self.before_it) >= self._most:  # the worker asks for room; who does not is held up here
            self.child.flush()
            self.child.wait(0.01)
            self.take_in()
        child = self.child
        number = self._number + 1
        name = f"{_TICK}{number}" if tup.is_tick else str(number)
        try:
            data = child.messages.tuple_message(name, tup._source, tup.values)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ReportedFailedException(self._unspeakable(tup, error)) from error
        with child.lock:
            self._number = number
            child.unsent += data
        self.before_it[name] = tup
        if len(child.unsent) >= _WRITE_BYTES:
            child.flush()

    def _unspeakable(self, tup: Tuple, error: Exception) -> str:
        name, why = self.child.messages.name, str(error)
        for field, value in zip(tup.fields, tup.values, strict=True):
            try:
                self.child.messages.encode([value])
            except (TypeError, ValueError, OverflowError, RecursionError) as culprit:
                why = f"the value of its field {field!r}, {str(value)[:100]!r} of type {type(value).__name__}: {culprit}"
                break
        return (
            f"{self.who}: {tup.source_component!r} has sent a tuple on stream {tup.source_stream!r} that can't be told to the "
            f"child in {name}: {why}. Emit what {name} has"
        )

    def ask(self) -> None:
        """Ask for a sign of life: a heartbeat, which is answered when the child has come to it (I13)."""
        child = self.child
        if self._heartbeat is None:
            return
        with child.lock:
            if self._asked:
                return
            self._asked.append(self._number)
            child.asked_at = time.monotonic()
            child.unsent += self._heartbeat
        child.flush()

    def take_in(self) -> int:
        """Do what the child has said; ask how far it is where it says nothing. Returns how many tuples are done."""
        child, done = self.child, self._done
        if child.unsent:
            child.flush()
        messages = child.read()
        if messages is None:
            if self.before_it:
                self.ask()
            return 0
        before_it, ack = self.before_it, self._collector.ack
        for message in messages:
            try:
                # What is said most, as it is said mostly, without a call more.
                command = message.get("command") if type(message) is dict else None
                if command == "emit":
                    self._emit(message)
                elif command == "ack" and (tup := before_it.pop(message.get("id"), None)) is not None:
                    self._done += 1
                    ack(tup)
                else:
                    self._do(message, command)
            except MultilangError:
                raise
            except Exception as error:
                self.broken(message, str(error), error)
        return self._done - done

    def _do(self, message: Any, command: Any) -> None:
        if command == "ack":
            tup = self._settled(message)
            if tup is not None:
                self._collector.ack(tup)
        elif command == "fail":
            tup = self._settled(message)
            if tup is not None:
                self._collector.fail(tup, "its child failed it")
        elif command == "sync":
            self._got_through()
        elif command is None or not self._said(message):
            self.broken(message, "a bolt says emit, ack, fail, log, error, metrics or sync (I12)")

    def _emit(self, message: dict[str, Any]) -> None:
        if len(message) == 3:  # as most do: with values and one anchor, and nothing else
            values, ids = message.get("tuple"), message.get("anchors")
            if type(values) is list and type(ids) is list and len(ids) == 1:
                anchor = self.before_it.get(ids[0])
                if anchor is not None:
                    tasks = self._collector.emit(tuple(values), DEFAULT_STREAM, anchor)
                    self.asks = True
                    self._say(self._task_ids(tasks))
                    return
        values, stream, task = self.emit_of(message)
        anchors = self._anchors(message.get("anchors"))
        if task:
            self._collector.emit_direct(task, values, stream, anchors)
            return
        tasks = self._collector.emit(values, stream, anchors)
        if message.get("need_task_ids") in (None, True):  # which it is unless the child says no (I8)
            self.asks = True
            self._say(self._task_ids(tasks))  # at once: the child waits for it

    def _anchors(self, ids: Any) -> Tuple | list[Tuple]:
        """The tuples with these ids; raises ValueError for one that is settled."""
        if not ids:
            return []
        anchors = []
        for one in [ids] if isinstance(ids, str) else ids:
            tup = self.before_it.get(one)
            if tup is None:
                tup = self._held.get(one)
            if tup is not None:
                anchors.append(tup)
            elif not one.startswith(_TICK):
                msg = f"there is no tuple {one!r} to anchor to, or it was acked or failed already (I12); emit first, then ack"
                raise ValueError(msg)
        return anchors[0] if len(anchors) == 1 else anchors

    def _settled(self, message: dict[str, Any]) -> Tuple | None:
        name = message.get("id")
        tup = self.before_it.pop(name, None)  # type: ignore[arg-type]
        if tup is None:
            tup = self._held.pop(name, None)  # type: ignore[arg-type]
        if tup is None and not (isinstance(name, str) and name.startswith(_TICK)):
            msg = f"there is no tuple {name!r}, or it was acked or failed already (I12)"
            raise ValueError(msg)
        self._done += 1
        return tup

    def _got_through(self) -> None:
        """The child has come to a heartbeat: it has been given all tuples before it."""
        with self.child.lock:
            if not self._asked:
                return  # it says so unasked, as children of old did
            last = self._asked.popleft()
            self.child.asked_at = None
        before_it = self.before_it
        while before_it:
            name = next(iter(before_it))
            if int(name.removeprefix(_TICK)) > last:
                break
            tup = before_it.pop(name)
            self._done += 1
            if not name.startswith(_TICK):
                self._held[name] = tup

    def _spare(self) -> None:
        """A tuple that the child could not look at yet is not late (W2)."""
        for tup in self.before_it.values():
            self._collector.reset_timeout(tup)
