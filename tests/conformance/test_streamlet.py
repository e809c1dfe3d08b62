"""Streamlets: each operation against plain Python, on every engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from stormspark.errors import FailedException
from stormspark.streamlet import Builder, Config, Streamlet, WindowConfig
from tests.conformance.streamlet_components import Given, GivenWithState, Partition, RaiseOnce, Write, read

Run = Callable[..., Any]

NUMBERS = list(range(60))


def config(semantics: int) -> Config:
    made = Config()
    made.set_delivery_semantics(semantics)
    return made


AT_LEAST_ONCE, EFFECTIVELY_ONCE = config(Config.ATLEAST_ONCE), config(Config.EFFECTIVELY_ONCE)


def given(builder: Builder, elements: list[Any], partitions: int = 2) -> Streamlet:
    return builder.new_source(Given(elements)).set_num_partitions(partitions)


def key_and_window(element: Any) -> Any:
    """(key, end of the window, value): JSON, of what comes out of a keyed window."""
    keyed, value = element
    return keyed.key, keyed.window.end_time, value


def test_element_by_element(run: Run, tmp_path: Path) -> None:
    """G23, G24: map, flat_map, filter, transform, union, clone, repartition, split, lambdas that use what is around them."""
    factor = 10
    builder = Builder()
    numbers = given(builder, NUMBERS)
    numbers.map(lambda n: n * factor).consume(Write(tmp_path / "map"))
    numbers.flat_map(lambda n: range(n % 4)).consume(Write(tmp_path / "flat_map"))
    numbers.filter(lambda n: n % 7 == 0).consume(Write(tmp_path / "filter"))
    numbers.transform(Partition()).consume(Write(tmp_path / "transform"))
    numbers.union(given(builder, [100, 200], 1)).consume(Write(tmp_path / "union"))
    for clone in numbers.clone(2):
        clone.consume(Write(tmp_path / "clone"))
    parts = numbers.split({"odd": lambda n: n % 2, "big": lambda n: n > 50})
    parts.with_stream("odd").consume(Write(tmp_path / "odd"))
    parts.with_stream("big").consume(Write(tmp_path / "big"))
    numbers.log()
    done = run(builder.build("elements", AT_LEAST_ONCE))
    expected = {
        "map": [n * 10 for n in NUMBERS],
        "flat_map": [m for n in NUMBERS for m in range(n % 4)],
        "filter": [n for n in NUMBERS if n % 7 == 0],
        "union": [*NUMBERS, 100, 200],
        "clone": NUMBERS * 2,
        "odd": NUMBERS[1::2],
        "big": NUMBERS[51:],
    }
    assert {name: Counter(read(tmp_path / name)) for name in expected} == {
        name: Counter(elements) for name, elements in expected.items()
    }
    transformed = read(tmp_path / "transform")
    assert Counter(n for _, n in transformed) == Counter(NUMBERS)
    assert {partition for partition, _ in transformed} == {0, 1}
    assert done.statistics.components["log-1"].executed == len(NUMBERS)


def test_partitions_are_chosen_by_functions_and_keys(run: Run, tmp_path: Path) -> None:
    """G23, G24: repartition with a function; a key has one partition whoever sends it, and its running count is right."""
    builder = Builder()
    numbers = given(builder, NUMBERS)
    routed = numbers.repartition(3, lambda n, partitions: [n % partitions, 0] if n % 5 else n)
    # Each task of what follows has one sender, and only what that was sent.
    routed.map(lambda n: n).consume(Write(tmp_path / "routed"))
    words = numbers.map(lambda n: f"word {n % 9}")
    counts = words.count_by_key(lambda word: word).set_num_partitions(3)
    counts.consume(Write(tmp_path / "counts"))
    run(builder.build("partitions", AT_LEAST_ONCE))
    assert Counter(read(tmp_path / "routed")) == Counter(n for n in NUMBERS for _ in range(2 if n % 5 else 1))
    expected = Counter(f"word {n % 9}" for n in NUMBERS)
    assert Counter(read(tmp_path / "counts")) == Counter(
        (word, n) for word, count in expected.items() for n in range(1, count + 1)
    )


PAIRS = [(f"key {n % 6}", n) for n in NUMBERS]
OTHERS = [(f"key {n % 10}", -n) for n in range(30)]


@pytest.mark.slow
def test_reductions_of_tumbling_windows_have_each_element_once(run: Run, tmp_path: Path) -> None:
    """G24: whatever the rhythm of the batches."""
    builder = Builder()
    pairs = given(builder, PAIRS)
    tumbling = WindowConfig.create_tumbling_window(0.3)
    sums = pairs.reduce_by_key_and_window(tumbling, lambda one, other: one + other).set_num_partitions(3)
    sums.map(key_and_window).consume(Write(tmp_path / "sums"))
    totals = pairs.map(lambda pair: pair[1]).reduce_by_window(tumbling, lambda total, n: total + n, 0)
    totals.map(lambda total: total[1]).consume(Write(tmp_path / "totals"))
    run(builder.build("reductions", AT_LEAST_ONCE))
    by_key: Counter[str] = Counter()
    written = read(tmp_path / "sums")
    for key, _, value in written:
        by_key[key] += value
    expected: Counter[str] = Counter()
    for key, value in PAIRS:
        expected[key] += value
    assert by_key == expected
    assert len({(key, end) for key, end, _ in written}) == len(written)
    assert sum(read(tmp_path / "totals")) == sum(NUMBERS)


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
def test_an_outer_join_of_tumbling_windows_is_that_of_each_window(
    run: Run, tmp_path: Path, partitions: int
) -> None:
    """G24: who is in which window depends on the batches, and comes out of the join itself; each element is in one."""
    builder = Builder()
    left, right = given(builder, PAIRS), given(builder, OTHERS)
    joined = left.outer_join(right, WindowConfig.create_tumbling_window(0.4), lambda one, other: (one, other))
    joined.set_num_partitions(partitions).map(key_and_window).consume(Write(tmp_path / "joined"))
    run(builder.build("join", AT_LEAST_ONCE))
    windows: dict[Any, list[Any]] = defaultdict(list)
    for key, end, both in read(tmp_path / "joined"):
        windows[key, end].append(both)
    lefts: list[Any] = []
    rights: list[Any] = []
    for (key, _), values in windows.items():
        ones, others = ({value[side] for value in values} for side in (0, 1))
        assert Counter(values) == Counter(product(ones, others))
        lefts += [(key, one) for one in ones if one is not None]
        rights += [(key, other) for other in others if other is not None]
    assert Counter(lefts) == Counter(PAIRS)
    assert Counter(rights) == Counter(OTHERS)


def test_joins_of_all_that_comes(run: Run, tmp_path: Path) -> None:
    """G24: the four kinds, of one window of so many elements (G23)."""
    builder = Builder()
    left, right = given(builder, PAIRS[:8]), given(builder, OTHERS[:10])
    window = WindowConfig.create_tumbling_count_window(18)
    for kind in ("join", "outer_left_join", "outer_right_join", "outer_join"):
        joined = getattr(left, kind)(right, window, lambda one, other: (one, other)).set_num_partitions(1)
        joined.map(lambda element: (element[0].key, element[1])).consume(Write(tmp_path / kind))
    # Nothing is tracked: a window that never fills again holds its elements for ever.
    run(builder.build("joins"))
    inner = [(key, (n, m)) for key, n in PAIRS[:8] for of, m in OTHERS[:10] if of == key]
    left_alone = [(key, (n, None)) for key, n in PAIRS[:8] if key not in dict(OTHERS[:10])]
    right_alone = [(key, (None, m)) for key, m in OTHERS[:10] if key not in dict(PAIRS[:8])]
    assert right_alone
    for kind, expected in (
        ("join", inner),
        ("outer_left_join", inner + left_alone),
        ("outer_right_join", inner + right_alone),
        ("outer_join", inner + left_alone + right_alone),
    ):
        assert Counter(read(tmp_path / kind)) == Counter(expected), kind


def test_what_fails_is_emitted_again(run: Run, tmp_path: Path) -> None:
    """G24, C43: at least once."""
    builder = Builder()
    numbers = given(builder, NUMBERS)
    fails = RaiseOnce(7, tmp_path / "failed", FailedException("not now"))
    numbers.map(fails).consume(Write(tmp_path / "all"))
    raises = RaiseOnce(8, tmp_path / "raised", KeyError("boom"))
    numbers.map(raises).consume(Write(tmp_path / "too"))
    run(builder.build("again", AT_LEAST_ONCE))
    assert (tmp_path / "failed").exists() and (tmp_path / "raised").exists()
    assert set(read(tmp_path / "all")) == set(read(tmp_path / "too")) == set(NUMBERS)


@pytest.mark.slow
def test_effectively_once_counts_each_element_once_whatever_raises(run: Run, tmp_path: Path) -> None:
    """G24, C42, C44: sources, windows and running totals are state, and are taken back together."""
    builder = Builder()
    source = builder.new_source(GivenWithState(PAIRS, seconds=2.5))
    raises = RaiseOnce(PAIRS[40], tmp_path / "raised", KeyError("boom"))
    pairs = source.map(raises).filter(lambda pair: pair[0] != "alive")
    tumbling = WindowConfig.create_tumbling_window(0.4)
    sums = pairs.reduce_by_key_and_window(tumbling, lambda one, other: one + other).set_num_partitions(2)
    again = sums.map(lambda one: (one[0].key, one[1])).map(RaiseAtAny(tmp_path / "again"))
    totals = again.reduce_by_key(lambda one: one[0], lambda one: one[1], lambda one, other: one + other)
    totals.set_num_partitions(2).consume(Write(tmp_path / "totals"))
    run(builder.build("once", EFFECTIVELY_ONCE))
    assert (tmp_path / "raised").exists() and (tmp_path / "again").exists()
    # What was written of a batch that was taken back stays written; the last total of each key is that of its state.
    expected: Counter[str] = Counter()
    for key, value in PAIRS:
        expected[key] += value
    assert dict(read(tmp_path / "totals")) == expected


class RaiseAtAny:
    """Raises at the first element of all."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __call__(self, element: Any) -> Any:
        if not self.mark.exists():
            self.mark.touch()
            raise KeyError("boom")
        return element
