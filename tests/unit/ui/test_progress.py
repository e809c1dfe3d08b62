import pytest

from stormspark.ui import Speedometer
from tests.unit.scripted_topology import Moment, snapshot


def test_a_rate_spans_the_last_seconds_and_not_one_look():
    speedometer = Speedometer(window=5.0)
    # Counters that jump once a second, looked at four times a second.
    rates = [
        speedometer.read(snapshot(Moment(at=quarter / 4, executed=1000 * (quarter // 4)))).executed_per_s
        for quarter in range(41)
    ]
    assert rates[-9:] == pytest.approx([1000.0] * 9, rel=0.2)


def test_old_seconds_are_forgotten():
    speedometer = Speedometer(window=5.0)
    for second in range(20):
        progress = speedometer.read(snapshot(Moment(at=second, executed=10_000 if second < 10 else 10_500)))
    assert progress.executed_per_s == 0.0


def test_the_first_look_knows_no_speed():
    progress = Speedometer().read(snapshot(Moment(at=3.0, executed=500, acked=7)))
    assert (progress.executed_per_s, progress.acked) == (0.0, 7)


def test_the_batch_time_is_that_of_recent_batches():
    speedometer = Speedometer(window=5.0)
    slow, fast = snapshot(Moment(at=0.0, batches=10)), snapshot(Moment(at=4.0, batches=20))
    object.__setattr__(fast, "batch_ms", type(fast.batch_ms)(mean=75.0))  # (10 * 100 ms + 10 * 50 ms) / 20
    speedometer.read(slow)
    assert speedometer.read(fast).batch_ms == pytest.approx(50.0)


def test_a_topology_without_batches_has_no_batch_time():
    progress = Speedometer().read(snapshot(Moment(at=0.0, batches=0)))
    assert progress.batch_ms is None
    assert str(progress).endswith("batch 0")


def test_queued_tuples_are_named_only_where_there_are_some():
    assert "queued" not in str(Speedometer().read(snapshot(Moment(at=1.0))))
    assert "queued 12" in str(Speedometer().read(snapshot(Moment(at=1.0, queued=12))))
