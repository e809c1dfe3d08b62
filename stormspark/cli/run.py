"""``stormspark run``: starts a topology on an engine, shows its progress, and prints what it did."""

from __future__ import annotations

import json
import logging
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, redirect_stdout, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console
from rich.text import Text

from stormspark.cli.child import BY_SIGNAL
from stormspark.cli.output import wide_enough
from stormspark.cores import cores_of_master
from stormspark.engine import RunningTopology
from stormspark.errors import ComponentError, UnsupportedEnvironmentError
from stormspark.metrics import Kind, Shortfall, TopologyStatistics, shortfalls
from stormspark.plan import PhysicalPlan
from stormspark.plan.workers import follows_cores
from stormspark.ui import (
    Ending,
    InterruptedStartError,
    Interrupts,
    LogLines,
    ProgressLine,
    TaskOutput,
    print_summary,
    watch,
)
from stormspark.ui.log_lines import TRACEBACK
from stormspark.ui.starting import Starting
from stormspark.ui.unread import if_read
from stormspark.user_line import CodePlace, is_ours
from stormspark.worker.host.task_threads import running_task
from stormspark.working_folder import working_in

__all__ = ["ENGINES", "Run", "cores_offered", "end_interrupted_start", "run_topology", "tell_exit"]

#: The exit codes. `_OK`: the topology ended well. `_FAILED`: it stopped with an error. `_NOT_STARTED`: it could not be started.
#: `_FELL_SHORT`: it ended without an error, but rows were given up, everything failed, or nothing was done. `_KILLED`: a second
#: Ctrl-C killed it (130, as in shells).
_OK, _FAILED, _NOT_STARTED, _FELL_SHORT, _KILLED = 0, 1, 2, 3, 130

#: Of a long error, only the first line and this many of the last lines are shown, because a traceback ends with the error.
_ERROR_LINES = 12
#: The first line of a frame in a traceback.
_FRAME = re.compile(r'  File "(?P<file>.+)", line \d+')


@dataclass(frozen=True)
class Run:
    """A topology to run, and the options of the command line.

    ``plan_with`` plans the topology again, for a given number of cores. The Spark engine needs ``plan_with`` if only the running
    cluster knows its number of cores.
    """

    plan: PhysicalPlan
    plan_with: Callable[[int], PhysicalPlan]
    engine: str = "spark"
    seconds: float | None = None
    until_idle: float | None = None
    #: The file for the JSON summary, ``-`` for standard output.
    json_to: str | None = None
    checkpoint: str | None = None
    master: str | None = None
    trigger: str = "continuous"
    #: Whether the spouts may emit from the start.
    active: bool = True
    #: Whether to show nothing of what tasks log and print.
    quiet: bool = False
    #: Whether Spark gets Delta even if nothing is known to need it.
    delta: bool = False
    #: The shortfalls that do not change the exit code.
    allow: frozenset[Kind] = frozenset()
    #: Shows what tasks log and print, if the engine runs them in this process; `run_topology` sets it.
    show: Callable[[str | None, logging.LogRecord], None] | None = None


def _on_spark(run: Run) -> RunningTopology:
    # The import is here and not above, because it takes about a second, and the local engine, `explain` and `--help` need no
    # Spark.
    from stormspark import spark

    plan, session = run.plan, None
    conf = spark.with_delta(plan.conf) if run.delta else plan.conf
    if plan.cores is None and follows_cores(plan):
        session = spark.session_for(plan, conf, run.checkpoint, run.master)
        plan = run.plan_with(spark.session_cores(session, plan.settings.executors_wait_secs))
    return spark.submit(
        plan,
        session,
        checkpoint=run.checkpoint,
        conf=conf,
        master=run.master,
        active=run.active,
        trigger=run.trigger,
    )


def _on_local(run: Run) -> RunningTopology:
    from stormspark import local

    return local.submit(run.plan, active=run.active, show=run.show, trigger=run.trigger)


#: The functions that start a topology, by the name of the engine.
ENGINES: dict[str, Callable[[Run], RunningTopology]] = {"spark": _on_spark, "local": _on_local}


def cores_offered(engine: str, master: str | None, conf: Mapping[str, Any]) -> int | None:
    """Return how many cores an engine offers to workers, for the topology's configuration; None if only a cluster knows."""
    if engine == "local":
        from stormspark.local import CORES

        return CORES
    return cores_of_master(master, conf)


def run_topology(run: Run, interrupts: Interrupts) -> int:
    """Run a topology to its end. Returns the exit code: 0 if it ended well, 1 if it failed, 3 if it has a shortfall. If a second
    Ctrl-C has killed it, end this process with the exit code 130. Raises `InterruptedStartError` if there is an interrupt before
    it runs. The ``interrupts`` are counted since the start of this program, and until the topology has ended.

    Progress goes to standard error. The summary goes to standard output, or to standard error if the JSON goes to standard
    output.
    """
    # These streams stay the same while a local topology has replaced `sys.stdout` and `sys.stderr`.
    stdout, stderr = map(if_read, (sys.stderr if run.json_to == "-" else sys.stdout, sys.stderr))
    notes, table = (Console(file=stream, highlight=False) for stream in (stderr, stdout))
    notes.print(Text(f"starting {run.plan.topology} on {run.engine}"), soft_wrap=True)
    working = run.plan.settings.working_dir if run.engine == "local" else None
    line = ProgressLine(notes, takes_prints=run.engine != "local")
    output = TaskOutput(line, stdout, stderr, quiet=run.quiet)
    step = "Spark starts" if run.engine == "spark" else "components open"
    with working_in(working), _only_json_on_stdout(run), LogLines(line.say):
        with line:
            try:
                with interrupts.while_starting(), Starting(run.plan.topology, line, step):
                    running = ENGINES[run.engine](replace(run, show=output.show))
            except ComponentError as error:
                # The local engine calls open and prepare before it returns the topology.
                notes.print(Text(_stopped(error, run.plan.topology)), style="red", soft_wrap=True)
                return _FAILED
            ending = watch(running, line, interrupts, seconds=run.seconds, until_idle=run.until_idle)
        interrupts.restore()
    statistics = running.statistics()
    # What is missing on the executors is found out after the start, but then nothing has run, and there are no figures.
    never_ran = isinstance(running.error, UnsupportedEnvironmentError) and not statistics.batches
    if not never_ran:
        print_summary(statistics, wide_enough(table))
    if running.log_folder is not None:
        notes.print(Text(f"logs: {running.log_folder}"), soft_wrap=True)
    if run.json_to is not None:
        _write_json(statistics, run.plan, run.json_to)
    missed = shortfalls(statistics)
    found = [] if running.error is not None else _told(missed, run, ending)
    for shortfall in missed:
        if shortfall.kind is Kind.DEAD_LETTERS and shortfall not in found:
            notes.print(Text(f"{shortfall.text}{_where(shortfall, statistics)}"), soft_wrap=True)
    if running.error is not None:
        notes.print(Text(_stopped(running.error, run.plan.topology)), style="red", soft_wrap=True)
    if ending is Ending.KILLED:
        leave_at_once(_KILLED)
    if running.error is not None:
        return _NOT_STARTED if never_ran else _FAILED
    for shortfall in found:
        notes.print(Text(f"{shortfall.text}{_where(shortfall, statistics)}"), style="red", soft_wrap=True)
    for reason in _nothing_done(missed, run, ending):
        notes.print(Text(reason), soft_wrap=True)
    if found:
        kinds = " ".join(f"--allow {kind.value}" for kind in dict.fromkeys(one.kind for one in found))
        notes.print(Text(f"exit code {_FELL_SHORT}; {kinds} makes it {_OK}"), soft_wrap=True)
    return _FELL_SHORT if found else _OK


def end_interrupted_start(error: InterruptedStartError) -> int:
    """End what an interrupted start has left, say so, and return the exit code: 130 after Ctrl-C, 143 after SIGTERM, 129 after
    SIGHUP.
    """
    if "stormspark.spark.jvm" in sys.modules:
        from stormspark.spark.jvm import end_jvms

        end_jvms()
    if_read(sys.stderr).write(f"interrupted by {error} before the topology ran\n")
    return BY_SIGNAL + error.number


def _told(found: Sequence[Shortfall], run: Run, ending: Ending) -> list[Shortfall]:
    """Return those shortfalls that decide the exit code."""
    allowed = set(run.allow)
    if run.trigger == "available-now" or ending is Ending.INTERRUPTED:
        # A source may have had no new rows, and somebody who interrupts a topology knows that it could not do much.
        allowed.add(Kind.NOTHING_DONE)
    return [one for one in found if one.kind not in allowed]


def _nothing_done(found: Sequence[Shortfall], run: Run, ending: Ending) -> list[str]:
    """Return why nothing was done, if that is no failure. Nobody knows that after an interrupt."""
    if Kind.NOTHING_DONE in run.allow or not (run.trigger == "available-now" or ending is Ending.INTERRUPTED):
        return []
    why = "it was interrupted" if ending is Ending.INTERRUPTED else "its source had no new rows"
    return [f"{one.text}: {why}" for one in found if one.kind is Kind.NOTHING_DONE]


def _where(shortfall: Shortfall, statistics: TopologyStatistics) -> str:
    if shortfall.kind is not Kind.DEAD_LETTERS:
        return ""
    place = statistics.dead_letters_in
    if place is None:
        return "; see the log of the task (stormspark.dead.letter.dir)"
    return f"; see {place} (stormspark dead-letters list {shlex.quote(place)})"


def tell_exit(code: int, place: CodePlace) -> None:
    """Say that user code has called ``os._exit`` in this process, before that ends it."""
    task = running_task()
    of = f" of {task}" if task else ""
    text = (
        f"{place.line}: {place.call}{of} calls os._exit({code}), which ends this program at once, without close, cleanup and "
        f"figures: return, or raise an exception if something is wrong\n"
    )
    with suppress(OSError):  # nobody may read it
        os.write(2, text.encode())


def leave_at_once(code: int) -> NoReturn:
    """End this process now. Python's own end would wait for threads of user code, and call their exit handlers."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            if_read(stream).flush()
    os._exit(code)


def _only_json_on_stdout(run: Run) -> AbstractContextManager[object]:
    """If the JSON goes to standard output, redirect everything that the local engine's tasks print to standard error."""
    return redirect_stdout(sys.stderr) if run.json_to == "-" else nullcontext()


def _write_json(statistics: TopologyStatistics, plan: PhysicalPlan, to: str) -> None:
    subscriptions = [
        {
            "source": edge.source,
            "stream": edge.stream,
            "target": edge.target,
            "grouping": edge.grouping.describe(),
        }
        for edge in plan.edges
    ]
    text = json.dumps({**statistics.as_json(), "subscriptions": subscriptions}, indent=2) + "\n"
    if to == "-":
        print(text, end="", file=if_read(sys.stdout), flush=True)
    else:
        Path(to).write_text(text, encoding="utf-8")


def _of_users(text: str) -> list[str]:
    """Return the lines of an error without the frames of this package, which are of no use to its users. The logs have them."""
    lines, is_left_out = [], False
    for line in text.splitlines():
        if frame := _FRAME.match(line):
            is_left_out = is_ours(frame["file"])
        elif not line.startswith("    "):
            is_left_out = False
        if not is_left_out:
            lines.append(line)
    return lines


def _stopped(error: BaseException, topology: str) -> str:
    """Return the message for a topology that stopped: the first line of the error, and the last lines of a long error."""
    first, *rest = _of_users(str(error).strip() or type(error).__name__)
    if not any(map(_FRAME.match, rest)):
        rest = [line for line in rest if line != TRACEBACK and not first.endswith(line)]
    cut = ["  ..."] if len(rest) > _ERROR_LINES else []
    return "\n".join([f"{topology} stopped: {type(error).__name__}: {first}", *cut, *rest[-_ERROR_LINES:]])
