"""The figures that the others rest on: they can tell good from bad."""

from __future__ import annotations

import math

import pytest

from tests.faults.backpressure.rounds import Round, full_speed, rate, utilisation
from tests.faults.backpressure.watch import flatness


def round_of(began: float, ended: float, executed: int, *busy: float) -> Round:
    return Round(began, ended, 0, executed, dict(enumerate(busy)), 0, None)


def test_a_series_that_rises_is_not_flat() -> None:
    rise, peak = flatness([100.0, 100.0, 110.0, 120.0, 130.0, 140.0, 150.0], skip=0)
    assert rise == pytest.approx(54, abs=2) and peak == 30


def test_what_happens_in_the_first_part_does_not_count() -> None:
    assert flatness([900.0, 5.0, 5.0, 5.0, 5.0]) == (0, 0)


def test_a_peak_is_shown_although_the_line_is_flat() -> None:
    rise, peak = flatness([5.0, 5.0, 5.0, 95.0, 5.0, 5.0, 5.0], skip=0)
    assert rise == 0 and peak == 90


def test_too_few_samples_say_nothing() -> None:
    with pytest.raises(ValueError, match="2 samples"):
        flatness([1.0, 1.0])


def test_utilisation_is_of_all_tasks_over_all_rounds() -> None:
    rounds = [round_of(0, 10, 900, 9.0, 9.0), round_of(10, 20, 400, 4.0, 4.0)]
    assert utilisation(rounds) == pytest.approx(0.65)
    assert rate(rounds) == 65
    assert utilisation([]) == rate([]) == 0


def test_one_lucky_round_is_not_full_speed() -> None:
    rounds = [round_of(n, n + 1, executed) for n, executed in enumerate([100, 10, 100, 10, 100, 100, 100])]
    assert full_speed(rounds, after=0.5, full=90) == (3.5, 3)
    assert full_speed(rounds, after=0.5, full=90, together=1) == (1.5, 1)
    assert full_speed(rounds, after=0.5, full=101)[0] == math.inf
