"""Reductions and joins of windows: against plain Python, in simulated time on the local engine."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from stormspark.errors import ComponentError, FailedException
from stormspark.streamlet import Builder, Config, KeyedWindow, Streamlet, Window, WindowConfig
from stormspark.streamlet.windowed import Element, Join, JoinType, KeyedReduction, Reduction
from tests.unit.streamlet.fed import (
    SEMANTICS,
    Once,
    begin,
    collect,
    collected,
    done,
    from_left,
    from_right,
    left,
    right,
    running,
)

every_semantics = pytest.mark.parametrize("semantics", SEMANTICS)

PAIRS = st.tuples(st.sampled_from("abc"), st.integers(0, 9))
SIDED = st.lists(st.tuples(PAIRS, st.booleans()), min_size=1, max_size=12)
WINDOW = Window(0.0, 10.0)


def add(one: Any, other: Any) -> Any:
    return one + other


def pair(one: Any, other: Any) -> Any:
    return (one, other)


# -- what becomes of one window --------------------------------------------------------------------------------


@given(SIDED)
def test_a_reduction_is_a_fold(sided):
    """G24: beginning with None, or what is given."""
    elements = [Element(one, side) for one, side in sided]
    folded = Reduction(lambda so_far, one: [*(so_far or []), one], None).results(elements, WINDOW)
    assert list(folded) == [(WINDOW, [one for one, _ in sided])]
    assert list(Reduction(lambda so_far, one: so_far + one[1], 100).results(elements, WINDOW)) == [
        (WINDOW, 100 + sum(one[1] for one, _ in sided))
    ]


@given(SIDED)
def test_a_keyed_reduction_is_a_fold_of_each_key_that_begins_with_its_first_value(sided):
    """A keyed reduction folds the values of each key, beginning with its first value (G24)."""
    results = KeyedReduction(lambda one, other: f"({one}{other})").results(
        [Element(one) for one, _ in sided], WINDOW
    )
    expected: dict[str, Any] = {}
    for (key, value), _ in sided:
        expected[key] = f"({expected[key]}{value})" if key in expected else value
    assert [(key.key, value) for key, value in results] == list(expected.items())


def joined(kind: JoinType, lefts: list[Any], rights: list[Any]) -> Iterator[Any]:
    """A join as SQL says it."""
    for key, value in lefts:
        matches = [other for of, other in rights if of == key]
        yield from ((key, (value, other)) for other in matches)
        if not matches and kind in (JoinType.OUTER_LEFT, JoinType.OUTER):
            yield key, (value, None)
    for key, value in rights:
        if key not in dict(lefts) and kind in (JoinType.OUTER_RIGHT, JoinType.OUTER):
            yield key, (None, value)


@given(SIDED, st.sampled_from(JoinType))
def test_a_join_is_that_of_sql(sided, kind):
    """G24: outer_join too, which Heron's Python refuses to build."""
    results = list(Join(kind, pair).results([Element(one, side) for one, side in sided], WINDOW))
    lefts, rights = ([one for one, of in sided if of == side] for side in (False, True))
    assert Counter((key.key, value) for key, value in results) == Counter(joined(kind, lefts, rights))
    assert {key.window for key, _ in results} <= {WINDOW}


# -- whole topologies, second by second ------------------------------------------------------------------------

Seconds = list[tuple[list[Any], list[Any]]]
#: What comes on the left and on the right in each second.
SECONDS = st.lists(
    st.tuples(st.lists(PAIRS, max_size=3), st.lists(PAIRS, max_size=3)), min_size=1, max_size=8
)


def play(builder: Builder, seconds: Seconds, semantics: int, workers: int = 1) -> list[Any]:
    """Feed second by second, and wait until all windows have fired."""
    begin()
    with running(builder, semantics, topology_workers=workers) as topology:
        for on_the_left, on_the_right in [*seconds, *[([], [])] * 10]:
            left.extend(on_the_left)
            right.extend(on_the_right)
            topology.run_batch()
            topology.simulated_clock.advance(1)
        topology.run_batch()
    return collected


def in_windows(seconds: Seconds, length: int, slide: int, *, side: int) -> dict[float, list[Any]]:
    """The elements of each window, by its end: those of the seconds before it."""
    windows: dict[float, list[Any]] = defaultdict(list)
    for end in range(slide, len(seconds) + length + slide, slide):
        for at, both in enumerate(seconds):
            if end - length <= at < end:
                windows[float(end)].extend(both[side])
    return windows


def sliding(length: int, slide: int) -> WindowConfig:
    return WindowConfig.create_sliding_window(length, slide)


#: Length and slide.
WINDOWS = st.integers(1, 4).flatmap(lambda length: st.tuples(st.just(length), st.integers(1, length)))


@pytest.mark.slow
@settings(max_examples=min(30, settings().max_examples))
@given(SECONDS, WINDOWS, st.sampled_from(SEMANTICS), st.integers(1, 3))
def test_reductions_by_key_against_plain_python(seconds, lengths, semantics, partitions):
    """G24: sliding and tumbling; whatever the delivery and the number of partitions."""
    builder = Builder()
    source = builder.new_source(from_left)
    source.reduce_by_key_and_window(sliding(*lengths), add).set_num_partitions(partitions).consume(collect)
    expected = Counter()
    for end, elements in in_windows(seconds, *lengths, side=0).items():
        for key in {key for key, _ in elements}:
            window = Window(end - lengths[0], end)
            expected[KeyedWindow(key, window), sum(value for of, value in elements if of == key)] += 1
    assert Counter(play(builder, seconds, semantics, workers=2)) == expected


@pytest.mark.slow
@settings(max_examples=min(30, settings().max_examples))
@given(SECONDS, WINDOWS, st.sampled_from(SEMANTICS), st.integers(1, 2), st.sampled_from(JoinType))
@example([([("a", 1)], []), ([], [("a", 2)])], (2, 1), Config.ATMOST_ONCE, 1, JoinType.OUTER)
def test_joins_against_plain_python(seconds, lengths, semantics, partitions, kind):
    """G24: every kind of join, of windows of every kind."""
    builder = Builder()
    one, other = builder.new_source(from_left).set_num_partitions(partitions), builder.new_source(from_right)
    operation: Callable[..., Streamlet] = getattr(one, kind.value)
    operation(other, sliding(*lengths), pair).consume(collect)
    windows = [in_windows(seconds, *lengths, side=side) for side in (0, 1)]
    expected = Counter()
    for end in {*windows[0], *windows[1]}:
        for key, value in joined(kind, windows[0][end], windows[1][end]):
            expected[KeyedWindow(key, Window(end - lengths[0], end)), value] += 1
    assert Counter(play(builder, seconds, semantics, workers=2)) == expected


@settings(max_examples=min(15, settings().max_examples))
@given(SECONDS, WINDOWS, st.sampled_from(SEMANTICS))
def test_reductions_of_windows_against_plain_python(seconds, lengths, semantics):
    """G24: nothing comes of a window without elements, other than in Heron."""
    builder = Builder()
    source = builder.new_source(from_left)
    source.reduce_by_window(sliding(*lengths), lambda so_far, one: so_far + one[1], 0).consume(collect)
    expected = [
        (Window(end - lengths[0], end), sum(value for _, value in elements))
        for end, elements in in_windows(seconds, *lengths, side=0).items()
        if elements
    ]
    assert play(builder, seconds, semantics) == expected


@every_semantics
def test_windows_that_count_elements(semantics):
    """G23: of each partition; their start is not known."""
    begin([(n % 2, n) for n in range(20)])
    builder = Builder()
    source = builder.new_source(from_left)
    sums = source.reduce_by_window(
        WindowConfig.create_sliding_count_window(6, 4), lambda total, one: total + one[1], 0
    )
    sums.consume(collect)
    with running(builder, semantics, topology_message_timeout_secs=5) as topology:
        for _ in range(4):
            topology.run_batch()
    assert [(window.start_time, total) for window, total in collected] == [
        (None, sum(range(max(0, end - 6), end))) for end in range(4, 21, 4)
    ]


def test_counts_of_keys_in_windows():
    """`count_by_key_and_window` counts each key in each window (G23)."""
    builder = Builder()
    source = builder.new_source(from_left).set_num_partitions(1)
    counted = source.count_by_key_and_window(lambda one: one[0], sliding(2, 2))
    counted.set_num_partitions(2).map(lambda one: (one[0].key, one[1])).consume(collect)
    out = play(
        builder,
        [([("a", 1), ("b", 1), ("a", 1)], []), ([("a", 1)], []), ([("b", 1)], [])],
        Config.ATMOST_ONCE,
    )
    assert Counter(out) == Counter([("a", 3), ("b", 1), ("b", 1)])


def test_windows_of_windows():
    """G24: keyed windows are keys like any other."""
    builder = Builder()
    source = builder.new_source(from_left)
    sums = source.reduce_by_key_and_window(sliding(1, 1), add)
    ones = source.map(lambda one: (one[0], 1)).reduce_by_key_and_window(sliding(1, 1), add)
    averages = sums.join(ones, sliding(4, 4), lambda total, count: total / count).set_num_partitions(2)
    averages.map(lambda one: (one[0].key.key, one[1])).consume(collect)
    out = play(builder, [([("a", 1), ("a", 2), ("b", 5)], []), ([("a", 9)], [])], Config.ATLEAST_ONCE)
    assert Counter(out) == Counter([("a", 1.5), ("b", 5.0), ("a", 9.0)])


# -- when something goes wrong ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("semantics", "error"),
    [
        (Config.ATLEAST_ONCE, KeyError("boom")),
        (Config.ATLEAST_ONCE, FailedException("no")),
        (Config.EFFECTIVELY_ONCE, KeyError("boom")),
        (Config.EFFECTIVELY_ONCE, FailedException("no")),
    ],
    ids=["raises", "fails", "raises, effectively once", "fails, effectively once"],
)
def test_tumbling_windows_lose_nothing_when_something_goes_wrong_after_them(semantics, error):
    """G24, C27, C44: at least once all elements come again with their window; effectively once none counts twice."""
    seconds = [([("a", n), ("b", 10 * n)], []) for n in range(10)]
    builder = Builder()
    source = builder.new_source(from_left)
    sums = source.reduce_by_key_and_window(sliding(2, 2), add).map(lambda one: (one[0].key, one[1]))
    # What a batch that is taken back has done to a list stays done; what has become of the totals is their state.
    totals = sums.map(Once(("a", 4 + 5), error)).reduce_by_key(lambda one: one[0], lambda one: one[1], add)
    totals.consume(collect)
    play(builder, seconds, semantics)
    assert "raised" in done
    totals_ = dict(collected)
    if semantics == Config.EFFECTIVELY_ONCE:
        assert totals_ == {"a": 45, "b": 450}
    else:
        assert totals_["a"] >= 45 and totals_["b"] >= 450


def test_windows_go_on_where_they_were_when_their_batch_is_taken_back():
    """G24, C44: each element is in exactly one tumbling window, at each of many errors."""
    seconds = [([("a", 2**n)], []) for n in range(12)]
    builder = Builder()
    source = builder.new_source(from_left)
    source.map(raise_now_and_then).reduce_by_key_and_window(sliding(3, 3), add).consume(collect)
    play(builder, seconds, Config.EFFECTIVELY_ONCE)
    assert len(done) == 4
    assert sum(value for _, value in collected) == 2**12 - 1
    assert all(one.window.end_time <= other.window.start_time for (one, _), (other, _) in pairwise(collected))


def raise_now_and_then(element: Any) -> Any:
    if element[1].bit_length() % 3 == 2 and element not in done:
        done.add(element)
        raise KeyError(element)
    return element


@every_semantics
def test_an_error_in_a_window_names_the_stage(semantics):
    """An error in a window's function names the stage, the line and the window (G24, W22)."""
    builder = Builder()
    builder.new_source(from_left).reduce_by_key_and_window(sliding(2, 2), add).set_name("sums")
    begin([("a", 1), ("a", "x")])
    with (
        pytest.raises(
            ComponentError, match=rf"in stage 'sums', reduce_by_key_and_window at {__file__}:\d+, of Window"
        ),
        running(builder, semantics, stormspark_task_max_restarts_in_row=0) as topology,
    ):
        topology.advance_time(3)


@pytest.mark.parametrize(
    ("partitions", "told"),
    [
        (1, "expected a pair of a key and a value, got 'storm' of type str"),
        (2, "stage 'supplier-1' gives 'storm' of type str to stage 'join-1', which groups by keys"),
    ],
)
def test_what_is_no_pair_is_refused_by_the_first_that_looks_at_it(partitions, told):
    """G24: the sender, unless there is one partition alone."""
    builder = Builder()
    one, other = builder.new_source(from_left), builder.new_source(from_right)
    one.join(other, sliding(2, 2), pair).set_num_partitions(partitions)
    begin(["storm"])
    with (
        pytest.raises(ComponentError, match=told),
        running(builder, stormspark_task_max_restarts_in_row=0) as topology,
    ):
        topology.advance_time(3)
