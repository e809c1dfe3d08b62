"""The commands and their options. What goes wrong before a topology runs ends with a message and code 2."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from stormspark import __version__
from stormspark.cli.load import FrontEndOptions, load_topology
from stormspark.cli.run import ENGINES, Run, run_topology
from stormspark.cli.story import print_stories
from stormspark.config import merged, parse_assignment
from stormspark.errors import StormsparkError
from stormspark.plan import PhysicalPlan, advice, explain_mermaid, explain_text, plan_by_phases, plan_topology
from stormspark.plan.phases import PHASES
from stormspark.private_files import default_log_folder

__all__ = ["main"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


class _Refused(click.ClickException):
    """One of our own errors, told as click tells usage errors, and with their exit code."""

    exit_code = 2


def _refusing(command: Callable[_P, _R]) -> Callable[_P, _R]:
    @functools.wraps(command)
    def wrapped(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        try:
            return command(*args, **kwargs)
        except StormsparkError as error:
            raise _Refused("\n".join([str(error), *getattr(error, "__notes__", ())])) from error

    return wrapped


def _assignments(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, Any]:
    try:
        return dict(parse_assignment(text) for text in given)
    except StormsparkError as error:
        raise click.BadParameter(str(error)) from error


def _json_file(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """Find out now, not after an hour, that a file can't be written there."""
    if given not in (None, "-") and not Path(given).absolute().parent.is_dir():
        msg = f"there is no folder {Path(given).parent} to write it into"
        raise click.BadParameter(msg)
    return given


def _described_by(
    *options: Callable[[Callable[_P, _R]], Callable[_P, _R]],
) -> Callable[..., Callable[_P, _R]]:
    """Several options as one decorator, first one first in the help."""

    def decorate(command: Callable[_P, _R]) -> Callable[_P, _R]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_of_a_topology = _described_by(
    click.argument("target", metavar="FILE[:NAME]"),
    click.option(
        "--workers", type=click.IntRange(min=1), metavar="N", help="Storm workers (topology.workers)."
    ),
    click.option(
        "-c",
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_assignments,
        help="A setting, over the topology's own; the value is JSON if it can be. May be repeated.",
    ),
)


def _read_by_front_ends(command: Callable[..., _R]) -> Callable[..., _R]:
    """Options that only some kinds of files know, as one argument."""

    @click.option(
        "-e", "--environment", metavar="NAME", help="The environment of a streamparse project's config.json."
    )
    @click.option(
        "--filter",
        "filter_file",
        type=click.Path(dir_okay=False, exists=True, path_type=Path),
        help="A properties file for the ${...} of a Flux file.",
    )
    @click.option(
        "--env-filter", is_flag=True, help="${ENV-NAME} of a Flux file is environment variable NAME."
    )
    @click.option(
        "--arg",
        "arguments",
        multiple=True,
        metavar="TEXT",
        help="An argument of a heronpy script, behind its topology's name. May be repeated.",
    )
    @functools.wraps(command)
    def wrapped(
        environment: str | None,
        filter_file: Path | None,
        env_filter: bool,
        arguments: tuple[str, ...],
        **kwargs: Any,
    ) -> _R:
        return command(front_end=FrontEndOptions(environment, filter_file, env_filter, arguments), **kwargs)

    return wrapped


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stormspark", message="%(prog)s %(version)s")
def main() -> None:
    """Run Storm and Heron topologies, written in Python, on Spark Structured Streaming."""


@main.command()
@_of_a_topology
@_read_by_front_ends
@click.option(
    "--engine", type=click.Choice(list(ENGINES)), default="spark", show_default=True, help="Where to run it."
)
@click.option(
    "--seconds", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Stop after so long."
)
@click.option(
    "--until-idle",
    type=click.FloatRange(min=0, min_open=True),
    metavar="S",
    help="Stop once nothing was emitted and nothing is pending for S seconds.",
)
@click.option(
    "--checkpoint",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Where Spark keeps what a restart needs; run again with the same one to go on.",
)
@click.option(
    "--json", "json_to", metavar="OUT", callback=_json_file, help="Write the figures as JSON; - is stdout."
)
@click.option("--master", metavar="URL", help="The Spark master, local[2] for instance.")
@click.option(
    "--trigger",
    type=click.Choice(["continuous", "available-now"]),
    default="continuous",
    show_default=True,
    help="available-now: work off what the sources have at this moment, then end.",
)
@_refusing
def run(
    target: str,
    workers: int | None,
    conf: dict[str, Any],
    engine: str,
    seconds: float | None,
    until_idle: float | None,
    checkpoint: str | None,
    json_to: str | None,
    master: str | None,
    trigger: str,
    front_end: FrontEndOptions,
) -> None:
    """Run a topology.

    FILE is Python (stormspark, streamparse, heronpy) or Flux YAML. NAME is a variable of it that is a topology,
    or a function that gives one, by default build; for legacy projects, the class of the topology.

    Ctrl-C stops the topology at the end of its batch, and a second one at once. Exit code: 0 it ended well, 1
    it stopped with an error, 2 it could not be started.
    """
    if engine != "spark" and (checkpoint or master or trigger != "continuous"):
        msg = "--checkpoint, --master and --trigger are for --engine spark"
        raise click.UsageError(msg)
    plan = _planned(target, workers, conf, front_end)
    asked = Run(plan, engine, seconds, until_idle, json_to, checkpoint, master, trigger)
    click.get_current_context().exit(run_topology(asked))


@main.command()
@_of_a_topology
@_read_by_front_ends
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "mermaid", "both"]),
    default="both",
    show_default=True,
    help="How to print it.",
)
@click.option("--mermaid", "form", flag_value="mermaid", help="Short for --format mermaid.")
@click.option(
    "--phases",
    is_flag=True,
    help="Print the phases of planning instead, one by one, each with what it decided.",
)
@_refusing
def explain(
    target: str,
    workers: int | None,
    conf: dict[str, Any],
    form: str,
    phases: bool,
    front_end: FrontEndOptions,
) -> None:
    """Print the plan of a topology; run nothing.

    The plan is its tasks, the workers that they live in, what crosses between workers, and the supersteps of
    a batch. NAME is a variable of FILE that is a topology, or a function that gives one; by default it is
    build.
    """
    plan = _planned(target, workers, conf, front_end, phases=phases)
    if phases:
        return
    if form in ("text", "both"):
        click.echo(explain_text(plan).rstrip("\n"))
    if form == "both":
        click.echo()
    if form in ("mermaid", "both"):
        click.echo(explain_mermaid(plan).rstrip("\n"))


@main.command()
@click.argument("name")
@click.argument("root", required=False)
@click.option(
    "--log-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The topology's log folder (stormspark.log.dir), where it is not the default one.",
)
@click.option("-n", "most", type=click.IntRange(min=1), default=20, show_default=True, help="List so many.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a story a line.")
@_refusing
def story(name: str, root: str | None, log_dir: Path | None, most: int, as_json: bool) -> None:
    """Tell what became of tuples of the topology NAME.

    With ROOT, as logs and verdicts name it, or its beginning, or a message id: who emitted the message, where its
    tuples went, how long each step took, and who has not acked. Without: the latest stories, those of failures first.
    Reads the files that the workers on this host have written. Exit code: 0, 1 there is no such story, 2 there is no such folder.
    """
    if log_dir is None:
        log_dir = default_log_folder() / name
    click.get_current_context().exit(print_stories(log_dir, root, most, as_json=as_json))


@main.command()
@click.argument("topology", metavar="NAME")
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="Its checkpoint folder; by default that of the last topology NAME that this user started on this host.",
)
@click.option(
    "--most", type=click.IntRange(min=0), default=20, show_default=True, help="So many rows, the oldest."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_refusing
def pending(topology: str, checkpoint: str | None, most: int, as_json: bool) -> None:
    """Show which trees of the sources of topology NAME are open.

    These are rows that have outlived their batch: in a window, in a join, in a queue. They are read from the state of its acker
    query, so they are some seconds old, and can be read while the topology runs as well as after its end.
    """
    from stormspark.cli.pending import print_pending

    click.get_current_context().exit(print_pending(topology, checkpoint, most, as_json=as_json))


@main.command()
@click.argument("topology", metavar="NAME")
@click.argument("component")
@click.option(
    "--txid", type=click.IntRange(min=0), metavar="N", help="As of batch N; by default the last one."
)
@click.option(
    "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="So many keys; 0: all."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, a key a line.")
@_refusing
def state(topology: str, component: str, txid: int | None, limit: int, as_json: bool) -> None:
    """Show the state of COMPONENT, a bolt or a spout of topology NAME.

    NAME is that of the last such topology that this user started on this host, or a checkpoint folder. Keys and values that are
    no plain data are shown as their pickled bytes. The topology may run meanwhile, or have ended.
    """
    from stormspark.cli.state import print_state

    click.get_current_context().exit(print_state(topology, component, txid, limit, as_json=as_json))


@main.command()
@click.argument("topology", metavar="NAME")
@click.argument("target", metavar="[FILE[:NAME]]", required=False)
@click.option("--batch", type=click.IntRange(min=0), required=True, metavar="N", help="Which batch.")
@click.option("--task", required=True, metavar="BOLT[I]", help="Which task: count[2] is the third of count.")
@click.option("--pdb", "debug", is_flag=True, help="Stop in the debugger at the first execute.")
@click.option(
    "--limit", type=click.IntRange(min=0), default=50, show_default=True, help="Show so many inputs; 0: all."
)
@click.option(
    "-c",
    "--conf",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_assignments,
    help="With FILE: a setting, as it was for run.",
)
@_refusing
def replay(
    topology: str,
    target: str | None,
    batch: int,
    task: str,
    debug: bool,
    limit: int,
    conf: dict[str, Any],
) -> None:
    """Run one task's batch of topology NAME again, here, under a debugger if wanted.

    NAME is that of the last such topology that this user started on this host, or a checkpoint folder; it must have run with
    stormspark.record.inputs. The task begins with its state as of the batch before, executes what it was given, and is compared
    with what it did then. FILE is the topology as it is now, with a correction to be tried; without it, what ran runs again.

    Exit code: 0 it did what it did then, 1 it did something else, 2 that batch can't be replayed.
    """
    from stormspark.cli.replay import replay_task

    code = replay_task(topology, target, conf, batch, task, limit, debug=debug)
    click.get_current_context().exit(code)


@main.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the report, and a Python skeleton for each topology of Java, into this folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
@click.option(
    "--import",
    "importing",
    is_flag=True,
    help="Also load each topology and plan it: this runs the project's code.",
)
@_refusing
def port(path: Path, out: Path | None, as_json: bool, importing: bool) -> None:
    """Read a legacy project and say what runs here, what needs a change, and what could not be made out.

    PATH is a folder, or a file, of streamparse, heronpy, Flux or Java; a folder may hold several. Nothing of the project is run
    unless --import is given. Each statement says how it was checked.
    """
    from stormspark.cli.port import port_project

    port_project(path, out, as_json_text=as_json, importing=importing)


def _planned(
    target: str,
    workers: int | None,
    conf: Mapping[str, Any],
    front_end: FrontEndOptions,
    *,
    phases: bool = False,
) -> PhysicalPlan:
    """The topology's plan, with what the command line lays over its configuration. Prints what advice there is, and before that
    the ``phases`` of planning, if they are wanted.
    """
    overrides = merged(conf, {} if workers is None else {"topology.workers": workers})
    topology = load_topology(target, front_end)
    if phases:
        width = max(len(phase.name) for phase in PHASES)
        for phase, plan in plan_by_phases(topology, overrides):
            click.echo(f"{phase.name:<{width}}  {phase.decision(plan)}")
    else:
        plan = plan_topology(topology, overrides)
    for sentence in advice(plan):
        click.echo(f"Warning: {sentence}", err=True)
    return plan
