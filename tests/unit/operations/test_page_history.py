"""The history for the page: rates over time, and how much is kept."""

from __future__ import annotations

import json

import numpy as np
import pytest

from stormspark.metrics.sums import SUMMED, Sums
from stormspark.operations.page.history import History, Moment

NAMES = ("lines", "count")
EDGES = np.array([np.nan])


def moment(at: float, batches: int, **counted: tuple[float, float]) -> Moment:
    """Return a moment at which the components have counted so much."""
    found = np.zeros((len(NAMES), len(SUMMED)))
    for name, values in counted.items():
        found[:, SUMMED.index(name)] = values
    return Moment(
        at,
        Sums(NAMES, found, EDGES, batches, 0.5 * batches, {"workers": (0.4 * batches, batches)}),
        np.array([np.nan, 7.0]),
    )


def test_a_rate_is_spread_over_its_batch() -> None:
    history = History(["lines"])
    for second in range(10):
        ended = second // 3
        history.note(moment(100.0 + second, ended, executed=(0, 30.0 * ended)))
    series = history.series("count", 600.0)
    assert series["at"] == [100.0 + second for second in range(10)]
    # The last batch has ended at 109; nobody knows yet about what is after it.
    assert series["executed"] == [None, *[10.0] * 9]
    assert history.rates()["count"]["executed"] == 10.0
    assert set(series["limit"]) == {7.0}
    assert set(history.series("lines", 600.0)["limit"]) == {None}


def test_a_batch_that_lasts_changes_no_rate() -> None:
    history = History()
    for second in range(60):
        ended = min(second, 20)
        history.note(moment(float(second), ended, executed=(0, 5.0 * ended)))
    assert history.rates()["count"]["executed"] == 5.0
    assert history.series("count", 600.0)["executed"][20:] == [None] * 39
    assert history.batch() == {"batch_ms": 500.0, "workers": 400.0}


def test_figures_of_trees_are_those_of_spouts() -> None:
    history = History(["lines"])
    history.note(moment(99.0, 0))
    history.note(
        moment(
            100.0,
            1,
            acked=(3, 100),
            executed=(0, 100),
            calls=(2, 100),
            call_seconds=(1.0, 1.0),
            pending=(4, 0),
        )
    )
    topology = history.series(None, 600.0)
    assert [
        topology[name][1] for name in ("acked", "executed", "latency_ms", "pending", "batch_ms", "workers")
    ] == [
        3.0,
        100.0,
        500.0,
        4.0,
        500.0,
        400.0,
    ]


def test_only_what_is_new_is_told() -> None:
    history = History()
    for second in range(30):
        history.note(moment(float(second), second, executed=(0, 2.0 * second)))
    assert history.series("count", 600.0, 26.5)["executed"] == [2.0, 2.0, 2.0]
    assert history.series("count", 600.0, 29.0) == {"at": []}
    assert History().series(None, 600.0) == {"at": []}
    assert History().rates() == {}


def test_it_goes_back_for_hours_and_does_not_grow() -> None:
    history = History()
    for second in range(30_000):
        queued = 9.0 if second % 1000 == 7 else 1.0
        history.note(moment(float(second), second, queued=(0, queued)))
    fine, coarse = history.series("count", 600.0), history.series("count", 21_600.0)
    assert len(fine["at"]) == 600
    assert len(coarse["at"]) == 720
    assert coarse["at"][0] >= 30_000 - 21_600 - 60
    # A short jam is seen hours later, too.
    assert max(coarse["queued"]) == 9.0
    json.dumps([fine, coarse], allow_nan=False)


def test_a_clock_that_was_set_back_begins_anew() -> None:
    history = History()
    for at in (100.0, 101.0, 101.2, 50.0, 51.0):
        history.note(moment(at, int(at)))
    assert history.series("count", 600.0)["at"] == [50.0, 51.0]


@pytest.mark.parametrize(("components", "edges"), [(2000, 2000), (50, 2450)])
def test_a_topology_of_very_many_components_or_subscriptions_has_a_shorter_history(
    components: int, edges: int
) -> None:
    """8 MB, whatever the shape: then the page's two parts have the 16 that its documents promise."""
    names = tuple(map(str, range(components)))
    history = History()
    for second in range(600):
        sums = Sums(names, np.zeros((components, len(SUMMED))), np.zeros(edges), second, 0.0, {})
        history.note(Moment(float(second), sums, np.zeros(components)))
    kept = len(history.series("7", 600.0)["at"])
    assert 15 < kept < 600
    assert kept * 8 * (components * (len(SUMMED) + 1) + edges) < 8_000_000


def test_what_is_counted_by_subscription_has_a_rate_of_its_own() -> None:
    history = History()
    for second in range(20):
        edges = np.array([np.nan, 3.0 * second, 8.0 * second if second > 12 else np.nan])
        one = moment(100.0 + second, second)
        history.note(one._replace(sums=one.sums._replace(edges=edges)))
    assert history.edge_rates() == [None, 3.0, 15.2]
