"""A bolt in any language (I6-I9, I13, I14, I17).

While the child works, the worker already sends it more tuples, many in one write. ``topology.shellbolt.max.pending`` limits how
many tuples may be on their way: sent, but maybe not received yet. The worker's thread handles the child's messages, because only
this thread can emit, and the answer to an emit is the task ids that the emit returns. When the worker has nothing else to do, it
waits for the child (`stormspark.spi.outside`).

**When is a child done with its tuples?** The child may hold a tuple on purpose and ack it much later. A batch must not wait for
such an ack. So the worker sends a heartbeat after the tuples. When the child answers the heartbeat, it has received all tuples
that were sent before the heartbeat (I13). Those that it has not settled by then are *held*, and the batch does not wait for them.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from stormspark.api import DEFAULT_STREAM, Bolt, OutputCollector, TopologyContext, Tuple
from stormspark.config import Settings
from stormspark.errors import MultilangError, ReportedFailedException
from stormspark.multilang.answers import AHEAD, keeps_answers, only_answer
from stormspark.multilang.component import ShellComponent
from stormspark.multilang.conversation import Conversation, Surroundings, label_of
from stormspark.multilang.messages import TICK, Ack, Emit, Fail, Sync
from stormspark.shown_values import shown
from stormspark.spi import Given, KeepsOutside, Send, Sender

__all__ = ["ShellBolt"]

_DEFAULT_PENDING = 1000
#: When this many bytes are unsent, `give` writes them at once, so that the child has work to do.
_WRITE_BYTES = 16384
#: A tuple that was sent to the child: the parts that the engine passed to `execute_all`, or the `Tuple` that ``execute`` got.
_Kept: TypeAlias = Given | Tuple


class ShellBolt(ShellComponent, Bolt, KeepsOutside):
    """A bolt that runs a child process, which speaks Storm's multilang protocol.

    - ``command``: the child's command, as a list of words.
    - ``outputs``: the fields of the default stream, or the fields of each stream by name.
    - ``env``: environment variables, in addition to the worker's own.
    - ``cwd``: the folder in which the child starts; by default the topology's resources folder (I3).
    - ``metrics``: the metrics that the child may update, by name (I11).

    >>> split = ShellBolt(["python3", "split.py"], ["word"])
    >>> class Split(ShellBolt):                                     # as in Storm (I18)
    ...     def __init__(self):
    ...         super().__init__(["python3", "split.py"])
    ...     def declare_output_fields(self, declarer):
    ...         declarer.declare(["word"])

    The constructor raises `InvalidTopologyError` if the command, the outputs or the variables have the wrong form.
    """

    _talk: _BoltConversation | None = None

    def prepare(self, conf: Mapping[str, Any], context: TopologyContext, collector: OutputCollector) -> None:
        """Start the child. Raises `MultilangError` if it does not start."""
        self._talk = _BoltConversation(
            self.surroundings(conf, label_of("bolt", context)), conf, context, collector
        )

    def execute(self, tup: Tuple) -> None:
        """Pass a tuple to the child. It is written by the next `send` at the latest. If there is no `room`, first wait for it."""
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

    # -- see KeepsOutside ----------------------------------------------------------------------------------------

    @property
    def keeps(self) -> bool:
        """Whether the engine may call `execute_all`. False if a subclass overrides `execute`, which must then get each tuple."""
        return type(self).execute is ShellBolt.execute

    def connected(self, sender: Sender, ack: Callable[[Sequence[Given]], None]) -> None:
        """Use the engine's fast path for the child's emits and acks from now on."""
        if self._talk is not None:
            self._talk.connected(sender, ack)

    def execute_all(self, given: Sequence[Given], now: float) -> int:
        """Send these tuples to the child, up to the first that can't be encoded. Returns how many were sent.

        Raises `ReportedFailedException` if even the first tuple can't be encoded.
        """
        assert self._talk is not None, "execute comes after prepare"
        return self._talk.give_all(given, now)

    def kept(self) -> list[tuple[Given, float]]:
        """Return the tuples that the child has neither acked nor failed, each with the time when it was sent."""
        return self._talk.kept() if self._talk is not None else []

    # -- see WorksOutside --------------------------------------------------------------------------------------

    @property
    def room(self) -> int:
        """How many more tuples may be sent to the child now (I14)."""
        return self._talk.room if self._talk is not None else 0

    @property
    def outside(self) -> int:
        """How many tuples the child may not have received yet."""
        talk = self._talk  # another thread may read this while the bolt ends
        return len(talk.before_it) if talk is not None else 0

    def fileno(self) -> int:
        """Return a file descriptor that becomes readable when the child has written something, or can take unsent bytes."""
        return self._talk.child.fileno() if self._talk is not None else -1

    def send(self) -> None:
        """Write as many of the unsent bytes as the pipe takes."""
        if self._talk is not None:
            self._talk.child.flush()

    @property
    def waits_for_answer(self) -> bool:
        """Whether the child waits for task ids (I8)."""
        return self._talk is not None and self._talk.waits_for_answer

    def take_in(self) -> int:
        """Handle the child's messages. Returns how many tuples the child is done with."""
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
        #: The tuples that the child may not have received yet, by id, oldest first.
        self.before_it: dict[str, _Kept] = {}
        #: The tuples that the child holds, by id.
        self._held: dict[str, _Kept] = {}
        # When the tuples were sent: for each call of `give_all`, the number in the id of its first tuple, and the time.
        self._lots: list[tuple[int, float]] = []
        #: Whether the child may be waiting for the answer to an emit. A child that gets its answers in advance does not wait.
        self.waits_for_answer = False
        self._only_answer = (
            only_answer(context) if keeps_answers(surroundings.command, surroundings.folder) else None
        )
        #: For each unanswered heartbeat, the number in the id of the last tuple that was sent before the heartbeat.
        self._asked: deque[int] = deque()
        self._answers_ahead = False
        # `_streams`: the number of fields of each stream. `_ways`: for each stream that has one, the engine's fast path for
        # emits, after the stream's number of fields.
        self._streams = {
            name: len(context.output_fields(context.this_component_id, name)) for name in context.this_streams
        }
        self._ways: dict[str | None, tuple[int, Send]] = {}
        self._ack_all: Callable[[Sequence[Any]], None] = self._ack_each
        # The child's attendant thread (`stormspark.multilang.child`) may ask for a heartbeat before the handshake is over. The
        # child can't answer it so early, so none is sent while this is None.
        self._heartbeat: bytes | None = None
        super().__init__(surroundings, conf, context, collector)
        self._heartbeat = self.child.messages.encode(
            {"id": "0", "comp": context.this_component_id, "stream": "__heartbeat", "task": -1, "tuple": []}
        )
        timeout = Settings.read(conf).timeout_secs
        if timeout is not None:
            context.set_timer(timeout / 4, self._spare)

    def connected(self, sender: Sender, ack: Callable[[Sequence[Given]], None]) -> None:
        """Use the engine's fast path for acks, and for emits on the streams that have such a path, from now on."""
        self._ack_all = ack
        self._ways = {}
        for stream, width in self._streams.items():
            send = sender(stream)
            if send is not None:
                self._ways[stream] = width, send
        if DEFAULT_STREAM in self._ways:
            self._ways[None] = self._ways[DEFAULT_STREAM]

    def _ack_each(self, kept: Sequence[_Kept]) -> None:
        for one in kept:
            self._collector.ack(_as_tuple(one))

    @property
    def room(self) -> int:
        return self._most - len(self.before_it)

    def give_all(self, given: Sequence[Given], now: float) -> int:
        """Send these tuples, up to the first that can't be encoded. Returns how many were sent.

        The caller must pass no more tuples than `room` allows. Raises `ReportedFailedException` if even the first tuple can't be
        encoded.
        """
        child, before_it = self.child, self.before_it
        try:
            names, data = child.messages.tuple_messages(self._number, given)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ReportedFailedException(self._encoding_problem(Tuple(*given[0]), error)) from error
        if not before_it and not self._held:
            self._lots.clear()
        self._lots.append((self._number + 1, now))
        before_it.update(zip(names, given, strict=False))
        self._number += len(names)
        child.write(data)
        return len(names)

    def give(self, tup: Tuple) -> None:
        """Send a tuple."""
        while len(self.before_it) >= self._most:  # the worker checks `room` first; other callers wait here
            self.child.flush()
            self.child.wait(0.01)
            self.take_in()
        child = self.child
        number = self._number + 1
        name = f"{TICK}{number}" if tup.is_tick else str(number)
        try:
            data = child.messages.tuple_message(name, tup._source, tup.values)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ReportedFailedException(self._encoding_problem(tup, error)) from error
        with child.lock:
            self._number = number
            child.unsent += data
        self.before_it[name] = tup
        if len(child.unsent) >= _WRITE_BYTES:
            child.flush()

    def kept(self) -> list[tuple[Given, float]]:
        """Return the tuples that the child has neither acked nor failed, each with the time when it was sent."""
        kept = []
        for one in (self._held, self.before_it):
            for name, given in one.items():
                assert type(given) is tuple
                lot = bisect_right(self._lots, (int(name.removeprefix(TICK)), math.inf)) - 1
                kept.append((given, self._lots[lot][1]))
        return kept

    def _encoding_problem(self, tup: Tuple, error: Exception) -> str:
        name, why = self.child.messages.name, str(error)
        for field, value in zip(tup.fields, tup.values, strict=True):
            try:
                self.child.messages.encode([value])
            except (TypeError, ValueError, OverflowError, RecursionError) as culprit:
                why = f"the value of its field {field!r}, {shown(value, 100)} of type {type(value).__name__}: {culprit}"
                break
        return (
            f"{self.label}: {tup.source_component!r} has sent a tuple on stream {tup.source_stream!r} that can't be sent to the "
            f"child in {name}: {why}. Emit values that {name} has"
        )

    def send_heartbeat(self) -> None:
        """Send a heartbeat, unless an earlier one is unanswered. The child reads it after the tuples sent before it (I13)."""
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
        """Handle the child's messages. If there are none, and the child may not have received all tuples yet, send a heartbeat.

        Returns how many tuples the child is done with.
        """
        child, done = self.child, self._done
        if child.unsent:
            child.flush()
        data = child.receive()
        if data is None:
            if self.before_it:
                self.send_heartbeat()
            return 0
        before_it, ways = self.before_it, self._ways
        acked: list[_Kept] = []
        answers: list[bytes] = []
        try:
            for message in self._hear(data, acked):
                try:
                    # For speed, the most frequent messages are handled right here, if they have their usual form.
                    kind = type(message)
                    if kind is Emit:
                        way, ids = ways.get(message.stream), message.anchors
                        if way is not None and message.task is None and type(ids) is list and len(ids) == 1:
                            values, anchor = message.values, before_it.get(ids[0])
                            if anchor is not None and len(values) == way[0]:
                                tasks = way[1](values, anchor[2])
                                if message.need_task_ids is not False:
                                    self._answer(tasks, message.need_task_ids, answers)
                                continue
                        target = self.target_of(message.values, message.stream, message.task)
                        self._emit(*target, ids, message.need_task_ids, answers)
                    elif kind is Ack and (kept := before_it.pop(message.id, None)) is not None:
                        acked.append(kept)
                    else:
                        self._do(message, acked, answers)
                except MultilangError:
                    raise
                except Exception as error:
                    self.broken(message, str(error), error)
        finally:
            # Ack all tuples together. Emits that are anchored to them came before the acks, so these emits are done by now.
            if acked:
                self._done += len(acked)
                self._ack_all(acked)
        if answers:
            child.write(b"".join(answers))
        return self._done - done

    def _hear(self, data: bytes, acked: list[_Kept]) -> list[Any]:
        """Return the child's messages.

        If the data seems to contain only acks, add the acked tuples to ``acked`` instead. If one of the ids is unknown, return
        the messages from this id on.
        """
        messages, pop = self.child.messages, self.before_it.pop
        ids = messages.acks(data)
        if ids is None:
            return messages.hear(data)
        for position, name in enumerate(ids):
            kept = pop(name, None)
            if kept is None:
                return messages.hear(messages.acked(ids[position:]))
            acked.append(kept)
        return []

    def _do(self, message: Any, acked: list[_Kept], answers: list[bytes]) -> None:
        kind = type(message)
        command = message.get("command") if kind is dict else None
        if kind is Ack or command == "ack":
            kept = self._settled(message.id if kind is Ack else message.get("id"))
            if kept is not None:
                acked.append(kept)
        elif kind is Fail or command == "fail":
            kept = self._settled(message.id if kind is Fail else message.get("id"))
            if kept is not None:
                self._done += 1
                self._collector.fail(_as_tuple(kept), "its child failed it")
        elif kind is Sync or command == "sync":
            self._got_through()
        elif command == "emit":
            ids, need_task_ids = message.get("anchors"), message.get("need_task_ids")
            self._emit(*self.emit_of(message), ids, need_task_ids, answers)
        elif command is None or not self._handle_common(message):
            self.broken(message, "a bolt may send emit, ack, fail, log, error, metrics or sync")

    def _emit(
        self, values: Any, stream: str, task: int, ids: Any, need_task_ids: Any, answers: list[bytes]
    ) -> None:
        anchors = self._anchors(ids)
        if task:
            self._collector.emit_direct(task, values, stream, anchors)
        else:
            self._answer(self._collector.emit(values, stream, anchors), need_task_ids, answers)

    def _answer(self, tasks: list[int], need_task_ids: Any, answers: list[bytes]) -> None:
        """Add the answer to an emit to ``answers``, unless the child wants no answer (I8).

        The caller handles all messages that were read, and then sends all answers in one write.
        """
        if need_task_ids in (None, True):
            answer = self.child.messages.task_ids(tasks)
            answers.append(answer)
            if self._only_answer is None:
                self.waits_for_answer = True
            elif not self._answers_ahead:
                self._answers_ahead = True
                answers.append(answer * AHEAD)

    def _anchors(self, ids: Any) -> Tuple | list[Tuple]:
        """Return the tuples with these ids. Raises ValueError for an id that is unknown, or whose tuple was acked or failed."""
        if not ids:
            return []
        anchors = []
        for one in [ids] if isinstance(ids, str) else ids:
            kept = self.before_it.get(one)
            if kept is None:
                kept = self._held.get(one)
            if kept is not None:
                anchors.append(_as_tuple(kept))
            elif not one.startswith(TICK):
                msg = f"there is no tuple {one!r} to anchor to, or it was acked or failed already: emit first, then ack"
                raise ValueError(msg)
        return anchors[0] if len(anchors) == 1 else anchors

    def _settled(self, name: Any) -> _Kept | None:
        kept = self.before_it.pop(name, None)
        if kept is None:
            kept = self._held.pop(name, None)
        if kept is None and not (isinstance(name, str) and name.startswith(TICK)):
            msg = f"there is no tuple {name!r}, or it was acked or failed already"  # I12
            raise ValueError(msg)
        return kept

    def _got_through(self) -> None:
        """Handle the answer to a heartbeat: the child has received all tuples that were sent before the heartbeat."""
        with self.child.lock:
            if not self._asked:
                return  # a child with an old library also sends a sync without a heartbeat
            last = self._asked.popleft()
            self.child.asked_at = None
        before_it = self.before_it
        while before_it:
            name = next(iter(before_it))
            if int(name.removeprefix(TICK)) > last:
                break
            kept = before_it.pop(name)
            self._done += 1
            if not name.startswith(TICK):
                self._held[name] = kept

    def _spare(self) -> None:
        """Reset the timeouts of tuples that the child may not have received yet, because they may still be in the pipe (W2)."""
        for kept in self.before_it.values():
            self._collector.reset_timeout(_as_tuple(kept))


def _as_tuple(kept: _Kept) -> Tuple:
    return kept if isinstance(kept, Tuple) else Tuple(*kept)
