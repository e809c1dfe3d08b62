"""Advice about parts of a plan that are legal, but that the user probably did not intend, or that are slower than necessary.

The advice is logged as warnings, once, when a topology starts.
"""

from __future__ import annotations

import logging
from collections import Counter, deque
from collections.abc import Iterable, Iterator

from stormspark.config import merged, unknown_keys
from stormspark.grouping import LocalWhileHeldGrouping
from stormspark.plan.explain import counted
from stormspark.plan.physical import ComponentPlan, EdgePlan, PhysicalPlan
from stormspark.plan.reachability import spouts_of, strong_components
from stormspark.storm_keys import SIZING_KEYS, STORM_KEYS

__all__ = ["advice", "log_advice"]

_log = logging.getLogger(__name__)

#: Advice is given if, on average, more than this many executors share a core or a worker.
_EXECUTORS_PER_CORE = 16
#: Advice is given if one worker has more than this many executors with threads of their own. With fewer, switching between
#: threads costs little.
_THREADS_PER_WORKER = 500
#: Advice on max spout pending is given below this limit. A round on Spark rarely has as many trees of one task.
_FELT_BELOW = 50_000


def advice(plan: PhysicalPlan) -> list[str]:
    """Return one sentence for each thing that the user should know. If the user can do something, the sentence says what.

    >>> from stormspark import TopologyBuilder
    >>> from stormspark.plan import plan_topology
    >>> from stormspark.testing import TestWordSpout
    >>> builder = TopologyBuilder()
    >>> _ = builder.set_spout("words", TestWordSpout())
    >>> advice(plan_topology(builder.create_topology("demo", {"topology.wrokers": 2})))
    ['unknown setting topology.wrokers: did you mean topology.workers?']
    """
    return [
        *_of_unknown_keys(plan),
        *_of_misspelt_attributes(plan),
        *_of_useless_keys(plan),
        *_of_keys_of_the_topology(plan),
        *_of_bolts_without_input(plan),
        *_of_capped_tasks(plan),
        *_of_loops(plan),
        *_of_max_spout_pending(plan),
        *_of_backpressure(plan),
        *_of_many_executors(plan),
        *_of_many_threads(plan),
        *_of_code_that_waits_all_the_same(plan),
        *_of_others_that_hold_up_the_worker(plan),
        *_of_coroutines_that_block(plan),
    ]


def _of_unknown_keys(plan: PhysicalPlan) -> Iterator[str]:
    for place, conf in [("", plan.conf), *((f"{_place(c)}: ", c.own_conf) for c in plan.components.values())]:
        for key, nearest in unknown_keys(conf):
            yield f"{place}unknown setting {key}" + (f": did you mean {nearest}?" if nearest else "")


def _of_misspelt_attributes(plan: PhysicalPlan) -> Iterator[str]:
    for component in plan.components.values():
        for name, setting in component.misspelt:
            yield f"{_place(component)}: the attribute {name} is no setting of async {component.kind}s: did you mean {setting}?"


def _of_useless_keys(plan: PhysicalPlan) -> Iterator[str]:
    """Yield advice on Storm's keys that have no effect in stormspark: one sentence per reason."""
    keys: dict[str, list[str]] = {}
    for key in merged(plan.conf, *(c.own_conf for c in plan.components.values())):
        if _is_useless(key):
            keys.setdefault(STORM_KEYS[key].useless_because, []).append(key)
    for reason, useless in keys.items():
        verb = "changes" if len(useless) == 1 else "change"
        yield f"{', '.join(sorted(useless))} {verb} nothing here: {reason}"


def _of_keys_of_the_topology(plan: PhysicalPlan) -> Iterator[str]:
    """Yield advice on keys that are set for one component, but count only for the topology. Storm silently ignores them (A21)."""
    for component in plan.components.values():
        dropped = [
            key
            for key in component.own_conf
            if key not in component.conf and key not in SIZING_KEYS and not _is_useless(key)
        ]
        if dropped:
            yield (
                f"{_place(component)}: {', '.join(dropped)} can't be set for one component and "
                f"{'is' if len(dropped) == 1 else 'are'} ignored there; set "
                f"{'it' if len(dropped) == 1 else 'them'} in the topology's configuration"
            )


def _is_useless(key: str) -> bool:
    return key in STORM_KEYS and bool(STORM_KEYS[key].useless_because)


def _of_bolts_without_input(plan: PhysicalPlan) -> Iterator[str]:
    subscribers = {edge.target for edge in plan.edges}
    for component in plan.components.values():
        if (
            component.kind == "bolt"
            and component.id not in subscribers
            and not component.settings.tick_freq_secs
        ):
            yield (
                f"{_place(component)} subscribes to no stream, so it gets no tuples: give it a grouping, such as "
                f"shuffle_grouping({next(iter(plan.components))!r})"
            )


def _of_capped_tasks(plan: PhysicalPlan) -> Iterator[str]:
    capped = [
        f"{c.kind} {c.id!r} has {len(c.tasks)} instead of {c.wanted_tasks}"
        for c in plan.components.values()
        if c.wanted_tasks > len(c.tasks)
    ]
    if capped:
        yield f"topology.max.task.parallelism caps the number of tasks: {', '.join(capped)}"


def _of_loops(plan: PhysicalPlan) -> Iterator[str]:
    for loop in _loops(plan.components, plan.edges):
        crosses = any(edge.crosses and edge.source in loop and edge.target in loop for edge in plan.edges)
        yield (
            f"{' -> '.join(map(repr, loop))} is a loop, which is legal; a tree that never leaves it times out"  # A15
            + (", and each round after the first waits for the next batch" if crosses else "")
        )


def _loops(components: Iterable[str], edges: Iterable[EdgePlan]) -> Iterator[list[str]]:
    """Yield one cycle for each set of components that can all reach each other.

    A cycle is a path from the set's first component back to that component.

    >>> from stormspark.grouping import ShuffleGrouping
    >>> edges = [EdgePlan(a, "default", b, ShuffleGrouping(), False) for a, b in ("sa", "ab", "bc", "ca", "cc")]
    >>> list(_loops("sabc", edges))
    [['a', 'b', 'c', 'a']]
    """
    successors: dict[str, list[str]] = {component: [] for component in components}
    for edge in edges:
        successors[edge.source].append(edge.target)
    group_of = strong_components(successors)
    for group in sorted(set(group_of.values())):
        start = next(component for component in successors if group_of[component] == group)
        ways = deque([[start]])
        seen: set[str] = set()
        while ways:
            way = ways.popleft()
            following = [one for one in successors[way[-1]] if group_of[one] == group]
            if start in following:
                yield [*way, start]
                break
            ways.extend([*way, one] for one in following if one not in seen)
            seen.update(following)


def _of_max_spout_pending(plan: PhysicalPlan) -> Iterator[str]:
    settings = plan.settings
    for component in plan.components.values():
        limit = component.settings.max_spout_pending
        if component.kind != "spout" or not limit:
            continue
        place = f"spout {component.id!r}: topology.max.spout.pending is {limit}"
        if not settings.enable_message_timeouts:
            yield (
                f"{place}, but message timeouts are off: a tuple that is never acked or failed counts for ever, and enough of "
                f"them stop the spout; set topology.enable.message.timeouts to true"  # W15
            )
        if not settings.acking:
            yield f"{place}, but acking is off (topology.acker.executors is 0), so it limits nothing"  # B4
        elif limit < _FELT_BELOW and (crossing := _crossings_of(component.id, plan)):
            yield (
                f"{place}, and trees that cross workers ({', '.join(crossing)}) end with their round: that limits them to "
                f"{limit * len(component.tasks):,} per round, and a round on Spark takes some 0.1 s; the summary says what the "
                f"limit costs, and which value would not be felt"
            )


def _crossings_of(spout: str, plan: PhysicalPlan) -> list[str]:
    """Name the subscriptions that carry trees of ``spout`` to other workers even while max spout pending holds it."""
    spouts = spouts_of(plan.components, plan.edges)
    return [
        f"{edge.source} -> {edge.target}"
        for edge in plan.edges
        if edge.crosses and spout in spouts[edge.source] and not _stays(edge, plan)
    ]


def _stays(edge: EdgePlan, plan: PhysicalPlan) -> bool:
    """Whether each worker that sends along ``edge`` has a task that receives, and prefers it (`prefer_local`)."""
    sending, receiving = (
        {plan.tasks[task].worker for task in plan.components[id].tasks} for id in (edge.source, edge.target)
    )
    return isinstance(edge.grouping, LocalWhileHeldGrouping) and sending <= receiving


def _of_backpressure(plan: PhysicalPlan) -> Iterator[str]:
    """Yield advice on settings that switch backpressure off or drop tuples in Storm, but not in stormspark (F5, F7).

    Also yield advice if the strategy is to fail tuples, but acking is off (X51).
    """
    strategy = plan.settings.backpressure_strategy
    if strategy == "slow" and plan.conf.get("topology.backpressure.enable") is False:
        yield (
            "topology.backpressure.enable is false, but spouts are slowed down all the same while their bolts are behind; "
            "to drop or fail tuples instead, set stormspark.backpressure.strategy to drop or fail"
        )
    limit = plan.conf.get("topology.executor.overflow.limit")
    if strategy == "slow" and limit:
        yield (
            f"topology.executor.overflow.limit is {limit}, but no tuple is dropped: spouts are slowed down instead; to "
            f"drop tuples that do not fit, set stormspark.backpressure.strategy to drop and stormspark.queue.high.mark.tuples "
            f"to {limit}"
        )
    if strategy == "fail" and not plan.settings.acking:
        yield (
            "stormspark.backpressure.strategy is fail, but acking is off (topology.acker.executors is 0): no spout is informed "
            "of failed tuples, so they are dropped and counted"
        )


def _of_many_executors(plan: PhysicalPlan) -> Iterator[str]:
    """Yield advice if there are many more executors than can compute at once (one per worker, and at most one per core).

    Executors whose code may wait don't count, because any number of them can wait at the same time.
    """
    at_once = plan.workers if plan.cores is None else min(plan.workers, plan.cores)
    computing = sum(one.parallelism for one in plan.components.values() if not one.threads_reason)
    if computing <= _EXECUTORS_PER_CORE * at_once:
        return
    of_cores = "" if plan.cores is None else f" on {counted(plan.cores, 'core')}"
    yield (
        f"the topology has {computing} executors that compute in {counted(plan.workers, 'worker')}{of_cores}, so at most "
        f"{at_once} of them {'computes' if at_once == 1 else 'compute'} at the same time: more executors don't "  # A16
        f"make a bolt that computes faster; give it fewer, or run the topology with more workers and cores"
    )


def _of_many_threads(plan: PhysicalPlan) -> Iterator[str]:
    """Yield advice on workers with very many executors that have threads of their own."""
    threaded = {name for name, one in plan.components.items() if one.threads_reason}
    executors = {(t.worker, t.component, t.executor) for t in plan.tasks.values() if t.component in threaded}
    per_worker = Counter(worker for worker, _, _ in executors)
    worker, most = max(per_worker.items(), key=lambda one: one[1], default=(0, 0))
    if most > _THREADS_PER_WORKER:
        names = Counter(component for at, component, _ in executors if at == worker)
        largest = plan.components[names.most_common(1)[0][0]]
        yield (
            f"{_place(largest)}: worker {worker} has {most:,} executors with threads of their own, {names[largest.id]:,} of them "
            f"for this {largest.kind}. Each takes some 70 KB of memory and 2 ms at the start, and the threads of a process "
            f"compute one at a time: beyond {_THREADS_PER_WORKER}, switching between them costs more than short calls gain. Make "
            f"the component asynchronous, whose calls cost no threads, or run the topology in more workers"
        )


def _of_code_that_waits_all_the_same(plan: PhysicalPlan) -> Iterator[str]:
    for component in plan.components.values():
        if component.waits_all_the_same:
            yield (
                f"{_place(component)} says that it only computes (waits = False), but {component.waits_all_the_same}: while that "
                f"waits, all tasks of its worker wait that have no thread of their own; remove waits = False, or set "
                f"stormspark.executor.threads of this {component.kind} to 'never' if it never waits for long"
            )


def _of_others_that_hold_up_the_worker(plan: PhysicalPlan) -> Iterator[str]:
    for component in plan.components.values():
        for found in component.holds_up:
            yield (
                f"{_place(component)} runs on the worker's thread, and so does {found}: while that waits, all tasks of its "
                f"worker wait that have no thread of their own; let it only compute, or set "  # D13, J21
                f"stormspark.executor.threads of this {component.kind} to 'never' if it never waits for long"
            )


def _of_coroutines_that_block(plan: PhysicalPlan) -> Iterator[str]:
    for component in plan.components.values():
        found = component.blocks_the_loop
        if found:
            instead = (
                "write await asyncio.sleep(...)"
                if "time.sleep (" in found
                else "use an async client, or write await asyncio.to_thread(...)"
            )
            yield (
                f"{_place(component)}: {found}, which blocks the event loop: until it returns, all async tasks of its worker "
                f"stand still, also those of other components; {instead}, or set stormspark.executor.threads of this "
                f"{component.kind} to 'never' if it never blocks for long"
            )


def _place(component: ComponentPlan) -> str:
    return f"{component.declared_at}: {component.kind} {component.id!r}"


def log_advice(plan: PhysicalPlan) -> PhysicalPlan:
    """Log the advice on ``plan``, and return ``plan``."""
    for sentence in advice(plan):
        _log.warning("topology %s: %s", plan.topology, sentence)
    return plan
