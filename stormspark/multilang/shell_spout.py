"""A spout in any language (I4, I5)."""

from __future__ import annotations

import json
import time
from collections import deque
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

from stormspark.api import Spout, SpoutOutputCollector, TopologyContext
from stormspark.errors import MultilangError
from stormspark.multilang.component import ShellComponent
from stormspark.multilang.conversation import Conversation, label_of

__all__ = ["ShellSpout"]


class ShellSpout(ShellComponent, Spout):
    """A spout that runs a child process, which speaks Storm's multilang protocol. Its arguments are those of `ShellBolt`.

    The child carries out one command at a time. As in Storm, the executor's thread waits until the child is done (I4).

    >>> sentences = ShellSpout(["node", "sentences.js"], ["sentence"])
    """

    #: The spout's code may wait, because it waits for the child (`stormspark.waiting_code`).
    waits = True
    _talk: _SpoutConversation | None = None

    def open(
        self, conf: Mapping[str, Any], context: TopologyContext, collector: SpoutOutputCollector
    ) -> None:
        """Start the child. Raises `MultilangError` if it does not start."""
        self._talk = _SpoutConversation(
            self.surroundings(conf, label_of("spout", context)), conf, context, collector
        )

    def next_tuple(self) -> None:
        """Let the child emit the tuples that it has."""
        self._query("next", "")

    def ack(self, message_id: Hashable) -> None:
        """Tell the child that the tree with this message id is fully processed."""
        self._query("ack", message_id)

    def fail(self, message_id: Hashable) -> None:
        """Tell the child that the tree with this message id has failed."""
        self._query("fail", message_id)

    def activate(self) -> None:
        """Tell the child that the topology is active."""
        self._query("activate", "")

    def deactivate(self) -> None:
        """Tell the child that the topology is inactive."""
        self._query("deactivate", "")

    def close(self) -> None:
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

    def _query(self, command: str, message_id: Hashable) -> None:
        if self._talk is not None:
            self._talk.query(command, message_id)


class _ComposedId(NamedTuple):
    """A message id that is a JSON list or object. It is kept as JSON text, because message ids must be hashable."""

    text: str


class _SpoutConversation(Conversation):
    kind = "spout"
    _collector: SpoutOutputCollector

    def __init__(self, *args: Any) -> None:
        self._heard: deque[Any] = deque()
        self._busy = False
        self._later: deque[tuple[str, Hashable]] = deque()
        super().__init__(*args)

    def query(self, command: str, message_id: Hashable) -> None:
        """Send a command, and handle the child's messages until it answers ``sync`` (I4)."""
        if self._busy:  # for example, the topology is deactivated while `next_tuple` waits in an emit
            self._later.append((command, message_id))
            return
        self._ask(command, message_id)
        while self._later:
            self._ask(*self._later.popleft())

    def _ask(self, command: str, message_id: Hashable) -> None:
        if self.child.closed:
            return
        own_id = json.loads(message_id.text) if type(message_id) is _ComposedId else message_id
        child, done = self.child, False
        self._busy = True
        try:
            child.asked_at = time.monotonic()
            child.send({"command": command, "id": own_id})
            while (message := self._next())["command"] != "sync":
                self._do(message)
            child.asked_at = None
            done = True
        finally:
            self._busy = False
            if not done:  # the child has not finished its command, so it can't take another one
                self._later.clear()
                child.kill()

    def _next(self) -> dict[str, Any]:
        while not self._heard:
            self.child.wait()
            self.child.flush()
            self._heard.extend(self.child.read() or ())
        message = self._heard.popleft()
        if type(message) is not dict or "command" not in message:
            self.broken(message, 'a message must be an object with a "command"')
        return message

    def _do(self, message: dict[str, Any]) -> None:
        if message["command"] == "emit":
            # The worker may take long to handle the emit. Meanwhile the child need not give a sign of life.
            self.child.asked_at = None
            try:
                self._emit(message)
            except MultilangError:
                raise
            except Exception as error:
                self.broken(message, str(error), error)
            self.child.asked_at = time.monotonic()
        elif not self._handle_common(message):
            self.broken(message, "a spout may send emit, log, error, metrics or sync")  # I12

    def _emit(self, message: dict[str, Any]) -> None:
        values, stream, task = self.emit_of(message)
        message_id = message.get("id")
        if type(message_id) in (dict, list):
            message_id = _ComposedId(json.dumps(message_id))
        if task:
            self._collector.emit_direct(task, values, stream, message_id=message_id)
            return
        tasks = self._collector.emit(values, stream, message_id=message_id)
        if message.get("need_task_ids") in (None, True):
            self.child.send(tasks)
