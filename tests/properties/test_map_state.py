"""Maps of state whose batches die and are replayed: what each promises (G16), in a store that dies in the middle of a write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import find, given
from hypothesis import strategies as st

from stormspark.map_state import (
    CachedMap,
    MapState,
    MemoryBackingMap,
    NonTransactionalMap,
    OpaqueMap,
    TransactionalMap,
)

#: Calls of multi_update, each some (key, amount); a key may come twice, in one call and in several.
CALLS = st.lists(st.lists(st.tuples(st.sampled_from("abcd"), st.integers(1, 9)), max_size=4), max_size=3)


@dataclass(frozen=True)
class Attempt:
    calls: list[list[tuple[str, int]]]
    #: Dies when the store has written so many rows, at the latest before the commit returns.
    dies_after: int = 0
    #: The map is made anew, as in another process; else the same one goes on.
    restarts: bool = True


@dataclass(frozen=True)
class Replayed:
    """A batch: attempts that die, and the one that does not."""

    failed: list[Attempt]
    final: list[list[tuple[str, int]]]


def replayed(same: bool) -> st.SearchStrategy[list[Replayed]]:
    """Batches whose replays bring the same tuples, or others."""

    def batch(final: list[list[tuple[str, int]]]) -> st.SearchStrategy[Replayed]:
        attempts = st.builds(Attempt, st.just(final) if same else CALLS, st.integers(0, 6), st.booleans())
        return st.builds(Replayed, st.lists(attempts, max_size=3), st.just(final))

    return st.lists(CALLS.flatmap(batch), max_size=4)


class DiedError(Exception):
    pass


class MortalStore(MemoryBackingMap):
    """Rows outlive the death of who writes them."""

    rows_until_death: int | None = None

    def multi_put(self, keys: Sequence[Any], values: Sequence[Any]) -> None:
        for key, value in zip(keys, values, strict=True):
            if self.rows_until_death == 0:
                raise DiedError
            if self.rows_until_death is not None:
                self.rows_until_death -= 1
            super().multi_put([key], [value])


def run(
    batches: list[Replayed], make: Callable[[MortalStore], MapState[int]]
) -> tuple[dict[str, int], Counter[str]]:
    """What the map holds in the end, and what it should."""
    store = MortalStore()
    counts = make(store)
    expected: Counter[str] = Counter()
    for txid, batch in enumerate(batches, 1):
        for attempt in batch.failed:
            store.rows_until_death = attempt.dies_after
            try:
                apply(counts, txid, attempt.calls)
            except DiedError:
                pass  # else it is replayed although it was committed: the next one to know did not hear of it
            store.rows_until_death = None
            if attempt.restarts:
                counts = make(store)
        apply(counts, txid, batch.final)
        for call in batch.final:
            for key, amount in call:
                expected[key] += amount
    found = dict(zip("abcd", make(store).multi_get("abcd"), strict=True))
    return {key: value for key, value in found.items() if value is not None}, expected


def apply(counts: MapState[int], txid: int | None, calls: list[list[tuple[str, int]]]) -> None:
    counts.begin_commit(txid)
    for call in calls:
        counts.multi_update([key for key, _ in call], [adding(amount) for _, amount in call])
    counts.commit(txid)


def adding(amount: int) -> Callable[[int | None], int]:
    return lambda before: (before or 0) + amount


def cached_opaque(store: MortalStore) -> MapState[int]:
    return OpaqueMap(CachedMap(store, 2))


def cached_transactional(store: MortalStore) -> MapState[int]:
    return TransactionalMap(CachedMap(store, 2))


@pytest.mark.parametrize("make", [TransactionalMap, OpaqueMap, cached_transactional, cached_opaque])
@given(replayed(same=True))
def test_the_same_tuples_again_are_counted_once(make, batches):
    """G8, G15, G16: a transactional spout, with a transactional and with an opaque state."""
    found, expected = run(batches, make)
    assert found == expected


@pytest.mark.parametrize("make", [OpaqueMap, cached_opaque])
@given(replayed(same=False))
def test_other_tuples_in_the_replay_are_counted_once_by_an_opaque_state(make, batches):
    """G8, G15, G16: also where the replay lacks keys that a failed attempt had, which Storm would count twice."""
    found, expected = run(batches, make)
    assert found == expected


@given(replayed(same=True))
def test_a_non_transactional_state_counts_at_least_once(batches):
    """With batches that are replayed, a non-transactional map may count too much but never too little (G16)."""
    found, expected = run(batches, NonTransactionalMap)
    assert all(found[key] >= expected[key] for key in expected)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "same"), [(NonTransactionalMap, True), (NonTransactionalMap, False), (TransactionalMap, False)]
)
def test_no_more_than_that_is_promised(make, same):
    """G16: the empty cells of the matrix. There are replays that such a state does not count once."""

    def counted_wrong(batches: list[Replayed]) -> bool:
        found, expected = run(batches, make)
        return found != expected

    find(replayed(same), counted_wrong)


@pytest.mark.parametrize("make", [NonTransactionalMap, TransactionalMap, OpaqueMap])
def test_without_numbers_a_replay_is_counted_again(make):
    """G16: a non-transactional spout, whatever the state."""
    store = MemoryBackingMap()
    for _ in range(2):
        apply(make(store), None, [[("a", 1)]])
    assert make(store).multi_get(["a"]) == [2]


@given(replayed(same=False), CALLS)
def test_a_batch_sees_what_it_has_changed(batches, calls):
    """G14: an opaque map continues from the last committed values, whatever failed before."""
    store = MortalStore()
    _, expected = run(batches, lambda _: OpaqueMap(store))
    counts: MapState[int] = OpaqueMap(store)
    counts.begin_commit(len(batches) + 1)
    for call in calls:
        values = counts.multi_update([key for key, _ in call], [adding(amount) for _, amount in call])
        for (key, amount), value in zip(call, values, strict=True):
            expected[key] += amount
            assert value == expected[key]
        assert counts.multi_get("abcd") == [expected.get(key) for key in "abcd"]
