"""Replays one task's batch, and prints what the task did and how that differs from the recorded batch."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pdb import Pdb
from typing import Any

from rich.console import Console
from rich.text import Text

from stormspark.cli.load import load_topology
from stormspark.cli.output import wide_enough
from stormspark.errors import CheckpointError
from stormspark.plan import plan_topology
from stormspark.state_reading import state_table_of
from stormspark.worker.replays.replay import check_task, newest_plan, plan_that_ran, replay
from stormspark.worker.replays.result import Change, Replay

__all__ = ["parse_task", "replay_task"]

_TASK = re.compile(r"(.+)\[(\d+)\]")
_LETTERS = 200
#: The debugger does not step into these modules.
_OURS = ["stormspark.worker.*", "stormspark.transactional.*", "stormspark.cli.*", "contextlib"]


def parse_task(text: str) -> tuple[str, int]:
    """Split ``component[index]``; raises `CheckpointError` for anything else.

    >>> parse_task("count[2]")
    ('count', 2)
    """
    found = _TASK.fullmatch(text)
    if found is None:
        msg = f"a task must be written as component[index], such as count[2] for the third task of 'count', got {text!r}"
        raise CheckpointError(msg)
    return found[1], int(found[2])


def replay_task(
    topology: str,
    file: str | None,
    conf: Mapping[str, Any],
    batch: int,
    task: str,
    limit: int,
    *,
    debug: bool,
) -> int:
    """Replay the batch, and print what the task did.

    Returns the exit code: 0 if the task did the same as in the recorded batch, otherwise 1. ``file`` is ``FILE[:NAME]`` of the
    topology as it is now; without it the recorded topology runs. Raises `CheckpointError` if the batch can't be replayed.
    """
    component, index = parse_task(task)
    location = state_table_of(topology)
    if file is None:
        try:
            plan = plan_that_ran(location, batch)
        except CheckpointError:
            if (newest := newest_plan(location)) is not None:  # a wrong task is no task in any batch
                check_task(newest, component, index)
            raise
    else:
        plan = plan_topology(load_topology(file), dict(conf), cores=_cores_that_ran(location, batch))
    debugger = Pdb(skip=_OURS, nosigint=True) if debug else None
    done = replay(plan, location, component, index, batch, debugger)
    _print(done, limit)
    return 1 if done.differences else 0


def _cores_that_ran(location: str, batch: int) -> int | None:
    """Return the number of cores that the recorded plan was made for; None if that plan can't be loaded."""
    try:
        return plan_that_ran(location, batch).cores
    except CheckpointError:
        return None


def _print(done: Replay, limit: int) -> None:
    console = wide_enough(Console(highlight=False, soft_wrap=True), 160)

    def say(text: str) -> None:
        console.print(Text(text))

    emitted = sum(len(one.emitted) for one in done.inputs) + len(done.outside)
    acked, failed = (sum(getattr(one, count) for one in done.inputs) for count in ("acked", "failed"))
    say(
        f"{done.component}[{done.task}], batch {done.batch}: {len(done.inputs):,} inputs, {emitted:,} emits, {acked:,} acks, "
        f"{failed:,} fails, {len(done.changes):,} keys changed"
    )
    for one in done.inputs[: limit or None]:
        ended = "raised" if one.raised else "failed" if one.failed else "acked" if one.acked else "kept"
        say(f"{one.number:>6}  {one.source} {_short(one.values)}  {ended}")
        for emit in one.emitted:
            to = f" to {', '.join(map(str, emit.tasks))}" if emit.tasks else ""
            say(f"        emitted {_short(emit.values)} on {emit.stream}{to}")
        if one.raised:
            say(one.raised.rstrip())
    if limit and len(done.inputs) > limit:
        say(f"        ... and {len(done.inputs) - limit:,} more (--limit)")
    for emit in done.outside:
        say(f"        emitted {_short(emit.values)} on {emit.stream}, outside of execute")
    for change in done.changes[: limit or None]:
        say(f" state  {_short(change.key)}: {_value(change.before)} -> {_value(change.after)}")
    if limit and len(done.changes) > limit:
        say(f"        ... and {len(done.changes) - limit:,} more (--limit)")
    if not done.differences:
        say("The task did the same as in the recorded batch.")
        return
    say("The task did NOT do the same as in the recorded batch:")
    for difference in done.differences[: limit or None]:
        say(f"  - {difference}")


def _value(value: Any) -> str:
    return "nothing" if value is Change.missing() else _short(value)


def _short(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= _LETTERS else f"{shown[:_LETTERS]}..."
