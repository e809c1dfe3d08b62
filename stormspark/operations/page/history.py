"""A bounded history of a topology's sums: each second for ten minutes, and each half a minute for six hours.

The history is pure: times are arguments, in seconds since 1970. What grows for ever is kept as it is, and turned into rates when
somebody asks.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from itertools import islice, pairwise
from typing import Any, NamedTuple

import numpy as np

from stormspark.metrics.sums import GAUGES, SUMMED, Sums

__all__ = ["History", "Moment"]

#: How far back the two parts of the history go, and how far apart their moments are at least, in seconds.
_FINE, _FINE_STEP = 600.0, 0.9
_COARSE, _COARSE_STEP = 21_600.0, 30.0
#: The most that each part keeps, in bytes, whatever the number of components is.
_MOST_BYTES = 8_000_000
#: What a moment has besides its arrays, in bytes: the times of the parts of batches.
_PARTS_BYTES = 2500
#: There are so many moments in any case, for rates.
_LEAST = 15
#: A rate is a mean over so many seconds.
_RATE_SECS = 10.0
_GAUGE_COLUMNS = [SUMMED.index(name) for name in GAUGES]


class Moment(NamedTuple):
    """The sums at a time, and the limit of each component that has one; NaN for all others."""

    at: float
    sums: Sums
    limits: np.ndarray


class History:
    """What was noted. ``spouts`` are the spouts among the components. Not thread-safe.

    >>> history = History()
    >>> for second in range(20):
    ...     sums = Sums(("a",), np.full((1, len(SUMMED)), 5.0 * second), np.array([]), second, 0.0, {})
    ...     history.note(Moment(float(second), sums, np.array([np.nan])))
    >>> history.rates()["a"]["emitted"], history.series("a", 600.0, 17.0)["emitted"]
    (5.0, [5.0, 5.0])
    """

    def __init__(self, spouts: Collection[str] = ()) -> None:
        self._spouts = spouts
        self._fine: deque[Moment] = deque()
        self._coarse: deque[Moment] = deque()
        #: The largest gauges since the last moment of the coarse part.
        self._peak: np.ndarray | None = None

    @property
    def last(self) -> Moment | None:
        """The last moment; None before the first one."""
        return self._fine[-1] if self._fine else None

    def note(self, moment: Moment) -> None:
        """Add a moment, unless it is less than a second after the last one."""
        last = self.last
        if last is not None and moment.at < last.at + _FINE_STEP:
            if moment.at > last.at - _FINE_STEP:
                return
            self._fine.clear()  # somebody has set the clock back
            self._coarse.clear()
        sums = moment.sums
        coarse = sums.components.nbytes + moment.limits.nbytes + _PARTS_BYTES
        most, most_coarse = (
            max(_LEAST, _MOST_BYTES // size) for size in (coarse + sums.edges.nbytes, coarse)
        )
        self._fine.append(moment)
        while self._fine[0].at < moment.at - _FINE or len(self._fine) > most:
            self._fine.popleft()
        gauges = sums.components[:, _GAUGE_COLUMNS]
        self._peak = gauges if self._peak is None else np.maximum(self._peak, gauges)
        if not self._coarse or moment.at >= self._coarse[-1].at + _COARSE_STEP:
            peaked = sums.components.copy()
            peaked[:, _GAUGE_COLUMNS] = self._peak
            # Rates by subscription are those of the last seconds.
            kept = sums._replace(components=peaked, edges=np.array([]))
            self._coarse.append(moment._replace(sums=kept))
            self._peak = None
            while self._coarse[0].at < moment.at - _COARSE or len(self._coarse) > most_coarse:
                self._coarse.popleft()

    def _recent(self, at_least: float = _RATE_SECS) -> tuple[Moment, Moment] | None:
        """Return two moments to take rates from, ``at_least`` seconds apart if there are, and a batch.

        The later one is the last that a batch has changed: no rate falls because a batch lasts.
        """
        moments = reversed(self._fine)
        new = next(moments, None)
        if new is None:
            return None
        old = new
        for one in moments:
            if one.sums.batches == new.sums.batches and old is new:
                new = old = one  # the batch ended in this moment or before
                continue
            old = one
            if new.at - old.at >= at_least:
                break
        return None if old is new else (old, new)

    def rates(self) -> dict[str, dict[str, float]]:
        """Return by component what it did per second in the last seconds; empty before two batches."""
        found = self._recent()
        if found is None:
            return {}
        old, new = found
        grown = (new.sums.components - old.sums.components) / (new.at - old.at)
        return {
            name: {
                column: max(0.0, float(grown[row, number]))
                for number, column in enumerate(SUMMED)
                if column not in GAUGES
            }
            for row, name in enumerate(new.sums.names)
        }

    def edge_rates(self) -> list[float | None]:
        """Return the rate of each subscription that is counted by itself, as far as it is known; empty before two batches."""
        found = self._recent()
        if found is None:
            return []
        old, new = found
        # A bolt that has not executed anything by this subscription then has no count of it.
        grown = new.sums.edges - np.nan_to_num(old.sums.edges)
        return _none_for_nan(np.maximum(grown / (new.at - old.at), 0.0))

    def batch(self) -> dict[str, float]:
        """Return how long the last batches took, in ms each: as a whole, and each part. Empty before two batches."""
        found = self._recent()
        if found is None:
            return {}
        return _parts(found[0].sums, found[1].sums)

    def series(self, component: str | None, seconds: float, since: float = 0.0) -> dict[str, list[Any]]:
        """Return figures over the last ``seconds``, after ``since``, of a component or of the whole topology.

        ``at`` has the times. A rate between two batches is that of the time between them; None where nobody knows it yet.
        """
        kept = self._fine if seconds <= _FINE else self._coarse
        moments = list(kept)
        if not moments:
            return {"at": []}
        start = moments[-1].at - seconds
        # One moment more, from which the first rate is taken, and those of the batch that has ended last before `since`.
        first = next((number for number, one in enumerate(moments) if one.at > max(start, since)), None)
        if first is None:
            return {"at": []}
        begin = first - 1
        while begin > 0 and moments[begin].sums.batches == moments[first].sums.batches:
            begin -= 1
        used = list(islice(moments, max(0, begin), None))
        shown = first - max(0, begin)
        found = _of_topology(used, self._spouts) if component is None else _of_component(used, component)
        return {name: values[shown:] for name, values in found.items()}


def _of_topology(moments: Sequence[Moment], spouts: Collection[str]) -> dict[str, list[Any]]:
    """Acks, fails and latencies are those of trees, so they are the spouts'."""
    trees = np.array([name in spouts for name in moments[-1].sums.names])
    every = np.array([one.sums.components for one in moments])
    totals = every.sum(axis=1)
    for name in ("acked", "failed", "calls", "call_seconds"):
        column = SUMMED.index(name)
        totals[:, column] = every[:, trees, column].sum(axis=1)
    figures = _figures(moments, totals)
    changes = _changes(moments)
    for name in ("batch_ms", *dict.fromkeys(phase for one in moments for phase in one.sums.phases)):
        values: list[float | None] = [None] * len(moments)
        for old, new in changes:
            part = _parts(moments[old].sums, moments[new].sums).get(name)
            values[old + 1 : new + 1] = [part] * (new - old)
        figures[name] = values
    return figures


def _of_component(moments: Sequence[Moment], component: str) -> dict[str, list[Any]]:
    row = list(moments[-1].sums.names).index(component)
    figures = _figures(moments, np.array([one.sums.components[row] for one in moments]))
    figures["limit"] = [
        None if np.isnan(limit) else float(limit) for limit in (one.limits[row] for one in moments)
    ]
    return figures


def _figures(moments: Sequence[Moment], totals: np.ndarray) -> dict[str, list[Any]]:
    at = np.array([one.at for one in moments])
    found: dict[str, list[Any]] = {"at": at.round(2).tolist()}
    for column in GAUGES:
        found[column] = totals[:, SUMMED.index(column)].tolist()
    rates = np.full((len(moments), len(SUMMED)), np.nan)
    for old, new in _changes(moments):
        rates[old + 1 : new + 1] = (totals[new] - totals[old]) / (at[new] - at[old])
    for number, column in enumerate(SUMMED):
        if column not in (*GAUGES, "calls", "call_seconds"):
            found[column] = _none_for_nan(rates[:, number])
    calls, seconds = rates[:, SUMMED.index("calls")], rates[:, SUMMED.index("call_seconds")]
    with np.errstate(divide="ignore", invalid="ignore"):
        found["latency_ms"] = _none_for_nan(np.where(calls > 0, seconds / calls * 1000, np.nan))
    return found


def _changes(moments: Sequence[Moment]) -> list[tuple[int, int]]:
    """Return pairs of moments between which batches have ended, one after the other."""
    ended = [0] + [
        number
        for number in range(1, len(moments))
        if moments[number].sums.batches != moments[number - 1].sums.batches
    ]
    return list(pairwise(ended))


def _parts(old: Sums, new: Sums) -> dict[str, float]:
    batches = new.batches - old.batches
    if batches <= 0:
        return {}
    nothing = (0.0, 0)
    parts: Mapping[str, float] = {
        name: (seconds - old.phases.get(name, nothing)[0]) / batches * 1000
        for name, (seconds, _) in new.phases.items()
        if not name.startswith("spark.")
    }
    return {"batch_ms": (new.batch_seconds - old.batch_seconds) / batches * 1000, **parts}


def _none_for_nan(values: np.ndarray) -> list[float | None]:
    return [None if math.isnan(value) else round(value, 4) for value in values.tolist()]
