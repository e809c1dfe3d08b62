"""What the list of commands in ``stormspark --help`` says of each: one line, which fits beside its name."""

from __future__ import annotations

from collections.abc import Mapping

import click

__all__ = ["SHORT_HELP", "shorten"]

#: By command. The first sentence of a command's own help is longer, and would be cut off in the middle.
SHORT_HELP = {
    "activate": "Let the spouts of a topology emit again.",
    "completion": "Print the script that completes commands in a shell.",
    "config": "Search the settings of topologies.",
    "deactivate": "Stop the spouts of a topology from emitting.",
    "dead-letters": "List the rows that were given up, or replay them.",
    "debug": "Log a sample of what a topology emits.",
    "doctor": "Look for what would keep topologies from running here.",
    "errors": "Print the last errors, with the lines of your code.",
    "events": "Show the sample that `debug` has logged.",
    "explain": "Print the plan of a topology; run nothing.",
    "jars": "Fetch jars for Spark, and print their paths.",
    "kill": "End a topology, after a wait for open tuple trees.",
    "list": "List the topologies that run, and those that died.",
    "log-level": "Show or change the levels of loggers.",
    "logs": "Print the folder with the logs of a topology.",
    "monitor": "Print every few seconds what a component emits.",
    "pending": "Show the rows of sources that are not acked yet.",
    "port": "Report what a legacy project needs to run here.",
    "quickstart": "Make a project: a topology, its tests, a README.",
    "rebalance": "Change the numbers of workers and executors.",
    "replay": "Run one task's batch again, in this process.",
    "restart": "Let the workers start anew, in new processes.",
    "run": "Run a topology on this host.",
    "slot-usage": "Print how many workers and executors a host has.",
    "state": "Show the state of a bolt or spout.",
    "stats": "Print counts, latencies, capacity and last errors.",
    "story": "Show what happened to tuples.",
    "submit": "Run a topology on a cluster, by spark-submit.",
    "tail": "Show the last lines of logs, and follow them.",
    "ui": "Show all topologies on a web page.",
    "worker-uptime": "Print where the workers are, and since when.",
}


def shorten(commands: Mapping[str, click.Command]) -> None:
    """Give each command its line."""
    for name, command in commands.items():
        command.short_help = SHORT_HELP[name]
