"""Prints the figures of a topology that runs, and where its workers are, as ``sparse stats`` and ``worker_uptime`` do (A39)."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark.cli.output import wide_enough
from stormspark.cli.reach import Reach
from stormspark.errors import TopologyNotAliveError
from stormspark.likely_names import no_component
from stormspark.ui.printable import printable

__all__ = ["print_slots", "print_stats", "print_workers"]

#: The columns of each table, and where they are in the REST API.
_WINDOWS = {
    "window": "windowPretty",
    "emitted": "emitted",
    "transferred": "transferred",
    "complete ms": "completeLatency",
    "acked": "acked",
    "failed": "failed",
}
_COUNTS = {
    "executors": "executors",
    "tasks": "tasks",
    "emitted": "emitted",
    "transferred": "transferred",
    "acked": "acked",
    "failed": "failed",
}
_SPOUTS = {"spout": "spoutId", **_COUNTS, "complete ms": "completeLatency"}
_BOLTS = {
    "bolt": "boltId",
    **_COUNTS,
    "capacity": "capacity",
    "execute ms": "executeLatency",
    "executed": "executed",
}
_WORKERS = {"worker": "worker", "host": "host", "executors": "executorsTotal", "uptime": "uptime"}


def print_stats(reach: Reach, component: str | None, window: str, *, as_json: bool) -> int:
    """Print the figures of a topology, or of one component, within a window of the REST API. Returns the exit code.

    Raises `TopologyNotAliveError` if there is no such topology or component.
    """
    page = _page(reach, window)
    spouts, bolts = page.get("spouts", []), page.get("bolts", [])
    if component is not None:
        names = [one.get("spoutId") or one.get("boltId") for one in (*spouts, *bolts)]
        if component not in names:
            raise TopologyNotAliveError(no_component(page["name"], component, names))
        spouts = [one for one in spouts if one["spoutId"] == component]
        bolts = [one for one in bolts if one["boltId"] == component]
    if as_json:
        found = page if component is None else (spouts + bolts)[0]
        sys.stdout.write(json.dumps(found) + "\n")
        return 0
    console = wide_enough(Console(highlight=False), 160)
    if component is None:
        line = (
            f"{page['name']}: {page['status']}, up {page.get('uptime') or '0s'}, {page['tasksTotal']} tasks in "
            f"{page['executorsTotal']} executors and {page['workersTotal']} workers, id {page['id']}"
        )
        console.print(Text(line), soft_wrap=True)
        _print(console, _WINDOWS, page.get("topologyStats", []))
    _print(console, _SPOUTS, spouts)
    _print(console, _BOLTS, bolts)
    for one in (*spouts, *bolts):
        if error := str(one.get("lastError") or "").strip():
            name = one.get("spoutId") or one.get("boltId")
            first = printable(error.splitlines()[0])
            more = f"`stormspark errors {page['name']} {name}` shows more"
            console.print(Text(f"last error of {name}: {first}; {more}"), soft_wrap=True)
    return 0


def print_workers(reach: Reach, *, as_json: bool) -> int:
    """Print where the workers of a topology are, and how long they have been there. Returns the exit code."""
    workers = _workers(_page(reach, ":all-time"))
    if as_json:
        sys.stdout.write(json.dumps({"workers": workers}) + "\n")
        return 0
    _print(wide_enough(Console(highlight=False), 160), _WORKERS, workers)
    return 0


def print_slots(reach: Reach, *, as_json: bool) -> int:
    """Print how many workers and executors of a topology are on each host. Returns the exit code."""
    page = _page(reach, ":all-time")
    hosts: dict[str, dict[str, Any]] = {}
    for one in _workers(page):
        name = one["host"] or "(starts)"
        host = hosts.setdefault(name, {"host": name, "topology": page["name"], "workers": 0, "executors": 0})
        host["workers"] += 1
        host["executors"] += one.get("executorsTotal", 0)
    if as_json:
        sys.stdout.write(json.dumps({"hosts": [*hosts.values()]}) + "\n")
        return 0
    columns = ("host", "topology", "workers", "executors")
    _print(wide_enough(Console(highlight=False), 160), {name: name for name in columns}, hosts.values())
    return 0


def _page(reach: Reach, window: str) -> dict[str, Any]:
    driver = reach.driver()
    return driver.ask("GET", f"topology/{driver.id}?window={quote(window, safe='')}")


def _workers(page: Mapping[str, Any]) -> list[dict[str, Any]]:
    found: Sequence[Mapping[str, Any]] = page.get("workers", [])
    return [{"worker": number, **one} for number, one in enumerate(found)]


def _print(console: Console, columns: Mapping[str, str], rows: Iterable[Mapping[str, Any]]) -> None:
    rows = [*rows]
    if not rows:
        return
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if isinstance(rows[0].get(columns[name]), str) else "right")
    for row in rows:
        shown = (row.get(key, "") for key in columns.values())
        table.add_row(*(Text(f"{one:,}" if isinstance(one, int) else str(one)) for one in shown))
    console.print(table)
