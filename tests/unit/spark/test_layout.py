"""How a layout goes from one query to the next. Its queries and workers are doubles."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import pytest

pytest.importorskip("pyspark")

from stormspark.plan import plan_topology
from stormspark.spark import layout as layout_module
from stormspark.spark.layout import Layout
from tests.unit.worker.components import Collect, Script
from tests.unit.worker.rig import two


def laid_out(monkeypatch: pytest.MonkeyPatch, *runs: Callable[[Any], None]) -> list[Any]:
    """Run a layout. Each of ``runs`` says what becomes of a query. After the last one, the layout is over. Return the queries."""
    plan = plan_topology(two(Collect(), Script([])).create_topology("laid-out"), {})
    begun: list[Any] = []

    def begin(*given: Any, **named: Any) -> Any:
        run = MagicMock(held=named.get("held", 0), batch_number=7, failure=None, failed_outside=False)
        run.error, run.new_limits, run.stopped_by_others = None, [], False
        begun.append(run)
        return run

    def watch(layout: Layout, run: Any) -> None:
        runs[len(begun) - 1](run)
        if len(begun) == len(runs):
            layout.over.set()

    for name in ("Recovery", "Nimbus", "Placement"):
        monkeypatch.setattr(layout_module, name, MagicMock())
    monkeypatch.setattr(layout_module, "QueryRun", begin)
    monkeypatch.setattr(Layout, "_watch", watch)
    premises = MagicMock(available_now=False, log_folder="/logs")
    premises.executors.took_workers.return_value = False
    premises.executors.why_lost.return_value = ""
    premises.session.sparkContext._jsc.sc().isStopped.return_value = False
    layout = Layout(premises, plan, active=True, is_first=True)
    nimbus: Any = layout.nimbus
    nimbus.error, nimbus.broken = None, None
    monkeypatch.setattr(layout, "_attempt", MagicMock())
    monkeypatch.setattr(layout_module, "replace", lambda attempt, **_: attempt)
    layout.run()
    return begun


def test_what_bolts_hold_is_known_after_a_planned_restart(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stop or a rebalance before the next commit waits for it. A failed attempt takes it back."""

    def gets_a_new_limit(run: Any) -> None:
        run.held += 3
        run.new_limits = ["words: 100 rows"]

    def fails(run: Any) -> None:
        run.failure = "batch 7 failed"

    def ends(run: Any) -> None:
        pass

    begun = laid_out(monkeypatch, gets_a_new_limit, gets_a_new_limit, fails, ends)
    assert [run.held for run in begun] == [3, 6, 6, 0]
