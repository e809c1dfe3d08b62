"""The page of a topology that has ended: from the JSON summary of a run, or from a page that somebody has saved."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stormspark.errors import StormsparkError
from stormspark.operations.page.edge_rates import edge_rates
from stormspark.operations.page.snapshot import FORMAT, TOTALS, Ends, graph_of
from stormspark.operations.page.verdict import MANY_FAILS

__all__ = ["Finished", "UnreadablePageError", "read_finished"]


class UnreadablePageError(StormsparkError):
    """A file is neither the JSON summary of a run nor a page that was saved."""


@dataclass(frozen=True)
class Finished:
    """What the page of an ended topology is told."""

    snapshot: Mapping[str, Any]
    history: Mapping[str, Any]
    errors: list[Any]

    @property
    def name(self) -> str:
        """The topology's name."""
        return str(self.snapshot["name"])

    def answer(self, call: str, component: str | None) -> Any:
        """Return the answer to a call of the page. Raises KeyError for a call that there is not."""
        answers = {
            "": self.snapshot,
            "history": {"at": []} if component else self.history,
            "errors": {"errors": self.errors},
            "commits": {"committed": [], "taken_back": []},
            "state": {"location": None, "by_spark": False, "batch": None},
            "lag": {"partitions": [], "count": 0, "lag": 0},
            "tasks": {"columns": ["task", "component", "index"], "rows": []},
            "stories": {"stories": [], "untold": 0},
            "logs": {"folder": None, "files": []},
        }
        return answers[call]


#: What to do about a file that is something else.
_EXPECTED = "give a file that `stormspark run --json FILE` has written, or that a page has saved"


def read_finished(file: str | Path) -> Finished:
    """Read a file that ``stormspark run --json`` or the page has written. Raises `UnreadablePageError`."""
    try:
        document = json.loads(Path(file).read_text(encoding="utf-8"))
    except OSError as error:
        msg = f"{file} can't be read: {error.strerror}"
        raise UnreadablePageError(msg) from error
    except ValueError as error:
        msg = f"{file} is no JSON ({error}): {_EXPECTED}"
        raise UnreadablePageError(msg) from error
    try:
        if "stormspark_page" in document:
            saved = {
                **document["snapshot"],
                "actions": [],
                "note": f"This page was saved; it is from {file}.",
            }
            if document["stormspark_page"] != FORMAT:
                msg = f"{file} was saved by another version of stormspark: format {document['stormspark_page']!r}, not {FORMAT}"
                raise UnreadablePageError(msg)
            return Finished(saved, document["history"], document["errors"])
        return Finished(_snapshot(document, str(file)), {"at": []}, _errors(document))
    except (KeyError, TypeError, AttributeError) as error:
        msg = f"{file} is no summary of a run ({type(error).__name__}: {error}): {_EXPECTED}"
        raise UnreadablePageError(msg) from error


def _errors(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "at": 0,
            "component": name,
            "task": 0,
            "worker": 0,
            "host": "",
            "summary": one["last_error"].strip().splitlines()[-1][:400],
            "line": None,
            "text": one["last_error"],
        }
        for name, one in document["components"].items()
        if (one.get("last_error") or "").strip()
    ]


def _snapshot(document: Mapping[str, Any], file: str) -> dict[str, Any]:
    seconds = document["seconds"]
    components = [_component(document, name, one) for name, one in document["components"].items()]
    spouts = [one for one in components if one["kind"] == "spout"]
    failed = sum(one["totals"]["failed"] for one in spouts)
    reasons = [
        {"level": level, "text": f"{one['id']}: {text}", "component": one["id"]}
        for one in components
        for level, text in _reasons(one)
    ]
    level = "bad" if any(one["level"] == "bad" for one in reasons) else "slow" if reasons else "good"
    edges = document.get("subscriptions", [])
    ends = [Ends(edge["source"], edge["target"]) for edge in edges]
    per_s = (lambda total: total / seconds) if seconds else (lambda total: 0.0)
    return {
        "format": FORMAT,
        "id": f"{document['topology']} of {file}",
        "name": document["topology"],
        "engine": document["engine"],
        "version": document.get("version"),
        "status": "ENDED",
        "owner": "",
        "host": "",
        "pid": 0,
        "now": 0,
        "uptime": int(seconds),
        "exactly_once": document.get("exactly_once", False),
        "message_timeout": 30,
        "tasks": sum(one["tasks"] for one in components),
        "executors": 0,
        "workers_reason": "",
        "verdict": {
            "level": level,
            "title": "has ended" + (", and not all was well" if reasons else ""),
            "reasons": reasons,
        },
        "waits_for": "",
        "note": f"The topology has ended; its figures are means over its whole time, from {file}.",
        "logs": None,
        "progress": {
            "executed_per_s": per_s(sum(one["totals"]["executed"] for one in components)),
            "acked_per_s": per_s(sum(one["totals"]["acked"] for one in spouts)),
            "acked": sum(one["totals"]["acked"] for one in spouts),
            "failed": failed,
            "pending": sum(one["pending"] for one in components),
            "queued": sum(one["queued"] for one in components),
            "shed": sum(one["totals"]["shed"] for one in components),
            "batches": document["batches"],
            "rounds": document["batches"],
            "batch_ms": document["batch_ms"]["mean"],
        },
        "phases_ms": {
            name: one["mean"] for name, one in document["phases_ms"].items() if not name.startswith("spark.")
        },
        "taken_back": {"count": 0, "last": ""},
        "dead_letters_in": document.get("dead_letters_in"),
        "components": components,
        "graph": graph_of([one["id"] for one in components], ends) if edges else None,
        "edges": [
            {**edge, "crosses": False, "per_s": rate}
            for edge, rate in zip(edges, _edge_rates(components, ends, seconds), strict=True)
        ],
        "workers": [],
        "calls": [],
        "held_back": [],
        "limit_changes": (document.get("backpressure") or {}).get("history", [])[-50:],
        "actions": [],
    }


def _reasons(one: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    totals = one["totals"]
    if errors := totals["errors"]:
        yield "slow", f"{errors:,} error{'s' * (errors != 1)}"
    if one["kind"] == "spout" and (failed := totals["failed"]):
        level = "bad" if failed >= MANY_FAILS * (failed + totals["acked"]) else "slow"
        yield level, f"{failed:,} of {failed + totals['acked']:,} trees failed"
    if totals["dead_letters"]:
        yield "bad", f"{totals['dead_letters']:,} rows were given up"


def _edge_rates(
    components: Sequence[Mapping[str, Any]], ends: Sequence[Ends], seconds: float
) -> list[float | None]:
    if not seconds:
        return [None] * len(ends)
    return edge_rates(
        ends,
        {one["id"]: one["totals"]["transferred"] / seconds for one in components},
        {one["id"]: one["totals"]["executed"] / seconds for one in components},
    )


def _component(document: Mapping[str, Any], name: str, one: Mapping[str, Any]) -> dict[str, Any]:
    seconds = document["seconds"]
    latency = one["complete_latency_ms" if one["kind"] == "spout" else "execute_latency_ms"]
    pressure = document.get("backpressure") or {}
    found = {
        "id": name,
        "kind": one["kind"],
        "tasks": one["tasks"],
        "executors": one["tasks"],
        "declared_at": "",
        "source": "",
        "state": "",
        "totals": {count: one[count] for count in TOTALS},
        "rates": {
            count: one[count] / seconds if seconds else 0.0
            for count in ("emitted", "executed", "acked", "failed")
        },
        "latency_ms": latency["mean"],
        "all_time_ms": latency,
        "pending": one["pending"],
        "queued": one["queued"],
        "queued_bytes": one["queued_bytes"],
        "down": one["down"],
        "calls_under_way": one["mean_calls_under_way"],
        "calls_at_once": one["calls_at_once"],
        "last_failure": one["last_failure"],
        "capacity": None
        if one["kind"] == "spout" or not seconds or latency["mean"] is None
        else one["executed"]
        * latency["mean"]
        / 1000
        / seconds
        / max(1, one["calls_at_once"] or one["tasks"]),
    }
    if (spout := pressure.get("spouts", {}).get(name)) is not None:
        found |= {key: spout[key] for key in ("limit", "throttled_by", "throttled_ms", "max_pending")}
    if (bolt := pressure.get("bolts", {}).get(name)) is not None:
        found |= {key: bolt[key] for key in ("high_mark", "high_mark_bytes", "backlog_seconds", "above")}
        found |= {"low_mark": bolt["high_mark"] / 2, "low_mark_bytes": bolt["high_mark_bytes"] / 2}
    return found
