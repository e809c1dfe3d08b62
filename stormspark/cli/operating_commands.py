"""The commands for topologies that run, apart from those that Storm's users type most: errors, monitor, restart, rebalance."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from stormspark.cli.reach import Reach, complete_names, reaches
from stormspark.cli.refusing import refusing

__all__ = ["COMMANDS", "SPELLINGS", "last_lines", "wait_option"]

_F = TypeVar("_F", bound=Callable[..., Any])

_prints_json = click.option("--json", "as_json", is_flag=True, help="Print the answer of the REST API.")
#: The wait of ``kill`` and ``rebalance``. The second spelling is that of Storm's documents.
wait_option = click.option(
    "-w",
    "--wait",
    "--wait-time-secs",
    "wait",
    type=click.FloatRange(min=0),
    metavar="SECS",
    help="How long the tuples that are under way may still take. The default is the topology's message timeout.",
)


def last_lines(help_text: str) -> Callable[[_F], _F]:
    """Return the option that says how many of the last lines are shown, ten by default."""
    return click.option(
        "-n",
        "--lines",
        type=click.IntRange(min=0),
        default=10,
        show_default=True,
        metavar="N",
        help=help_text,
    )


@click.command()
@reaches
@click.argument("component", required=False)
@click.option("--full", "in_full", is_flag=True, help="Print whole tracebacks.")
@_prints_json
@refusing
def errors(reach: Reach, component: str | None, in_full: bool, as_json: bool) -> None:
    """Print the last errors of the topology NAME, or of its COMPONENT, the newest last: time, task, and the line of your code.

    The driver keeps the last ten of each component.
    """
    from stormspark.cli.errors import print_errors

    _exit(print_errors(reach, component, in_full=in_full, as_json=as_json))


@click.command()
@reaches
@click.argument("component", required=False)
@click.option(
    "--window",
    type=click.Choice(["600", "10800", "86400", ":all-time"]),
    default=":all-time",
    show_default=True,
    help="The last seconds that count.",
)
@_prints_json
@refusing
def stats(reach: Reach, component: str | None, window: str, as_json: bool) -> None:
    """Print the figures of the topology NAME, or of its COMPONENT: emitted, acked, failed, latencies, capacity, last errors."""
    from stormspark.cli.stats import print_stats

    _exit(print_stats(reach, component, window, as_json=as_json))


@click.command("worker-uptime")
@reaches
@_prints_json
@refusing
def worker_uptime(reach: Reach, as_json: bool) -> None:
    """Print the hosts of the workers of the topology NAME, and how long each worker has run."""
    from stormspark.cli.stats import print_workers

    _exit(print_workers(reach, as_json=as_json))


@click.command("slot-usage")
@reaches
@_prints_json
@refusing
def slot_usage(reach: Reach, as_json: bool) -> None:
    """Print how many workers and executors of the topology NAME are on each host."""
    from stormspark.cli.stats import print_slots

    _exit(print_slots(reach, as_json=as_json))


@click.command()
@reaches
@click.option(
    "-i",
    "--interval",
    type=click.FloatRange(min=0.1, max=86_400),
    default=4,
    show_default=True,
    metavar="SECS",
    help="How often a line is printed.",
)
@click.option(
    "-m",
    "--component",
    metavar="COMPONENT",
    help="The component. Without it, the command prints the names of all components, and ends.",
)
@click.option(
    "-s",
    "--stream",
    metavar="STREAM",
    default="default",
    show_default=True,
    help="The stream of that component.",
)
@click.option(
    "-w",
    "--watch",
    type=click.Choice(["emitted", "transferred"]),
    default="emitted",
    show_default=True,
    help="What is counted.",
)
@click.option(
    "--times", type=click.IntRange(min=1), metavar="N", help="End after N lines, in place of at Ctrl-C."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one line per object.")
@refusing
def monitor(
    reach: Reach,
    interval: float,
    component: str | None,
    stream: str,
    watch: str,
    times: int | None,
    as_json: bool,
) -> None:
    """Print what a component of the topology NAME emits, every few seconds, as ``storm monitor`` does.

    The first line has all that was emitted before.
    """
    from stormspark.cli.monitor import monitor as print_figures

    _exit(print_figures(reach, interval, component, stream, watch, times, as_json=as_json))


@click.command()
@reaches
@click.argument("worker", type=click.IntRange(min=0), required=False)
@_prints_json
@refusing
def restart(reach: Reach, worker: int | None, as_json: bool) -> None:
    """Let the workers of the topology NAME start anew, in new processes: all, or WORKER alone, which is a number from 0.

    Their memory is gone, as after a crash: tuple trees that are under way fail, and reliable spouts emit them again. A topology
    with state goes on with that of its last batch. ``stormspark list`` and ``explain`` say which workers there are.
    """
    from stormspark.cli.operate import ask

    action = "restart" if worker is None else f"restart/{worker}"
    which = "all workers" if worker is None else f"worker {worker}"
    _exit(
        ask(
            reach,
            action,
            f"{which} of {{}} start anew" if worker is None else f"{which} of {{}} starts anew",
            as_json=as_json,
        )
    )


def _executors(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    found: dict[str, int] = {}
    for text in given:
        component, _, number = text.rpartition("=")
        if not component or not number.strip().isdecimal():
            msg = f"expected COMPONENT=N with a whole number, such as count=8, got {text!r}"
            raise click.BadParameter(msg)
        if component in found:
            msg = f"{component!r} has two numbers of executors, {found[component]} and {number}: give one"
            raise click.BadParameter(msg)
        found[component] = int(number)
    return found


@click.command()
@reaches
@wait_option
@click.option(
    "-n",
    "--num-workers",
    "workers",
    type=click.IntRange(min=1),
    metavar="WORKERS",
    help="How many workers there are afterwards. The default is as many as before.",
)
@click.option(
    "-e",
    "--executor",
    "executors",
    multiple=True,
    metavar="COMPONENT=N",
    callback=_executors,
    help="How many executors a component has afterwards. May be repeated.",
)
@_prints_json
@refusing
def rebalance(
    reach: Reach, wait: float | None, workers: int | None, executors: dict[str, int], as_json: bool
) -> None:
    """Lay the topology NAME out anew while it runs: its spouts stop emitting now, and after a wait its workers start anew.

    The state of tasks goes on with them. A component gets more tasks only if it has fewer than executors. The command does not
    wait for the new workers; ``stormspark list`` shows REBALANCING until they are up.
    """
    from stormspark.cli.operate import ask

    action = "rebalance/default" if wait is None else f"rebalance/{wait:g}"
    options: dict[str, Any] = {"executors": executors} | ({} if workers is None else {"numWorkers": workers})
    after = "its message timeout" if wait is None else f"{wait:g} s"
    done = f"{{}} is REBALANCING: its workers start anew after {after}"
    _exit(ask(reach, action, done, as_json=as_json, body={"rebalanceOptions": options}))


def _levels(context: click.Context, option: click.Parameter, given: tuple[str, ...]) -> list[tuple[str, Any]]:
    from stormspark.cli.log_levels import level_to_set

    return [level_to_set(text) for text in given]


@click.command("log-level")
@reaches
@click.option(
    "-l",
    "--level",
    "levels",
    multiple=True,
    metavar="LOGGER=LEVEL[:SECS]",
    callback=_levels,
    help="Set the level of a logger of Python's logging; ROOT is the root logger. After SECS seconds it falls back by itself. "
    "May be repeated.",
)
@click.option(
    "-r",
    "--remove",
    "removed",
    multiple=True,
    metavar="LOGGER",
    help="Let a logger fall back now. May be repeated.",
)
@_prints_json
@refusing
def log_level(reach: Reach, levels: list[tuple[str, Any]], removed: tuple[str, ...], as_json: bool) -> None:
    """Show or change the levels of loggers of the topology NAME while it runs, in all of its workers and in its driver.

    LEVEL is one of ALL, TRACE, DEBUG, INFO, WARN, ERROR, FATAL, OFF. Without -l and -r, print the levels that were set.
    """
    from stormspark.cli.log_levels import change_log_levels

    _exit(change_log_levels(reach, levels, removed, as_json=as_json))


@click.command()
@reaches
@click.argument("component", required=False)
@click.option(
    "--on",
    "percentage",
    type=click.FloatRange(0, 100),
    metavar="PCT",
    help="Log this percentage of what is emitted.",
)
@click.option("--off", is_flag=True, help="Log no more.")
@_prints_json
@refusing
def debug(reach: Reach, component: str | None, percentage: float | None, off: bool, as_json: bool) -> None:
    """Log a sample of what COMPONENT of the topology NAME emits, or the whole topology, while it runs."""
    from stormspark.cli.events import debug as set_debug

    if (percentage is None) != off:
        msg = "say either --on with a percentage, such as --on 10, or --off"
        raise click.UsageError(msg)
    _exit(set_debug(reach, component, percentage, as_json=as_json))


@click.command()
@click.argument("name", metavar="NAME", shell_complete=complete_names)
@click.argument("component", required=False)
@click.option("-f", "--follow", is_flag=True, help="Go on with the events that come, until Ctrl-C.")
@last_lines("How many events of each worker.")
@refusing
def events(name: str, component: str | None, follow: bool, lines: int) -> None:
    """Show what the topology NAME, or its COMPONENT, has logged of its events on this host (see debug)."""
    from stormspark.cli.events import show_events

    _exit(show_events(name, component, lines, follow=follow))


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion(shell: str) -> None:
    """Print the script with which SHELL completes commands, options and names of topologies.

    For bash, add this line to ~/.bashrc: eval "$(stormspark completion bash)". The same for zsh, in ~/.zshrc; for fish, write the
    script to ~/.config/fish/completions/stormspark.fish.
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root().command
    found = get_completion_class(shell)
    assert found is not None  # click has all three
    click.echo(found(root, {}, "stormspark", "_STORMSPARK_COMPLETE").source())


def _exit(code: int) -> None:
    click.get_current_context().exit(code)


#: What the program adds to its commands.
COMMANDS = (
    errors,
    monitor,
    stats,
    worker_uptime,
    slot_usage,
    restart,
    rebalance,
    log_level,
    debug,
    events,
    completion,
)
#: How ``storm`` and ``sparse`` spell commands that have another name here.
SPELLINGS = {
    "get-errors": "errors",
    "set_log_level": "log-level",
    "worker_uptime": "worker-uptime",
    "slot_usage": "slot-usage",
}
