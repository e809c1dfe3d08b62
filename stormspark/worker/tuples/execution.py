"""The loops that execute a chunk of tuples, one for each kind of bolt, and the loop that calls a spout for tuples.

A bolt's loop takes a chunk of deliveries and returns how many deliveries it executed. Another thread may shorten the chunk
meanwhile (`BoltTask.look`), so a loop reads all items after the first only by iterating. If ``execute`` raises, the loop stores
in the runner which tuple raised (``position`` in the chunk, and ``current``), and lets the error through. If the reference
count of a tuple object shows that the user did not keep the object, the loop reuses it for the next tuple. Reuse costs half as
much as a new object per tuple.
"""

# execution.pxd beside this module gives C types for the functions and their variables. Cython compiles this module with these
# types. When you add, rename or retype a function or a variable, change both files and check with `make compiled`.
# Globals and methods that a loop needs for each tuple (`unshared`, `execute`, `new_tuple`) are local variables, because Python
# reads local variables fastest. `edges`, `recycling` and `tuple_state` are modules whose .pxd gives compiled code C functions
# and C constants.
# Two loops ack after each tuple. In the usual case they close the tuple's edge themselves, because a call of `close_edges`
# would cost plain Python 4 % (docs/decisions.md).
# `branch` is a second name for `roots`: the .pxd declares it as `Branch`, so compiled code changes its C field. `branch` is
# only assigned where the type is exactly `Tree` or `Part`, because the ``count`` of a traced tree is a property.

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Part, Tree
from stormspark.api import TICK_SOURCE, tuple_state
from stormspark.api.tuples import Executor, Tuple
from stormspark.spi import ACK, AutoAckBolt, Given, KeepsOutside, recycling
from stormspark.worker.tuples import edges
from stormspark.worker.tuples.collectors import BasicCollector, BoltCollector
from stormspark.worker.tuples.outlets import Delivery
from stormspark.worker.tuples.spout_collector import SpoutCollector

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask
    from stormspark.worker.bolts.runner import Runner
    from stormspark.worker.spouts.suspendable_calls import SuspendableCalls

__all__ = [
    "ack_kept",
    "ask_for_tuples",
    "execute_automatic",
    "execute_basic",
    "execute_kept",
    "execute_outside",
    "execute_plain",
]


def _unshared_count() -> int:
    """Return the `refcount` of an object that only one local variable holds. The number depends on Python and the compiler."""
    tup = object()
    return recycling.refcount(tup)


_UNSHARED = _unshared_count()


def ask_for_tuples(
    next_tuple: Callable[[], object],
    collector: SpoutCollector,
    clock: Callable[[], float],
    most_pending: int,
    calls: SuspendableCalls,
) -> bool:
    """Call ``next_tuple`` up to ``calls.most`` times. Return whether the last call emitted.

    Stop earlier if a call emits nothing or was suspended, if too many trees are open, or at the deadline. Each emit is stamped
    with the time at which its call began.
    """
    account = collector._account
    deadline, turn = calls.deadline, calls.turn
    now = collector.now
    emitted = False
    for call in range(calls.most):
        # The first call is made even after the deadline, because the calls of other spouts may have blocked until then.
        if account.pending >= most_pending or (call and now >= deadline):
            break
        before = collector.emitted
        pause_at = before + turn
        collector.pause_at = pause_at
        next_tuple()
        emitted = collector.emitted != before
        # If `pause_at` has changed, the call was suspended. The call has returned now, so the spout may get its verdicts.
        if collector.pause_at != pause_at and calls.emits_in_call:
            calls.emits_in_call = 0
            break
        if not emitted:
            break
        now = clock()
        collector.now = now
    return emitted


def execute_basic(
    batch: list[Delivery],
    execute: Callable[[Tuple, BasicCollector], object],
    collector: BasicCollector,
    ledger: Ledger,
    runner: Runner,
) -> int:
    """Execute a chunk with a `BasicBolt`. Its emits are anchored to the tuple, which is acked when ``execute`` returns (C5)."""
    unshared = _UNSHARED
    values, source, roots = batch[0]
    tup = Tuple(values, source)
    position = -1
    try:
        for delivery in batch:
            values, source, roots = delivery
            position += 1
            if recycling.refcount(tup) != unshared:
                # The user has kept the tuple. It is acked already, so it may not be acked again or be an anchor.
                tup.state = tuple_state.SETTLED
                tup = Tuple(values, source)
            else:
                tup.values = values
                tup._source = source
            tup.roots = collector.roots = roots
            execute(tup, collector)
            if roots is not None:
                kind = type(roots)
                if kind is Tree or kind is Part:
                    branch: Any = roots
                    branch.count -= 1
                    if not branch.count:
                        ledger.drained(branch)
                else:
                    edges.close_edges(ledger, roots)
        tup.state = tuple_state.SETTLED
        runner.task.counters.acked += position + 1
        return position + 1
    except BaseException:
        runner.position, runner.current = position, tup
        runner.task.counters.acked += position  # all tuples before the one that raised
        raise
    finally:
        collector.roots = None


def execute_plain(
    batch: list[Delivery],
    execute: Callable[[Tuple], object],
    held: MutableMapping[Tuple, float],
    begun: float,
    runner: Runner,
) -> int:
    """Execute a chunk with a `Bolt`, which acks by itself.

    A tracked tuple that ``execute`` neither acks nor fails is put into ``held``, with the time ``begun``, at which its chunk
    began.
    """
    unshared = _UNSHARED
    values, source, roots = batch[0]
    tup = Tuple(values, source)
    position = -1
    try:
        for delivery in batch:
            values, source, roots = delivery
            position += 1
            if recycling.refcount(tup) != unshared or tup.state == tuple_state.HELD:
                tup = Tuple(values, source, roots)
            else:
                tup.values = values
                tup._source = source
                tup.roots = roots
                tup.state = tuple_state.OPEN
            execute(tup)
            if roots is not None and tup.state == tuple_state.OPEN:
                tup.state = tuple_state.HELD
                held[tup] = begun
        return position + 1
    except BaseException:
        runner.position, runner.current = position, tup
        raise


def execute_outside(
    batch: list[Delivery],
    execute: Callable[[Tuple], object],
    held: MutableMapping[Tuple, float],
    begun: float,
    runner: Runner,
) -> int:
    """Execute a chunk as `execute_plain` does, for a bolt that keeps every tuple. So no tuple object can be reused."""
    position = -1
    tup: Tuple | None = None
    try:
        for delivery in batch:
            values, source, roots = delivery
            position += 1
            tup = Tuple(values, source, roots)
            execute(tup)
            if roots is not None and tup.state == tuple_state.OPEN:
                tup.state = tuple_state.HELD
                held[tup] = begun
        return position + 1
    except BaseException:
        runner.position, runner.current = position, tup
        raise


def execute_kept(batch: list[Delivery], bolt: KeepsOutside, begun: float, runner: Runner) -> int:
    """Execute a chunk with a `KeepsOutside`, which takes deliveries and needs no `Tuple` objects. ``batch`` must not change."""
    taken = 0
    try:
        while taken < len(batch):
            taken += bolt.execute_all(batch[taken:] if taken else batch, begun)
        return taken
    except BaseException:
        runner.position, runner.current = taken, Tuple(*batch[taken])
        raise


def ack_kept(given: Sequence[Given], ledger: Ledger, task: BoltTask) -> None:
    """Ack deliveries that a `KeepsOutside` has got (E5)."""
    ticks = 0
    for one in given:
        _, source, roots = one
        if roots is None:
            ticks += source is TICK_SOURCE
            continue
        edges.close_edges(ledger, roots)
    task.counters.acked += len(given) - ticks
    if task.by_input is not None:
        for _, source, _ in given:
            task.by_input.acked[source] += 1
    if task.hooks:
        for one in given:
            tup = Tuple(*one)
            tup.state = tuple_state.SETTLED
            task.call_ack_hooks(tup)


def execute_automatic(
    batch: list[Delivery],
    bolt: AutoAckBolt,
    collector: BoltCollector,
    held: MutableMapping[Tuple, float],
    begun: float,
    ledger: Ledger,
    runner: Runner,
) -> int:
    """Execute a chunk with an `AutoAckBolt`, whose ``execute`` returns whether to ack the tuple."""
    # The collector calls hooks, and counts by input.
    by_collector = bool(runner.task.hooks) or runner.task.by_input is not None
    unshared = _UNSHARED
    execute, new_tuple = bolt.execute, bolt.new_tuple
    executor: Executor | None = bolt.executor
    values, source, roots = batch[0]
    tup = new_tuple(values, source, roots)
    position, acked = -1, 0
    try:
        for delivery in batch:
            values, source, roots = delivery
            position += 1
            if recycling.refcount(tup) != unshared or tup.state == tuple_state.HELD:
                tup = new_tuple(values, source, roots)
            else:
                tup.values = values
                tup._source = source
                tup.roots = roots
                tup.state = tuple_state.OPEN
            answer = executor.execute(tup) if executor is not None else execute(tup)
            if tup.state != tuple_state.OPEN:
                continue
            if answer is not ACK:
                if roots is not None:
                    tup.state = tuple_state.HELD
                    held[tup] = begun
            elif by_collector or source is TICK_SOURCE:
                collector.ack(tup)
            else:
                tup.state = tuple_state.SETTLED
                acked += 1
                if roots is not None:
                    kind = type(roots)
                    if kind is Tree or kind is Part:
                        branch: Any = roots
                        branch.count -= 1
                        if not branch.count:
                            ledger.drained(branch)
                    else:
                        edges.close_edges(ledger, roots)
        return position + 1
    except BaseException:
        runner.position, runner.current = position, tup
        raise
    finally:
        runner.task.counters.acked += acked
