import math
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.metrics import Histogram, LatencySummary

#: From a microsecond, below which nothing is told apart, to an hour.
durations = st.floats(min_value=1e-6, max_value=3600.0)


def filled(seconds):
    histogram = Histogram()
    for one in seconds:
        histogram.add(one)
    return histogram


@given(seconds=st.floats(min_value=64e-6, max_value=3600.0), share=st.floats(min_value=0.01, max_value=1.0))
def test_a_percentile_of_equal_durations_is_at_most_1_6_percent_off(seconds, share):
    assert filled([seconds] * 3).percentile(share) == pytest.approx(seconds * 1000, rel=0.016)


@given(seconds=st.floats(min_value=0.0, max_value=64e-6))
def test_short_durations_are_at_most_a_microsecond_off(seconds):
    assert filled([seconds]).percentile(1.0) == pytest.approx(seconds * 1000, abs=0.001)


@given(
    seconds=st.lists(durations, min_size=1, max_size=60),
    share=st.sampled_from([0.01, 0.25, 0.5, 0.9, 0.99, 1.0]),
)
def test_percentiles_are_those_of_the_sorted_durations(seconds, share):
    exact = sorted(seconds)[math.ceil(len(seconds) * share) - 1] * 1000
    assert filled(seconds).percentile(share) == pytest.approx(exact, rel=0.016, abs=0.001)


@given(seconds=st.lists(durations, min_size=1))
def test_the_mean_is_exact(seconds):
    # But for its sixth decimal of a millisecond.
    mean = filled(seconds).summary().mean
    assert mean == pytest.approx(math.fsum(seconds) / len(seconds) * 1000, rel=1e-9, abs=1e-6)


@given(left=st.lists(durations), right=st.lists(durations))
def test_merging_is_counting_together(left, right):
    merged, together = filled(left), filled(left + right)
    merged.merge(filled(right))
    assert merged.buckets == together.buckets
    assert merged.count == together.count
    assert merged.seconds == pytest.approx(together.seconds)


@given(left=st.lists(durations), right=st.lists(durations))
def test_merging_leaves_the_other_alone(left, right):
    other = filled(right)
    before = pickle.dumps(other)
    filled(left).merge(other)
    assert pickle.dumps(other) == before


@given(seconds=durations, count=st.integers(min_value=1, max_value=1000))
def test_a_count_is_so_many_at_once(seconds, count):
    at_once, one_by_one = Histogram(), filled([seconds] * count)
    at_once.add(seconds, count)
    assert at_once.buckets == one_by_one.buckets
    assert at_once.count == one_by_one.count


@given(seconds=st.lists(durations, max_size=40))
def test_it_survives_pickling(seconds):
    histogram = filled(seconds)
    assert pickle.loads(pickle.dumps(histogram)) == histogram


def test_an_empty_one_measures_nothing():
    assert Histogram().percentile(0.5) is None
    assert Histogram().summary() == LatencySummary(None, None, None)


def test_a_clock_that_went_backwards_counts_as_no_time():
    assert filled([-0.5]).percentile(1.0) == pytest.approx(0.0, abs=0.001)


def test_it_stays_small():
    # 64 buckets an octave, 42 octaves from a microsecond to more than a month.
    everything = filled(1e-6 * 1.001**step for step in range(29_000))
    assert everything.seconds > 0
    assert len(everything.buckets) <= 64 * 43


@given(seconds=st.lists(st.floats(min_value=-1.0, max_value=3600.0), min_size=100, max_size=200))
def test_many_at_once_are_each_on_its_own(seconds):
    """Also where they are counted by column, and where two of them are neighbours of a bucket's edge."""
    edges = [
        microseconds / 1e6 for n in (63, 64, 127, 128, 129, 1 << 20) for microseconds in (n - 1, n, n + 1)
    ]
    at_once, one_by_one = Histogram(), filled(seconds + edges)
    at_once.add_all(seconds + edges)
    assert at_once.buckets == one_by_one.buckets
    assert at_once.count == one_by_one.count
    assert at_once.seconds == pytest.approx(one_by_one.seconds)
