"""Trigger limits: how much of a source Spark may read for one batch (``maxOffsetsPerTrigger`` and similar options).

These options stay fixed while a query runs. A limit that is too large does little harm, because its batches are prolonged. But
more rows wait in memory, a failure repeats more work, and a stop takes longer. A limit that is too small costs throughput. A new
limit costs a restart of the query. So a limit changes only if it has been wrong by at least `FACTOR` for some rounds in a row,
and if no limit has changed just before (`_PAUSE_SECS`). A limit can be wrong in two ways:

- too large: batches take `TOO_MANY_ROUNDS` rounds or more. With the new limit, batches should take `_ROUNDS` rounds. It
  does not aim at one round, because that limit would be too small once a bolt that is slow for a while is fast again.
- too small: every batch brings about as many rows as the limit allows (`_FULL`). Nevertheless each batch is done in one round, no
  spout is held back, and the busiest bolt works for at most a `FACTOR`-th of the target time. With the new limit, the bolt should
  work for the whole target time. But a limit grows at most `_MOST_GROWTH`-fold at once.

Nothing shows whether a source has more rows than a batch has read. A batch may have few rows because of the limit, or because the
source has no more rows. So the limit is first raised. If batches then have no more rows than before, the limit was not the reason
(`_FULL`).

This module reads no clock: time is an argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from stormspark.api import PerTrigger

__all__ = ["FACTOR", "TOO_MANY_ROUNDS", "Bite", "NewLimit", "TriggerLimits"]

#: A limit changes only if it is wrong by at least this factor.
FACTOR = 4
TOO_MANY_ROUNDS = 16
_ROUNDS = 4
#: This many rounds in a row have to show that a limit is too large (-1) or too small (1). A prolonged batch has many rounds.
_PATIENCE = {-1: 32, 1: 12}
_PAUSE_SECS = 10.0
_MOST_GROWTH = 16
#: A batch with at least this share of the rows that the limit allows counts as full.
_FULL = 0.5


class Bite(NamedTuple):
    """The figures of one batch for one source."""

    #: The number of rows that came.
    came: int
    #: The number of rounds in which the spout emitted the batch's rows; at least 1.
    rounds: int
    #: Whether rows are left over or the spout is held back, so that larger batches would not help.
    held: bool
    #: The seconds that the busiest task of a bolt worked in each round, added up over all rounds.
    busy: float


class NewLimit(NamedTuple):
    """A new limit, for which the query has to be started again."""

    spout: str
    option: str
    before: int
    after: int
    because: str

    def __str__(self) -> str:
        return f"{self.spout}: {self.option} {self.before} -> {self.after}, because {self.because}"


@dataclass
class _Limit:
    per_trigger: PerTrigger
    units: int
    #: The largest number of rows that one unit of the limit has brought.
    rows_of_unit: float = 0.0
    #: The direction in which the limit should change, as the last batches show: -1 down, 1 up, 0 not at all.
    direction: int = 0
    #: How many batches in a row had this direction.
    batches: int = 0
    #: How many rounds these batches had.
    rounds: int = 0
    #: For how many seconds bolts worked in these batches.
    busy: float = 0.0

    def forget(self) -> None:
        self.direction, self.batches, self.rounds, self.busy = 0, 0, 0, 0.0


class TriggerLimits:
    """The limits of those source spouts of one topology that have a `PerTrigger`. ``target`` is in seconds.

    >>> limits = TriggerLimits(target=1.0)
    >>> limits.open("orders", PerTrigger("maxOffsetsPerTrigger", 10_000))
    10000
    >>> limits.begin()
    >>> limits.observe({"orders": Bite(10_000, 40, True, 39.0)}, first=True, now=100.0)
    [NewLimit(spout='orders', option='maxOffsetsPerTrigger', before=10000, after=1000, because='a batch took 40 rounds')]
    >>> limits.open("orders", PerTrigger("maxOffsetsPerTrigger", 10_000))
    1000
    """

    def __init__(self, target: float) -> None:
        self._target = target
        self._limits: dict[str, _Limit] = {}
        self._changed_at = float("-inf")
        self._fresh = False

    def open(self, spout: str, per_trigger: PerTrigger) -> int:
        """Return the present limit of a source. A query reads the limit when the query starts."""
        if spout not in self._limits:
            self._limits[spout] = _Limit(per_trigger, per_trigger.first)
        return self._limits[spout].units

    @property
    def units(self) -> Mapping[str, int]:
        """The limits, by spout."""
        return {name: limit.units for name, limit in self._limits.items()}

    def begin(self) -> None:
        """Forget the figures of the last batches, because a query starts."""
        self._fresh = True
        for limit in self._limits.values():
            limit.forget()

    def observe(self, batch: Mapping[str, Bite], *, first: bool, now: float) -> list[NewLimit]:
        """Learn from a batch that is done. Return the limits that change, for which the query has to be started again.

        ``first`` is true for the first batch of a checkpoint.
        """
        # Spark plans a batch before it runs, so the first batch of a query may have been planned with the previous limits.
        skip, self._fresh = self._fresh and not first, False
        if skip:
            return []
        for name, limit in self._limits.items():
            if name in batch:
                self._learn(limit, batch[name])
        if now - self._changed_at < _PAUSE_SECS:
            return []
        wanted = [new for name, limit in self._limits.items() if (new := self._wanted(name, limit))]
        for new in wanted:
            self._limits[new.spout].units = new.after
            self._changed_at = now
        return wanted

    def _learn(self, limit: _Limit, bite: Bite) -> None:
        if not bite.came:
            limit.forget()
            return
        direction = self._direction(limit, bite)
        if direction != limit.direction:
            limit.forget()
        limit.direction = direction
        limit.batches += 1
        limit.rounds += bite.rounds
        limit.busy += bite.busy
        limit.rows_of_unit = max(limit.rows_of_unit, bite.came / limit.units)

    def _direction(self, limit: _Limit, bite: Bite) -> int:
        if bite.rounds >= TOO_MANY_ROUNDS:
            return -1
        full = bite.came >= _FULL * limit.rows_of_unit * limit.units
        small = bite.rounds == 1 and not bite.held and bite.busy * FACTOR <= self._target
        return 1 if small and full else 0

    def _wanted(self, name: str, limit: _Limit) -> NewLimit | None:
        if not limit.direction or limit.rounds < _PATIENCE[limit.direction]:
            return None
        most = limit.per_trigger.most
        if limit.direction < 0:
            rounds = limit.rounds / limit.batches
            after, because = limit.units * _ROUNDS / rounds, f"a batch took {rounds:.0f} rounds"
        else:
            busy = limit.busy / limit.rounds
            after = limit.units * min(self._target / max(busy, 1e-9), _MOST_GROWTH)
            because = f"bolts worked for {busy * 1000:.0f} ms per batch"
        units = max(int(after if most is None else min(after, most)), 1)
        if max(units / limit.units, limit.units / units) < FACTOR:
            return None
        limit.forget()
        return NewLimit(name, limit.per_trigger.option, before=limit.units, after=units, because=because)
