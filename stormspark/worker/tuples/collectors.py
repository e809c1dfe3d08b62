"""The collectors of bolts' tasks. Bolts emit, ack and fail through them. `stormspark.api.collector` says what they promise."""

# collectors.pxd beside this module gives C types for the attributes and methods of the two collectors, and for some variables.
# Cython compiles this module with these types. When you add, rename or retype an attribute, a method or a variable, change both
# files and check with `make compiled`.
# `_outlets` and `_ledger` are the same objects that the task has. These second references save each emit a look-up. `edges` and
# `tuple_state` are modules whose .pxd gives compiled code a C function and C constants.

from __future__ import annotations

from collections.abc import Iterable, MutableMapping, Sequence
from functools import partial
from threading import get_ident
from typing import TYPE_CHECKING, Any

from stormspark.acker import Outcome, Roots, Verdict
from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Branch
from stormspark.api import DEFAULT_STREAM, TICK_SOURCE, tuple_state
from stormspark.api.tuples import Tuple
from stormspark.errors import EmitError
from stormspark.worker.foreign_calls import comes_later, post, refuse_other_threads
from stormspark.worker.tuples import edges
from stormspark.worker.tuples.edges import reset_timeouts
from stormspark.worker.tuples.outlets import Outlet, outlet_of
from stormspark.worker.tuples.salvage import error_text

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask
    from stormspark.worker.task import Task

__all__ = ["BasicCollector", "BoltCollector"]


class BoltCollector:
    """The collector of one task of a `Bolt`. Such a bolt itself anchors, acks and fails tuples, through the collector (C2)."""

    __slots__ = ("_acked_by", "_counters", "_held", "_ledger", "_outlets", "_task", "guarded")

    def __init__(self, task: BoltTask, ledger: Ledger, held: MutableMapping[Tuple, float]) -> None:
        self._task = task
        self._ledger = ledger
        self._outlets = task.outlets
        self._counters = task.counters
        #: How many tuples of each source were acked; None unless the bolt reads several streams.
        self._acked_by = None if task.by_input is None else task.by_input.acked
        self._held = held  # the tuples that were neither acked nor failed when their ``execute`` returned
        #: Whether user code has threads, which may call the collector (see `stormspark.worker.foreign_calls`).
        self.guarded = False

    def emit(
        self, values: Sequence[Any], stream: str = DEFAULT_STREAM, anchors: Tuple | Iterable[Tuple] = ()
    ) -> list[int]:
        """Emit a tuple anchored to ``anchors`` (E4).

        If another thread emits, the tuple leaves a little later, so no task ids are returned.
        """
        outlet = self._outlets.get(stream)
        if outlet is None:
            outlet = outlet_of(self._task, stream)
        if type(values) is not tuple or len(values) != outlet.width:
            values = outlet.checked(values)
        roots: Roots = None
        # This is the usual case, which needs no other call. `anchor` has a C type, so its state is a number in C.
        anchor = anchors if type(anchors) is Tuple else None
        if anchor is not None and anchor.state != tuple_state.SETTLED:
            roots = anchor.roots
        elif anchors:
            roots = self.roots_of(anchors)
        if self.guarded and get_ident() != self._task.thread:
            post(self, partial(outlet.send, values, roots))
            return []
        return outlet.send(values, roots)

    def emit_direct(
        self,
        task: int,
        values: Sequence[Any],
        stream: str = DEFAULT_STREAM,
        anchors: Tuple | Iterable[Tuple] = (),
    ) -> None:
        """Emit to one task on a direct stream (D11)."""
        outlet = self.outlet(stream)
        values = outlet.checked(values)
        roots = self.roots_of(anchors) if anchors else None
        if self.guarded and get_ident() != self._task.thread:
            post(self, partial(outlet.send_direct, task, values, roots))
        else:
            outlet.send_direct(task, values, roots)

    def outlet(self, stream: str) -> Outlet:
        """Return the outlet of a stream. Raises `EmitError` if the stream is not declared."""
        return self._outlets.get(stream) or outlet_of(self._task, stream)

    def roots_of(self, anchors: Tuple | Iterable[Tuple]) -> Roots:
        """Return the trees of the anchors: None for no tree, the tree itself for one tree, else a tuple of distinct trees (E4).

        Raises `EmitError` if an emit can't be anchored to ``anchors``.
        """
        if type(anchors) is Tuple and anchors.state != tuple_state.SETTLED:
            return anchors.roots  # type: ignore[no-any-return]
        tuples = [anchors] if type(anchors) is Tuple else list(anchors)
        trees: dict[Branch, None] = {}
        for anchor in tuples:
            if not isinstance(anchor, Tuple):
                msg = (
                    f"component {self._task.component.id!r}, task {self._task.id}: anchors are tuples that execute was given, "
                    f"got {anchor!r} of type {type(anchor).__name__}"
                )
                raise EmitError(msg)
            if anchor.state == tuple_state.SETTLED:
                msg = (
                    f"component {self._task.component.id!r}, task {self._task.id}: emit is anchored to {anchor!r} after its "
                    f"ack or fail; emit first, then ack"  # E14, I12
                )
                raise EmitError(msg)
            roots = anchor.roots
            if isinstance(roots, tuple):
                trees.update(dict.fromkeys(roots))
            elif roots is not None:
                trees[roots] = None
        if len(trees) <= 1:
            return next(iter(trees), None)
        return tuple(trees)

    def ack(self, tup: Tuple) -> None:
        """Close the tuple's edge in each of its trees (E5)."""
        if self.guarded and comes_later(self, partial(self.ack, tup)):
            return
        # This is the usual case, which needs no other call. `plain` has a C type, so its state is a number in C.
        plain = tup if type(tup) is Tuple else None
        if plain is not None and plain.state == tuple_state.OPEN:
            plain.state = tuple_state.SETTLED
        elif self._settled(tup, "ack"):
            return
        if tup._source is not TICK_SOURCE:
            self._counters.acked += 1
            if self._acked_by is not None:
                self._acked_by[tup._source] += 1
        if tup.roots is not None:
            edges.close_edges(self._ledger, tup.roots)
        if self._task.hooks:
            self._task.call_ack_hooks(tup)

    def fail(self, tup: Tuple, reason: str | None = None) -> None:
        """Fail the tuple's trees (E5, E24, E25)."""
        if self.guarded and comes_later(self, partial(self.fail, tup, reason)):
            return
        if self._settled(tup, "fail"):
            return
        task = self._task
        task.count_failed(tup._source)
        # The spout's worker gets the reason. An exception can't always be pickled, but its text can.
        if reason is not None and type(reason) is not str:
            reason = error_text(reason)
        task.fail_delivery(tup.roots, Verdict(Outcome.FAILED, reason, task.component.id, task.id), tup)
        if task.hooks:
            task.call_fail_hooks(tup)

    def _settled(self, tup: Tuple, what: str) -> bool:
        """Return true if the call must have no effect, and report why: the tuple is settled already, or belongs to another
        task.
        """
        state = self.state_of(tup, what)
        if state == tuple_state.SETTLED:
            self._task.report_error(
                f"{what} of {tup!r}, which is acked or failed already; it changes nothing"
            )
            return True
        if state == tuple_state.HELD:
            if tup not in self._held:
                self._task.report_error(
                    f"{what} of {tup!r}, which another task was given; it changes nothing: only that task can close it"
                )
                return True
            begun = self._held.pop(tup, None)
            if begun is not None and what == "ack":
                self._task.count_processed(tup._source, begun)
        tup.state = tuple_state.SETTLED
        return False

    def state_of(self, tup: Tuple, what: str) -> int:
        """Return the state of ``tup``. Raises `TypeError` if ``tup`` is no tuple. ``what`` is the name of the user's call, for
        the message.
        """
        try:
            return tup.state
        except AttributeError:
            task = self._task
            msg = (
                f"component {task.component.id!r}, task {task.id}: {what} takes a tuple that execute was given, got {tup!r} of "
                f"type {type(tup).__name__}"
            )
            raise TypeError(msg) from None

    def reset_timeout(self, tup: Tuple) -> None:
        """Begin the timeouts of the tuple's trees anew (C11)."""
        if self.guarded and get_ident() != self._task.thread:
            post(self, partial(self.reset_timeout, tup))
        else:
            reset_timeouts(self._ledger, tup.roots)

    def flush(self) -> None:
        """Do nothing, because tuples leave with the superstep (C2)."""

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._task.report_error(error)


class BasicCollector:
    """The collector of one task of a `BasicBolt`. All emits are anchored to the current tuple, whose trees are ``roots`` (C5)."""

    __slots__ = ("_guarded", "_ledger", "_outlets", "_task", "_usual", "_width", "roots")

    def __init__(self, task: Task, ledger: Ledger) -> None:
        self._task = task
        self._ledger = ledger
        self._outlets = task.outlets
        self.roots: Roots = None
        self._guarded = False
        self.connect(guarded=False)

    def connect(self, *, guarded: bool) -> None:
        """Take over the task's current outlets. If ``guarded``, user code has threads of its own, and emits of these threads
        are rejected.
        """
        self._guarded = guarded
        # The default stream's outlet has an attribute of its own, to save a look-up. A width of -1 turns this shortcut off,
        # because there is no such stream, or because the calling thread must be checked first.
        self._usual = self._outlets.get(DEFAULT_STREAM)
        self._width = -1 if self._usual is None or guarded else self._usual.width

    def emit(self, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> list[int]:
        """Emit a tuple that is anchored to the current tuple."""
        if stream is DEFAULT_STREAM and type(values) is tuple and len(values) == self._width:
            return self._usual.send(values, self.roots)  # type: ignore[union-attr]
        if self._guarded:
            refuse_other_threads(self._task)
        outlet = self._outlets.get(stream)
        if outlet is None:
            outlet = outlet_of(self._task, stream)
        if type(values) is not tuple or len(values) != outlet.width:
            values = outlet.checked(values)
        return outlet.send(values, self.roots)

    def emit_direct(self, task: int, values: Sequence[Any], stream: str = DEFAULT_STREAM) -> None:
        """Emit to one task on a direct stream (D11)."""
        if self._guarded:
            refuse_other_threads(self._task)
        outlet = self._outlets.get(stream)
        if outlet is None:
            outlet = outlet_of(self._task, stream)
        outlet.send_direct(task, outlet.checked(values), self.roots)

    def reset_timeout(self) -> None:
        """Begin the timeouts of the current tuple's trees anew (C11)."""
        reset_timeouts(self._ledger, self.roots)

    def report_error(self, error: BaseException | str) -> None:
        """Report an error of this task (C4)."""
        self._task.report_error(error)
