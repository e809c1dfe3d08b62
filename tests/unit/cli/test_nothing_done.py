"""What `stormspark run` says if a topology has done nothing, and that is no failure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

from stormspark.cli.run import Run, _nothing_done
from stormspark.metrics.shortfalls import Kind, Shortfall
from stormspark.ui.watch import Ending

FOUND = [Shortfall(Kind.NOTHING_DONE, "nothing was emitted by sales")]
RUN = Run(cast(Any, None), cast(Any, None), trigger="available-now")


def test_a_source_without_new_rows_is_named() -> None:
    assert _nothing_done(FOUND, RUN, Ending.BY_ITSELF) == [
        "nothing was emitted by sales: its source had no new rows"
    ]


def test_after_an_interrupt_nobody_knows_whether_the_source_had_rows() -> None:
    for run in (RUN, replace(RUN, trigger="continuous")):
        told = _nothing_done(FOUND, run, Ending.INTERRUPTED)
        assert told == ["nothing was emitted by sales: it was interrupted"]


def test_a_failure_or_an_allowed_shortfall_is_told_elsewhere() -> None:
    assert _nothing_done(FOUND, replace(RUN, trigger="continuous"), Ending.BY_ITSELF) == []
    assert _nothing_done(FOUND, replace(RUN, allow=frozenset([Kind.NOTHING_DONE])), Ending.BY_ITSELF) == []
