"""How long a topology waits between batches in which nothing happens."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pyspark")

from stormspark.plan import plan_topology
from stormspark.spark.pacing import Pacing
from stormspark.spark.phases import Phases
from tests.unit.worker.components import Collect
from tests.unit.worker.rig import two


def longest(available_now: bool = False, at_rest: bool = True, **conf: Any) -> float:
    settings = {key.replace("_", "."): value for key, value in conf.items()}
    plan = plan_topology(two(Collect(), []).create_topology("idle"), settings)
    pacing = Pacing.of(plan, available_now=available_now)
    pacing.pause_after(0.0, idle=False)
    return pacing.pause_after(1000.0, idle=True, at_rest=at_rest)


def test_the_longest_pause_is_a_setting() -> None:
    assert longest() == 5
    assert longest(stormspark_idle_pause_ms=100) == 0.1
    assert longest(stormspark_idle_pause_ms=0) == 0


def test_timeouts_of_open_trees_count_what_is_between_batches() -> None:
    """E10: up to a second of it, which a batch with its pause does not reach."""
    assert longest(at_rest=False) == 0.75
    assert longest(at_rest=False, stormspark_idle_pause_ms=100) == 0.1


def test_nobody_waits_where_the_end_or_a_trigger_is_wanted() -> None:
    assert longest(available_now=True) == 0
    assert longest(stormspark_trigger_interval_ms=10) == 0


def test_a_topology_that_has_just_begun_does_not_wait() -> None:
    assert Pacing(1.0, 1.0).pause_after(50.0, idle=True) == 0


def test_phases_of_a_batch_add_up_and_a_pause_is_none_of_them() -> None:
    phases = Phases()
    phases.begin(1.0)
    assert "between" not in phases.end(2.0, None)
    assert phases.paused(0.5) == {"pause": 0.5}
    phases.begin(2.75)
    phases.add_round(1.0, 0.25, 0.0)
    assert phases.paused(2.0) == {"pause": 2.0}
    phases.add_round(0.5, 0.5, 0.0)
    found = phases.end(6.5, None)
    assert found == {"exchanges": 0.75, "workers": 0.75, "commit": 0.25, "between": 0.25}
    assert sum(found.values()) == 4.5 - 2.75 + 0.25


def test_what_workers_do_meanwhile_is_part_of_other_phases() -> None:
    phases = Phases()
    phases.begin(1.0)
    phases.add_round(1.0, 0.25, 0.5)
    assert phases.end(2.0, None) == {"exchanges": 0.75, "workers": 0.25, "commit": 0.0, "filled": 0.5}
