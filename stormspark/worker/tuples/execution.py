"""The loops that execute a chunk of tuples, one for each kind of bolt, and the one that asks a spout for them.

Of all that runs once a tuple, this is the outermost. A bolt's loop takes a chunk of deliveries and returns how many it executed:
another thread may take the rest of the chunk away meanwhile (`BoltTask.look`), so after its first item a loop reads nothing of it
but by iterating. Where ``execute`` raises, the loop notes in the task which tuple that was (``position`` in the chunk,
``current``) and lets the error out. The user's tuple object is used again for the next tuple if nobody has kept it, which its
reference count tells: that is half the price of a new object a tuple.
"""

# execution.pxd beside this module gives the functions and their variables their C types, with which Cython compiles it.
# When you add, rename or retype one of them, change both files and check with `make compiled`.
# `branch` is a second name for `roots`, for speed: the .pxd declares it as `Branch`, so compiled code changes its C
# field. It is only assigned where the type is exact, since a traced tree has a property there. Globals and methods that
# a loop needs for each tuple (`unshared`, `execute`, `new_tuple`) are local variables, because those are read fastest.

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import TYPE_CHECKING, Any

from stormspark.acker.ledger import Ledger
from stormspark.acker.tree import Part, Tree
from stormspark.api import TICK_SOURCE
from stormspark.api.tuples import Executor, Tuple
from stormspark.spi import ACK, AutoAckBolt, Given, KeepsOutside, recycling
from stormspark.worker.tuples.collectors import BasicCollector, BoltCollector, SpoutCollector, close_edges
from stormspark.worker.tuples.outlets import Delivery

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask
    from stormspark.worker.spout_task import SpoutTask

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
    """What `refcount` says of an object that nothing but one local variable holds: Pythons, and compilers, differ there."""
    tup = object()
    return recycling.refcount(tup)


_UNSHARED = _unshared_count()


def ask_for_tuples(
    next_tuple: Callable[[], object],
    collector: SpoutCollector,
    clock: Callable[[], float],
    most_pending: int,
    task: SpoutTask,
) -> bool:
    """Call ``next_tuple`` up to ``task.calls`` times, until it emits nothing; whether the last call emitted.

    Each emit is stamped with the time at which its call began.
    """
    account = collector._account
    deadline, turn = task.deadline, task.turn
    now = collector.now
    emitted = False
    for call in range(task.calls):
        # Once a round at least, however long the calls of spouts before this one have blocked.
        if account.pending >= most_pending or (call and now >= deadline):
            break
        before = collector.emitted
        pause_at = before + turn
        collector.pause_at = pause_at
        next_tuple()
        emitted = collector.emitted != before
        # Only then can it have been suspended: now that it has returned it may hear of its trees.
        if collector.pause_at != pause_at and task.emits_in_call:
            task.emits_in_call = 0
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
    task: BoltTask,
) -> int:
    """For a `BasicBolt`: emits are anchored to the tuple, which is acked when ``execute`` returns (C5)."""
    unshared = _UNSHARED
    values, source, roots = batch[0]
    tup = Tuple(values, source)
    position = -1
    try:
        for delivery in batch:
            values, source, roots = delivery
            position += 1
            if recycling.refcount(tup) != unshared:
                tup.state = (
                    1  # somebody has kept it: it is acked, and nobody may ack it again or anchor to it
                )
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
                    close_edges(ledger, roots)
        tup.state = 1
        task.counters.acked += position + 1
        return position + 1
    except Exception:
        task.position, task.current = position, tup
        task.counters.acked += position  # all before this one
        raise
    finally:
        collector.roots = None


def execute_plain(
    batch: list[Delivery],
    execute: Callable[[Tuple], object],
    held: MutableMapping[Tuple, float],
    begun: float,
    task: BoltTask,
) -> int:
    """For a `Bolt`, which acks by itself; a tuple that it neither acks nor fails in ``execute`` is held, since ``begun``."""
    unshared = _UNSHARED
    values, source, roots = batch[0]
    tup = Tuple(values, source)
    position = -1
    try:
        for delivery in batch:
            values, source, roots = delivery
            position += 1
            if recycling.refcount(tup) != unshared or tup.state == 2:
                tup = Tuple(values, source, roots)
            else:
                tup.values = values
                tup._source = source
                tup.roots = roots
                tup.state = 0
            execute(tup)
            if roots is not None and not tup.state:
                tup.state = 2
                held[tup] = begun
        return position + 1
    except Exception:
        task.position, task.current = position, tup
        raise


def execute_outside(
    batch: list[Delivery],
    execute: Callable[[Tuple], object],
    held: MutableMapping[Tuple, float],
    begun: float,
    task: BoltTask,
) -> int:
    """As `execute_plain`, for a bolt that keeps every tuple."""
    position = -1
    tup: Tuple | None = None
    try:
        for delivery in batch:
            values, source, roots = delivery
            position += 1
            tup = Tuple(values, source, roots)
            execute(tup)
            if roots is not None and not tup.state:
                tup.state = 2
                held[tup] = begun
        return position + 1
    except Exception:
        task.position, task.current = position, tup
        raise


def execute_kept(batch: list[Delivery], bolt: KeepsOutside, begun: float, task: BoltTask) -> int:
    """For a `KeepsOutside`, which takes them as they are. Nobody may take anything of ``batch`` away."""
    taken = 0
    try:
        while taken < len(batch):
            taken += bolt.execute_all(batch[taken:] if taken else batch, begun)
        return taken
    except Exception:
        task.position, task.current = taken, Tuple(*batch[taken])
        raise


def ack_kept(given: Sequence[Given], ledger: Ledger, task: BoltTask) -> None:
    """Ack what a `KeepsOutside` was given (E5)."""
    ticks = 0
    for one in given:
        _, source, roots = one
        if roots is None:
            ticks += source is TICK_SOURCE
            continue
        kind = type(roots)
        if kind is Tree or kind is Part:
            branch: Any = roots
            branch.count -= 1
            if not branch.count:
                ledger.drained(branch)
        else:
            close_edges(ledger, roots)
    task.counters.acked += len(given) - ticks
    if task.hooks:
        for one in given:
            tup = Tuple(*one)
            tup.state = 1
            task.tell_acked(tup)


def execute_automatic(
    batch: list[Delivery],
    bolt: AutoAckBolt,
    collector: BoltCollector,
    held: MutableMapping[Tuple, float],
    begun: float,
    ledger: Ledger,
    task: BoltTask,
) -> int:
    """For an `AutoAckBolt`, whose ``execute`` says whether the tuple is acked."""
    unshared, hooks = _UNSHARED, bool(task.hooks)
    execute, new_tuple = bolt.execute, bolt.new_tuple
    executor: Executor | None = bolt.executor
    values, source, roots = batch[0]
    tup = new_tuple(values, source, roots)
    position, acked = -1, 0
    try:
        for delivery in batch:
            values, source, roots = delivery
            position += 1
            if recycling.refcount(tup) != unshared or tup.state == 2:
                tup = new_tuple(values, source, roots)
            else:
                tup.values = values
                tup._source = source
                tup.roots = roots
                tup.state = 0
            answer = executor.execute(tup) if executor is not None else execute(tup)
            if tup.state:
                continue
            if answer is not ACK:
                if roots is not None:
                    tup.state = 2
                    held[tup] = begun
            elif hooks or source is TICK_SOURCE:
                collector.ack(tup)
            else:
                tup.state = 1
                acked += 1
                if roots is not None:
                    kind = type(roots)
                    if kind is Tree or kind is Part:
                        branch: Any = roots
                        branch.count -= 1
                        if not branch.count:
                            ledger.drained(branch)
                    else:
                        close_edges(ledger, roots)
        return position + 1
    except Exception:
        task.position, task.current = position, tup
        raise
    finally:
        task.counters.acked += acked
