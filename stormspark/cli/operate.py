"""Prints the topologies that run, and asks their drivers for things: activate, deactivate, kill, restart (J1, J6)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark.cli.output import wide_enough
from stormspark.cli.reach import Reach
from stormspark.errors import TopologyNotAliveError
from stormspark.operations.client import Client
from stormspark.operations.registry import Entry, entries, entry_of

__all__ = ["ask", "print_list", "say"]

#: The state of a topology whose driver is gone; Storm has no such state.
_DEAD = "DEAD"
#: What stands there for a driver that lives and does not answer.
_SILENT = "no answer"
#: The columns of ``storm list``, and where they are in the REST API.
_COLUMNS = {
    "name": "name",
    "status": "status",
    "tasks": "tasksTotal",
    "workers": "workersTotal",
    "uptime": "uptime",
    "id": "id",
}


def print_list(reach: Reach, *, as_json: bool) -> int:
    """Print the topologies that this user runs on this host, also those whose drivers were killed, or those of another driver.
    Returns the exit code.
    """
    found = list(_summaries()) if reach.is_here else [reach.driver().summary()]
    if as_json:
        sys.stdout.write(json.dumps({"topologies": found}) + "\n")
        return 0
    console = wide_enough(Console(highlight=False), 160)
    if not found:
        console.print(Text("this user runs no topology on this host"))
        return 0
    table = Table(box=None, pad_edge=False)
    for name in _COLUMNS:
        table.add_column(name, justify="right" if name in ("tasks", "workers") else "left")
    for one in found:
        table.add_row(*(Text(str(one.get(key, ""))) for key in _COLUMNS.values()))
    console.print(table)
    for one in found:
        if one["status"] == _DEAD:
            console.print(Text(one["reason"]), soft_wrap=True)
        if one.get("url") and one["status"] not in (_DEAD, _SILENT):
            console.print(Text(f"{one['name']} answers at {one['url']}"), soft_wrap=True)
    return 0


def _summaries() -> Iterator[dict[str, Any]]:
    for entry in entries():
        try:
            found = Client(entry).summary()
        except TopologyNotAliveError as error:
            found = _of_dead(entry) if not entry.lives else _of_silent(entry, str(error))
        yield {**found, **_place_of(entry)}


def _place_of(entry: Entry) -> dict[str, Any]:
    """Return what a program needs to reach a driver, or to look at what it has left. Storm has none of this."""
    return {
        "url": entry.url,
        "socket": entry.socket,
        "pid": entry.pid,
        "logs": entry.log_folder,
        "checkpoint": entry.checkpoint,
    }


def _of_dead(entry: Entry) -> dict[str, Any]:
    again = f"; its checkpoint is {entry.checkpoint}" if entry.checkpoint else ""
    reason = (
        f"the driver of {entry.topology}, process {entry.pid}, has ended without a word, as after kill -9{again}; "
        f"`stormspark kill {entry.id}` takes it off this list"
    )
    return {"id": entry.id, "name": entry.topology, "status": _DEAD, "reason": reason}


def _of_silent(entry: Entry, reason: str) -> dict[str, Any]:
    return {"id": entry.id, "name": entry.topology, "status": _SILENT, "reason": reason}


def ask(reach: Reach, action: str, done: str, *, as_json: bool, body: object = None) -> int:
    """Ask the driver of a topology for an action. Returns the exit code.

    ``action`` is the call of the REST API, such as ``kill/30``, ``body`` what goes with it, and ``done`` what is printed when the
    driver has taken it up.
    Raises `TopologyNotAliveError` if there is no such topology or its driver is gone, and `StatusError` if the topology is in no
    state for it.
    """
    entry = entry_of(reach.given_name) if reach.is_here and action.startswith("kill/") else None
    if entry is not None and not entry.lives:
        entry.forget()
        answer: dict[str, Any] = {
            "topologyOperation": "kill",
            "topologyId": entry.id,
            "status": "success",
        }
        supervisor = entry.end_supervisor()
        no_more = (
            "" if supervisor is None else f", and its supervisor, process {supervisor}, starts it no more"
        )
        done = "{} had lost its driver already: it is off the list now" + no_more
    else:
        answer = reach.driver().do(action, body)
    say(answer, done.format(answer.get("topologyId")), as_json=as_json)
    return 0


def say(answer: dict[str, Any], text: str, *, as_json: bool) -> None:
    """Print what a driver has answered, as it is or in words."""
    if as_json:
        sys.stdout.write(json.dumps(answer) + "\n")
    else:
        Console(highlight=False).print(Text(text), soft_wrap=True)
