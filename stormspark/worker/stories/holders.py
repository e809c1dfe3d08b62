"""The search for the holders of failed trees. It looks for the trees' tuples in all places of a worker where tuples can be.

The search runs after a tree has failed, and needs no earlier recording. Tuples that wait are in an inbox or a lane. A bolt's
task knows the tuples that the bolt holds, and for how long (`BoltTask.held`). If an edge is open and its tuple is in none of
these places, a bolt has dropped the tuple without ack or fail. The search looks once at each tuple that waits or is held in the
worker.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from stormspark.acker import Branch, Roots
from stormspark.worker.stories.story import Holder

if TYPE_CHECKING:
    from stormspark.worker.bolt_task import BoltTask
    from stormspark.worker.tuples.lanes import Lanes
    from stormspark.worker.vectorised.lanes import BatchLanes

__all__ = ["find_holders"]

_roots_of = itemgetter(2)


def find_holders(
    wanted: Mapping[Any, Hashable],
    bolts: Iterable[BoltTask],
    lanes: Iterable[Lanes | BatchLanes],
    names: Mapping[int, str],
    now: float,
) -> dict[Hashable, list[Holder]]:
    """Find the holders of tuples of some trees.

    The keys of ``wanted`` are the trees themselves, or the root ids of parts. The values of ``wanted`` are names for the trees,
    and are the keys of the result. ``names``: the name of each task, by id.
    """
    found: dict[Hashable, list[Holder]] = defaultdict(list)
    for bolt in bolts:
        for name, tuples in _count(wanted, Counter(map(_roots_of, bolt.waiting_deliveries()))).items():
            found[name].append(Holder(bolt.name, "waiting", tuples))
        held: Counter[Hashable] = Counter()
        oldest: dict[Hashable, float] = {}
        for tup, since in bolt.held():
            for name in _names(wanted, tup.roots):
                held[name] += 1
                oldest[name] = min(since, oldest.get(name, since))
        for name, tuples in held.items():
            found[name].append(Holder(bolt.name, "held", tuples, max(0.0, now - oldest[name])))
    for to_one_worker in lanes:
        for target, lane in to_one_worker.by_target():
            for name, tuples in _count(wanted, Counter(map(_roots_of, lane))).items():
                found[name].append(Holder(names[target], "leaving", tuples))
    return dict(found)


def _count(wanted: Mapping[Any, Hashable], by_roots: Counter[Roots]) -> Counter[Hashable]:
    counts: Counter[Hashable] = Counter()
    for roots, tuples in by_roots.items():
        for name in _names(wanted, roots):
            counts[name] += tuples
    return counts


def _names(wanted: Mapping[Any, Hashable], roots: Roots) -> Iterator[Hashable]:
    branches: Collection[Branch | None] = roots if isinstance(roots, tuple) else (roots,)
    for branch in branches:
        if branch is not None:
            name = wanted.get(branch)
            if name is None and branch.root_id:
                name = wanted.get(branch.root_id)
            if name is not None:
                yield name
