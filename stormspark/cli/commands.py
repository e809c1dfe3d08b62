"""The commands and their options. An error before a topology runs ends the command with a message and exit code 2."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import click

from stormspark import __version__
from stormspark.cli.background import handed_over
from stormspark.cli.environment_archive import EnvironmentArchive, environment_archive
from stormspark.cli.load import FrontEndOptions, load_topology
from stormspark.cli.operating_commands import COMMANDS, SPELLINGS, last_lines, wait_option
from stormspark.cli.reach import Reach, reaches, reaches_all
from stormspark.cli.refusing import assignments as _assignments
from stormspark.cli.refusing import refusing as _refusing
from stormspark.cli.run import ENGINES, Run, cores_offered, end_interrupted_start, run_topology, tell_exit
from stormspark.cli.short_help import shorten
from stormspark.cli.spark_options import (
    SparkOptions,
    brings_jars,
    fetches_jars,
    ships_modules,
    starts_spark,
    submits,
)
from stormspark.cli.story import print_stories
from stormspark.config import merged
from stormspark.metrics import Kind
from stormspark.plan import PhysicalPlan, advice, explain_mermaid, explain_text, plan_by_phases, plan_topology
from stormspark.plan.needs import requested_cores
from stormspark.plan.phases import PHASES
from stormspark.private_files import default_log_folder
from stormspark.process_exits import telling_exits
from stormspark.ui import InterruptedStartError, Interrupts
from stormspark.user_code import search_here

__all__ = ["main"]

_P = ParamSpec("_P")
_R = TypeVar("_R")


def _json_file(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    """Check that the file can be written, before the topology runs and not only at its end."""
    if given is None or given == "-":
        return given
    path = Path(given).absolute()
    msg = None
    if not path.parent.is_dir():
        msg = f"there is no folder {Path(given).parent} for this file"
    elif path.is_dir():
        msg = f"{given or path} is a folder, give the name of a file"
    elif path.exists() and not os.access(path, os.W_OK):
        msg = f"the file {given} can't be written: permission denied"
    elif not path.exists() and not os.access(path.parent, os.W_OK | os.X_OK):
        msg = f"the folder {path.parent} takes no new file: permission denied"
    if msg is not None:
        raise click.BadParameter(msg)
    return given


def _described_by(
    *options: Callable[[Callable[_P, _R]], Callable[_P, _R]],
) -> Callable[..., Callable[_P, _R]]:
    """Make one decorator of several options; the help lists them in this order."""

    def decorate(command: Callable[_P, _R]) -> Callable[_P, _R]:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


_of_a_topology = _described_by(
    click.argument("target", metavar="FILE[:NAME]"),
    click.option(
        "--workers",
        type=click.IntRange(min=1),
        metavar="N",
        help="The number of Storm workers (topology.workers). The default is one per core, but one for a topology to which "
        "more would bring nothing.",
    ),
    click.option(
        "-c",
        "--conf",
        multiple=True,
        metavar="KEY=VALUE",
        callback=_assignments,
        help="A setting that overrides the topology's own, or a setting of Spark (spark.*). The value is read as JSON if "
        "possible, else as a string; that of spark.* stays a string. May be repeated.",
    ),
)
#: How a run ends, and where it goes on.
_ends = _described_by(
    click.option(
        "--seconds", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Stop after N seconds."
    ),
    click.option(
        "--until-idle",
        type=click.FloatRange(min=0, min_open=True),
        metavar="S",
        help="End the input when nothing was emitted, acked, failed or queued for S seconds: bolts flush what they hold, and the "
        "topology stops.",
    ),
    click.option(
        "--checkpoint",
        type=click.Path(file_okay=False),
        metavar="DIR",
        help="The folder with everything that a restart needs. Run again with the same folder to continue.",
    ),
    click.option(
        "--trigger",
        type=click.Choice(["continuous", "available-now"]),
        default="continuous",
        show_default=True,
        help="available-now: process the rows that the sources have at the start, then end.",
    ),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        help="Don't show what tasks log and print. Their log files have it. On Spark, only the files have it anyway.",
    ),
    click.option(
        "--allow",
        "allowed",
        type=click.Choice([kind.value for kind in Kind]),
        multiple=True,
        help="End with exit code 0 even if rows were given up (dead-letters), if all tuples of a component failed (all-failed), "
        "if tasks waited for their restart at the end (tasks-down), if the last end_of_input, post_save or cleanup of a bolt, or "
        "the close of a spout, raised or did not return (unwritten), or if no tuple was emitted (nothing-done). May be repeated.",
    ),
)
#: Where the driver runs, seen from the shell, and what happens when it dies.
_in_the_background = _described_by(
    click.option(
        "--detach",
        is_flag=True,
        help="Start the driver in the background, and return when the topology runs, or say why it did not start.",
    ),
    click.option(
        "--supervise",
        is_flag=True,
        help="Start the driver again when it dies, after growing waits, until the topology ends in order or is killed by a "
        "command. Give --checkpoint, too, or it begins from nothing each time.",
    ),
)
_settings_of_spark = click.option(
    "-c",
    "--conf",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_assignments,
    help="A setting of Spark (spark.*), for a checkpoint that Spark reads. May be repeated.",
)


def _read_by_front_ends(command: Callable[..., _R]) -> Callable[..., _R]:
    """Declare the options that only some kinds of files use, and pass them as one argument."""

    @click.option(
        "-e",
        "--environment",
        metavar="NAME",
        help="The environment to use from a streamparse project's config.json.",
    )
    @click.option(
        "-n",
        "--name",
        metavar="NAME",
        help="If FILE is the folder of a streamparse project: the topology, as for `sparse run --name`.",
    )
    @click.option(
        "--filter",
        "filter_file",
        type=click.Path(dir_okay=False, exists=True, path_type=Path),
        help="A properties file with the values for ${...} in a Flux file.",
    )
    @click.option(
        "--env-filter",
        is_flag=True,
        help="Replace ${ENV-NAME} in a Flux file by the environment variable NAME.",
    )
    @click.option(
        "--arg",
        "arguments",
        multiple=True,
        metavar="TEXT",
        help="An argument for a heronpy script, after the name of its topology. May be repeated.",
    )
    @functools.wraps(command)
    def wrapped(
        environment: str | None,
        name: str | None,
        filter_file: Path | None,
        env_filter: bool,
        arguments: tuple[str, ...],
        **kwargs: Any,
    ) -> _R:
        return command(
            front_end=FrontEndOptions(environment, filter_file, env_filter, arguments, name), **kwargs
        )

    return wrapped


#: Commands that users look for to see figures. Without a word on them, click would suggest ``state`` for ``status``.
_FOR_FIGURES = frozenset({"statistics", "status", "top", "metrics"})


_NO_DAEMONS = "there are no daemons here, because a topology runs in the process of `stormspark run`"
#: What people who know ``storm`` and ``sparse`` type, and what they can do here.
_ELSEWHERE = {
    **dict.fromkeys(
        ("jar", "local", "shell"),
        "`stormspark run FILE` runs a topology in Python or Flux here, `stormspark submit FILE` on a cluster, and "
        "`stormspark port FOLDER` says what one in Java needs",
    ),
    "stop": "`stormspark kill NAME` ends a topology, after its message timeout or the seconds of -w",
    **dict.fromkeys(
        ("logviewer", "remove_logs"),
        "`stormspark logs NAME` prints the folder of a topology's logs, and `stormspark tail NAME` follows them",
    ),
    **dict.fromkeys(("nimbus", "supervisor", "pacemaker", "ui", "drpc", "dev-zookeeper"), _NO_DAEMONS),
    **dict.fromkeys(
        ("visualize", "plan"), "`stormspark explain FILE` prints the plan, and with --mermaid a graph"
    ),
}


class _Commands(click.Group):
    """The commands, and a message for some that do not exist."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] in SPELLINGS:
            args = [SPELLINGS[args[0]], *args[1:]]
        if args and args[0] in _FOR_FIGURES:
            ctx.fail(
                f"No such command {args[0]!r}. `stormspark stats NAME` shows the figures of a topology that runs. "
                f"`stormspark run` shows them, too, and with --json OUT it writes them to a file at its end."
            )
        if args and args[0] in _ELSEWHERE and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}: {_ELSEWHERE[args[0]]}.")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="stormspark", message="%(prog)s %(version)s")
def main() -> None:
    """Run Storm and Heron topologies, written in Python, on Spark Structured Streaming."""
    search_here()


@main.command()
@click.argument("name", metavar="NAME")
def quickstart(name: str) -> None:
    """Make the project NAME in a new folder: a topology, its tests, a job for spark-submit, a notebook, and a README.

    NAME has letters, digits, - and _. It becomes the name of the folder and of the topology. A folder that is there already must
    be empty.
    """
    from stormspark.cli.quickstart import make_project, print_next_steps

    print_next_steps(name, make_project(name, Path.cwd()))


@main.command()
@_of_a_topology
@_read_by_front_ends
@click.option(
    "--engine",
    type=click.Choice(list(ENGINES)),
    default="spark",
    show_default=True,
    help="The engine to run it on.",
)
@_ends
@click.option(
    "--json",
    "json_to",
    metavar="OUT",
    callback=_json_file,
    help="Write the figures as JSON into this file; - means standard output.",
)
@click.option(
    "--inactive",
    is_flag=True,
    help="Open no spout until `stormspark activate` lets them emit (storm's initial status).",
)
@_in_the_background
@click.option("--master", metavar="URL", help="The Spark master, for example local[2].")
@starts_spark
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
    inactive: bool,
    detach: bool,
    supervise: bool,
    master: str | None,
    trigger: str,
    quiet: bool,
    allowed: tuple[str, ...],
    front_end: FrontEndOptions,
    options_of_spark: SparkOptions,
) -> None:
    """Run a topology.

    FILE is a Python file for stormspark, streamparse, heronpy or Petrel, a Flux file in YAML, or a Clojure file or the
    folder of a streamparse project. NAME is a variable of the file that holds a topology, or a function that returns
    one; the default is build. For streamparse, NAME is the class of the topology, or its definition in Clojure. For
    heronpy, NAME is the class or the name of the topology.

    Ctrl-C stops the topology at the end of its batch, with close and cleanup. A second Ctrl-C ends it at once, and names the
    calls that this cuts off. SIGTERM, as sent by kill, docker stop or Kubernetes, does the same as Ctrl-C. So does
    SIGHUP, from a terminal that closes, unless nohup has started this program. Before the topology runs, the first one ends the
    start.

    Exit code: 0 the topology ended well, 1 it stopped with an error, 2 it could not be started, 3 it ended, but gave up rows,
    or all tuples of a component failed, or something may be unwritten, or nothing was done (see --allow), 130 it was ended by
    the second Ctrl-C or SIGTERM, or by Ctrl-C before it ran, 143 (129) it was ended by SIGTERM (SIGHUP) before it ran.
    """
    if engine != "spark" and (checkpoint or master or options_of_spark.need_spark):
        msg = "--checkpoint, --master and what brings jars or settings of Spark need --engine spark"
        raise click.UsageError(msg)
    code = handed_over(detach=detach, supervise=supervise)
    if code is not None:
        click.get_current_context().exit(code)
    with Interrupts() as interrupts, telling_exits(tell_exit):
        try:
            with interrupts.while_starting():
                planned = _Planning(target, workers, conf, front_end)
                plan = _warned(planned.with_cores(cores_offered(engine, master, planned.conf)))
                wanted = Run(
                    plan,
                    planned.with_cores,
                    engine,
                    seconds=seconds,
                    until_idle=until_idle,
                    json_to=json_to,
                    checkpoint=checkpoint,
                    master=master,
                    trigger=trigger,
                    active=not inactive,
                    quiet=quiet,
                    allow=frozenset(map(Kind, allowed)),
                    delta=options_of_spark.delta,
                )
            code = run_topology(wanted, interrupts)
        except InterruptedStartError as error:
            code = end_interrupted_start(error)
    click.get_current_context().exit(code)


@main.command()
@_of_a_topology
@_read_by_front_ends
@_ends
@click.option(
    "--master",
    metavar="URL",
    required=True,
    help="The cluster: yarn, k8s://... or spark://HOST:PORT; or local[N].",
)
@click.option(
    "--deploy-mode",
    type=click.Choice(["client", "cluster"]),
    default="client",
    show_default=True,
    help="Where the driver runs: here, or on the cluster.",
)
@click.option(
    "--project",
    type=click.Path(file_okay=False, exists=True, path_type=Path),
    metavar="DIR",
    help="The folder to ship. The default is the working directory, or the folder of a streamparse project.",
)
@click.option(
    "--environment-archive",
    metavar="FILE[#NAME]",
    callback=environment_archive,
    help="An archive with the Python environment for driver and executors, made by venv-pack or conda-pack: a file or a URL that "
    "Spark can read. NAME is the folder in which executors have it; the default is environment.",
)
@_in_the_background
@click.option("--dry-run", is_flag=True, help="Only print the command. The archives that it names stay.")
@click.option(
    "--staging",
    type=click.Path(file_okay=False),
    metavar="DIR",
    help="Put the archives here, and leave them there.",
)
@submits
@_refusing
def submit(
    target: str,
    workers: int | None,
    conf: dict[str, Any],
    seconds: float | None,
    until_idle: float | None,
    checkpoint: str | None,
    master: str,
    deploy_mode: str,
    project: Path | None,
    environment_archive: EnvironmentArchive | None,
    detach: bool,
    supervise: bool,
    dry_run: bool,
    staging: str | None,
    trigger: str,
    quiet: bool,
    allowed: tuple[str, ...],
    front_end: FrontEndOptions,
    options_of_spark: SparkOptions,
) -> None:
    """Run a topology on a cluster: pack its project, print a command for spark-submit, and run that.

    FILE is as for `stormspark run`. The topology is planned here first, so most mistakes are found before anything is sent. The
    project is the working directory, with all files that do not begin with a dot, but without Python environments. The cluster's
    Python needs stormspark and what your components import: install it there, or send it (--environment-archive).

    With --deploy-mode cluster, --checkpoint has to be a URL. A standalone cluster of Spark (spark://...) starts no driver in
    Python: use --deploy-mode client there. What is printed hides the values of secret settings, but --dry-run prints them.

    With --deploy-mode client, Ctrl-C, SIGTERM and SIGHUP do the same as for `stormspark run`: the driver ends its batch, and this
    command waits for that. With --deploy-mode cluster, they end spark-submit alone, and the topology goes on.

    Exit code: that of spark-submit. With --deploy-mode client, that is the one of `stormspark run`. If a signal has ended
    spark-submit, it is 128 more than the signal's number.
    """
    from stormspark import spark
    from stormspark.cli.project_files import project_of
    from stormspark.cli.submit import Submission, arguments_of_run, with_room
    from stormspark.cli.submit import submit as submit_project

    in_cluster = deploy_mode == "cluster"
    if in_cluster and (detach or supervise):
        msg = (
            "--detach and --supervise are for a driver on this host, but --deploy-mode cluster starts it on the cluster: give "
            "-c spark.yarn.submit.waitAppCompletion=false (on Kubernetes: spark.kubernetes.submission.waitAppCompletion=false) "
            "to return at once, and let the cluster start it again (spark.yarn.maxAppAttempts)"
        )
        raise click.UsageError(msg)
    code = None if dry_run else handed_over(detach=detach, supervise=supervise)
    if code is not None:
        click.get_current_context().exit(code)
    spark.require_java()
    spark.require_spark_home()
    folder = (project or project_of(target, front_end)).resolve()
    planned = _Planning(target, workers, conf, front_end)
    defaults = spark.spark_defaults()
    # On a cluster that limits memory, the driver will have as many workers as the requested executors have cores.
    plan = _warned(planned.with_cores(requested_cores({**defaults, **planned.conf}, master)))
    everything: Mapping[str, Any] = spark.with_delta(planned.conf) if options_of_spark.delta else planned.conf
    everything = spark.conf_of_session(plan, everything, checkpoint)
    options = {
        "--workers": workers,
        "--environment": front_end.environment,
        "--name": front_end.name,
        "--filter": _in_project(front_end.filter_file, folder, in_cluster=in_cluster),
        "--env-filter": front_end.env_filter,
        "--arg": front_end.arguments,
        "--seconds": seconds,
        "--until-idle": until_idle,
        "--checkpoint": checkpoint,
        "--trigger": trigger,
        "--quiet": quiet,
        "--allow": allowed,
    }
    wanted = Submission(
        master,
        in_cluster,
        folder,
        arguments_of_run(
            _in_project(target, folder, in_cluster=in_cluster) or target,
            options,
            {key: value for key, value in conf.items() if not key.startswith("spark.")},
        ),
        with_room(
            plan,
            master,
            {k: str(value) for k, value in everything.items() if k.startswith("spark.")},
            defaults,
            in_cluster=in_cluster,
        ),
        defaults,
        checkpoint,
        environment_archive,
        plan.topology,
    )
    spark.require_master(master, must_answer=not dry_run)
    click.get_current_context().exit(submit_project(wanted, staging, dry_run=dry_run))


def _in_project(path: str | Path | None, project: Path, *, in_cluster: bool) -> str | None:
    """Return a path as the driver finds it. On the cluster, the driver runs in the project that was shipped."""
    if path is None or not in_cluster:
        return None if path is None else str(path)
    found = Path(path).resolve()
    if not found.is_relative_to(project):
        msg = f"{path} is not in the project {project}, and only that is sent to the cluster: name a folder with both (--project)"
        raise click.UsageError(msg)
    return str(found.relative_to(project))


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
@click.option(
    "--cores",
    type=click.IntRange(min=1),
    metavar="N",
    help="Plan for a cluster whose Spark executors have N cores together. The default is the cores of this host, "
    "which a local session uses.",
)
@ships_modules
@_refusing
def explain(
    target: str,
    workers: int | None,
    conf: dict[str, Any],
    form: str,
    phases: bool,
    cores: int | None,
    front_end: FrontEndOptions,
) -> None:
    """Print the plan of a topology; run nothing.

    The plan has the tasks, the workers that host them, why there are so many workers, the subscriptions that cross
    workers, and the supersteps of a batch. NAME is a variable of FILE that holds a topology, or a function that returns
    one; the default is build.
    """
    planned = _Planning(target, workers, conf, front_end)
    cores = cores or cores_offered("spark", None, planned.conf)
    if phases:
        _warned(planned.print_phases(cores))
        return
    plan = _warned(planned.with_cores(cores))
    if form in ("text", "both"):
        click.echo(explain_text(plan).rstrip("\n"))
    if form == "both":
        click.echo()
    if form in ("mermaid", "both"):
        click.echo(explain_mermaid(plan).rstrip("\n"))


def _last(things: str, least: int, none: str = "") -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return the options of a command that lists the last ``things``: how many, and whether as JSON."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        most = click.option(
            "-n",
            "most",
            type=click.IntRange(min=least),
            default=20,
            metavar="N",
            show_default=True,
            help=f"List at most this many {things}{none}.",
        )
        one = {"stories": "story"}.get(things, things.removesuffix("s"))
        as_json = click.option("--json", "as_json", is_flag=True, help=f"Print JSON, one {one} per line.")
        return most(as_json(command))

    return decorate


@main.command()
@click.argument("name")
@click.argument("root", required=False)
@click.option(
    "--log-dir",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="The log folder of the topology (stormspark.log.dir), if it is not the default one.",
)
@_last("stories", 1)
@_refusing
def story(name: str, root: str | None, log_dir: Path | None, most: int, as_json: bool) -> None:
    """Show what happened to tuples of the topology NAME.

    ROOT is the root of a tuple tree as logs and verdicts name it, the beginning of one, or a message id. With ROOT, the command
    shows who emitted the message, where its tuples went, how long each step took, and who has not acked. Without ROOT, it
    lists the latest stories, failures first.

    The command reads the files that the workers on this host have written.

    Exit code: 0 a story was found, 1 there is no such story, 2 there is no such folder.
    """
    if log_dir is None:
        log_dir = default_log_folder() / name
    click.get_current_context().exit(print_stories(log_dir, root, most, as_json=as_json))


@main.command()
@click.argument("topology", metavar="NAME")
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="The checkpoint folder; by default that of the last topology NAME that this user started on this host.",
)
@click.option(
    "--most",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="List at most this many trees, the oldest first.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_settings_of_spark
@brings_jars
@_refusing
def pending(
    topology: str,
    checkpoint: str | None,
    most: int,
    as_json: bool,
    conf: dict[str, Any],
) -> None:
    """Show the open tuple trees of the sources of the topology NAME. NAME may also be its checkpoint folder.

    These trees have outlived their batch: their tuples are in a window, in a join or in a queue. The command reads them from the
    state of the topology's acker query, so its output is some seconds old. The topology may still run, or have ended.
    """
    from stormspark.cli.pending import print_pending

    click.get_current_context().exit(print_pending(topology, checkpoint, most, conf, as_json=as_json))


@main.command()
@click.argument("topology", metavar="NAME")
@click.argument("component")
@click.option(
    "--txid",
    type=click.IntRange(min=0),
    metavar="N",
    help="Show the state as of batch N; by default as of the last batch.",
)
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    metavar="N",
    help="Show at most this many keys; 0 means all.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one key per line.")
@_refusing
def state(topology: str, component: str, txid: int | None, limit: int, as_json: bool) -> None:
    """Show the state of COMPONENT, a bolt or spout of the topology NAME.

    NAME is a checkpoint folder, or the name of a topology: the last one of that name that this user started on this host.
    Keys and values that are not plain data are shown as pickled bytes. The topology may still run, or have ended.
    """
    from stormspark.cli.state import print_state

    click.get_current_context().exit(print_state(topology, component, txid, limit, as_json=as_json))


@main.command()
@click.argument("topology", metavar="NAME")
@click.argument("target", metavar="[FILE[:NAME]]", required=False)
@click.option(
    "--batch", type=click.IntRange(min=0), required=True, metavar="N", help="The batch to run again."
)
@click.option(
    "--task", required=True, metavar="BOLT[I]", help="The task: count[2] is the third task of count."
)
@click.option("--pdb", "debug", is_flag=True, help="Stop in the debugger at the first call of execute.")
@click.option(
    "--limit",
    type=click.IntRange(min=0),
    default=50,
    show_default=True,
    metavar="N",
    help="Show at most this many inputs; 0 means all.",
)
@click.option(
    "-c",
    "--conf",
    multiple=True,
    metavar="KEY=VALUE",
    callback=_assignments,
    help="With FILE, a setting that was given to run. May be repeated.",
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
    """Run one task's batch of the topology NAME again, in this process, also under a debugger.

    NAME is a checkpoint folder, or the name of a topology: the last one of that name that this user started on this host.
    The topology must have run with stormspark.record.inputs.

    The task begins with its state as of the batch before, and executes the recorded inputs. Then the command compares the
    task's emits and the changes of its state with those of the recorded batch. FILE is the topology as it is now, for
    example with a correction. Without FILE, the recorded topology runs.

    Exit code: 0 the task did the same as in the recorded batch, 1 it did something else, 2 the batch can't be replayed.
    """
    from stormspark.cli.replay import replay_task

    code = replay_task(topology, target, conf, batch, task, limit, debug=debug)
    click.get_current_context().exit(code)


@main.group("dead-letters")
def dead_letters() -> None:
    """List the rows of sources that were given up, and let them come again."""


_letters_of = click.argument("where", metavar="CHECKPOINT")
_of_components = click.option(
    "--component",
    "components",
    multiple=True,
    metavar="SPOUT",
    help="Only the letters of this spout. May be repeated.",
)


@dead_letters.command("list")
@_letters_of
@_of_components
@_last("letters", 0, ", the last ones; 0 means all")
@_settings_of_spark
@brings_jars
@_refusing
def list_dead_letters(
    where: str,
    components: tuple[str, ...],
    most: int,
    as_json: bool,
    conf: dict[str, Any],
) -> None:
    """List dead letters, the oldest first.

    CHECKPOINT is a checkpoint folder, or the name of a topology: the last one of that name that this user started on this host.
    It may also be a folder or a file with lines of JSON (stormspark.dead.letter.dir, the local engine). The topology may still
    run, or have ended.
    """
    from stormspark.cli.dead_letters import list_letters

    click.get_current_context().exit(list_letters(where, most, components, conf, as_json=as_json))


@dead_letters.command("replay")
@_letters_of
@_of_components
@click.option(
    "--id", "ids", multiple=True, metavar="ID", help="Only the letter with this id. May be repeated."
)
@_settings_of_spark
@brings_jars
@_refusing
def replay_dead_letters(
    where: str,
    components: tuple[str, ...],
    ids: tuple[str, ...],
    conf: dict[str, Any],
) -> None:
    """Let the rows of dead letters come again when the topology starts the next time.

    CHECKPOINT is a checkpoint folder, or the name of a topology: the last one of that name that this user started on this host.
    Without --component and --id, all letters are replayed that were not replayed before. Repair the topology first: a row that
    is given up again becomes another letter.
    """
    from stormspark.cli.dead_letters import replay_letters

    click.get_current_context().exit(replay_letters(where, components, ids, conf))


@main.command()
@fetches_jars
@click.option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Copy the jars into this folder, for a host that has no network.",
)
@_refusing
def jars(to: Path | None, options_of_spark: SparkOptions) -> None:
    """Fetch jars for Spark, with all that they depend on, and print their paths.

    Spark keeps them in this user's cache. So later, `stormspark run --delta` and --packages need no network on this host.
    """
    from stormspark.cli.jars import fetch_jars

    click.get_current_context().exit(fetch_jars(options_of_spark, to))


@main.command()
@click.option(
    "--engine",
    type=click.Choice(sorted(ENGINES)),
    help="Check for this engine. By default for Spark if it is installed, and otherwise for the local engine.",
)
@click.option(
    "--master",
    metavar="URL",
    help="Also start Spark with this master, and look at its executors: Python, packages, clocks, folders.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    help="Also look whether this folder can be written to, and with --master, whether executors see it.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_settings_of_spark
@_refusing
def doctor(
    engine: str | None, master: str | None, checkpoint: str | None, as_json: bool, conf: dict[str, Any]
) -> None:
    """Look for what would keep topologies from running here, and say what to do.

    It checks Python and its packages, Java, Spark and its jars, folders, disk space, file descriptors and ports. It installs
    nothing, and starts Spark only with --master.

    Exit code: 0 nothing is in the way, 1 a check has failed.
    """
    from stormspark.cli.doctor import examine

    if engine == "local" and master is not None:
        msg = "--master needs --engine spark"
        raise click.UsageError(msg)
    click.get_current_context().exit(examine(engine, master, checkpoint, conf, as_json=as_json))


@main.command()
@click.argument("words", nargs=-1, metavar="[WORD]...")
@click.option(
    "--list", "all_of_them", is_flag=True, help="List all settings. Without a WORD, this is the default."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON instead of tables.")
def config(words: tuple[str, ...], all_of_them: bool, as_json: bool) -> None:
    """Print the settings of a topology: their keys, defaults and meanings, those of Storm and Heron included.

    With WORDs, only settings in whose key or meaning all of them occur.

    Exit code: 0, or 1 if there is no such setting.
    """
    from stormspark.cli.config import print_settings

    click.get_current_context().exit(print_settings(() if all_of_them else words, as_json=as_json))


@main.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write the report, a skeleton for each topology in Java or Clojure, and drafts in Python 3, into this folder.",
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
    """Report which parts of a legacy project run here, which need a change, and which could not be made out.

    PATH is a file or a folder with topologies for streamparse (also in Clojure), heronpy, Petrel, Flux or Java, also of several
    kinds. The command reads the project and runs none of it, unless --import is given. Each statement of the report says how it
    was checked.
    """
    from stormspark.cli.port import port_project

    port_project(path, out, as_json_text=as_json, importing=importing)


_topology_by_name = click.argument("name", metavar="NAME")
_prints_json = click.option("--json", "as_json", is_flag=True, help="Print the answer of the REST API.")


@main.command("list")
@reaches_all
@_prints_json
@_refusing
def list_topologies(reach: Reach, as_json: bool) -> None:
    """List the topologies that this user runs on this host: state, tasks, workers, uptime, id.

    A topology whose driver was killed with SIGKILL is listed as DEAD for a week, or until one of the same name starts, or until
    `stormspark kill` takes it off the list.
    """
    from stormspark.cli.operate import print_list

    click.get_current_context().exit(print_list(reach, as_json=as_json))


@main.command()
@reaches
@wait_option
@_prints_json
@_refusing
def kill(reach: Reach, wait: float | None, as_json: bool) -> None:
    """Kill the topology NAME, or the one with that id: its spouts stop emitting now, and it ends after a wait.

    It ends at the end of a batch, with ``close`` and ``cleanup``. The command does not wait for that. A second one sets the wait
    anew.
    """
    from stormspark.cli.operate import ask

    action = "kill/default" if wait is None else f"kill/{wait:g}"
    after = "its message timeout" if wait is None else f"{wait:g} s"
    click.get_current_context().exit(
        ask(reach, action, f"{{}} is killed, and ends after {after}", as_json=as_json)
    )


@main.command()
@reaches
@_prints_json
@_refusing
def activate(reach: Reach, as_json: bool) -> None:
    """Let the spouts of the topology NAME, or of the one with that id, emit again."""
    from stormspark.cli.operate import ask

    click.get_current_context().exit(ask(reach, "activate", "{} is active", as_json=as_json))


@main.command()
@reaches
@_prints_json
@_refusing
def deactivate(reach: Reach, as_json: bool) -> None:
    """Stop the spouts of the topology NAME, or of the one with that id, from emitting. What is under way goes on."""
    from stormspark.cli.operate import ask

    click.get_current_context().exit(ask(reach, "deactivate", "{} is inactive", as_json=as_json))


@main.command()
@_topology_by_name
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@_refusing
def logs(name: str, as_json: bool) -> None:
    """Print the folder with the logs of the topology NAME on this host, and its files. The topology may have ended."""
    from stormspark.cli.logs import print_logs

    click.get_current_context().exit(print_logs(name, as_json=as_json))


@main.command()
@click.argument("files", metavar="[FILE]...", nargs=-1)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="PORT",
    help="The port of 127.0.0.1. The default is any free one.",
)
@click.option(
    "--open/--no-open",
    "opens",
    default=None,
    help="Open it in a browser. The default: if there is a desktop.",
)
@_refusing
def ui(files: tuple[str, ...], port: int, opens: bool | None) -> None:
    """Show the topologies that this user runs on this host on a web page, until Ctrl-C.

    Each FILE is about a topology that has ended: what ``run --json FILE`` has written, or what the page has saved.

    The page is for this user alone: the link that this command prints has a token that is good for one time.
    """
    from stormspark.cli.page import serve_page

    click.get_current_context().exit(serve_page(port, files, opens=opens))


@main.command()
@_topology_by_name
@click.argument("task", metavar="[COMPONENT|COMPONENT[TASK]]", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with what is written, until Ctrl-C.")
@last_lines("How many lines of each file.")
@_refusing
def tail(name: str, task: str | None, follow: bool, lines: int) -> None:
    """Show the last lines of logs of the topology NAME on this host: of a component, of one of its tasks (count[0]), or all."""
    from stormspark.cli.logs import tail as show_tail

    show_tail(name, task, lines, follow=follow)


for _command in COMMANDS:
    main.add_command(_command)
shorten(main.commands)


class _Planning:
    """A topology that is loaded and can be planned, with the settings of the command line."""

    def __init__(
        self, target: str, workers: int | None, conf: Mapping[str, Any], front_end: FrontEndOptions
    ) -> None:
        self._overrides = merged(conf, {} if workers is None else {"topology.workers": workers})
        self._topology = load_topology(target, front_end._replace(conf=conf))
        #: The topology's own configuration, with the settings of the command line.
        self.conf = merged(self._topology.conf, self._overrides)

    def with_cores(self, cores: int | None) -> PhysicalPlan:
        """Return the topology's plan for an engine that offers ``cores`` cores. None means that their number is not known."""
        return plan_topology(self._topology, self._overrides, cores=cores)

    def print_phases(self, cores: int | None) -> PhysicalPlan:
        """Print the phases of planning, one by one, and return the plan."""
        width = max(len(phase.name) for phase in PHASES)
        for phase, plan in plan_by_phases(self._topology, self._overrides, cores=cores):
            click.echo(f"{phase.name:<{width}}  {phase.decision(plan)}")
        return plan


def _warned(plan: PhysicalPlan) -> PhysicalPlan:
    """Print the advice for a plan as warnings; return the plan."""
    for sentence in advice(plan):
        click.echo(f"Warning: {sentence}", err=True)
    return plan
