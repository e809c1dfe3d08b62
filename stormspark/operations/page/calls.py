"""The calls that the web page makes, as routes of Starlette, and the page itself.

The calls are below ``/api/v1/stormspark/topology/:id``. They are not Storm's, and may change with the page. They run on threads
beside the server's event loop, because some read files, or many tasks.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from stormspark.errors import CheckpointError, UnsupportedEnvironmentError
from stormspark.operations.operable import Served
from stormspark.operations.page import log_files
from stormspark.operations.page.error_lines import described
from stormspark.operations.page.snapshot import Snapshots
from stormspark.operations.page.state_keys import keys_of
from stormspark.operations.page.static_files import HEADERS, StaticFiles
from stormspark.operations.page_calls import check_topology
from stormspark.worker.stories.story import Story
from stormspark.worker.stories.telling import tell

__all__ = ["HERE", "json_answer", "routes"]

#: Below this, calls are those of the page.
HERE = "/api/v1/stormspark"
_MOST_STORIES = 200
_MOST_PARTITIONS = 200
_RANGES = (600.0, 3600.0, 21_600.0)


def json_answer(content: Any, status: int = 200) -> Response:
    """Return an answer in JSON that nobody keeps."""
    text = json.dumps(content, allow_nan=False, ensure_ascii=False, separators=(",", ":"))
    return Response(
        text.encode("utf-8", "replace"),
        status,
        {**HEADERS, "Content-Type": "application/json", "Cache-Control": "no-store"},
    )


def routes(served: Served) -> list[Route]:
    """Return where the page and its calls are."""
    files = StaticFiles()
    calls = _Calls(served)
    here = f"{HERE}/topology/{{id}}"
    named: dict[str, Callable[[Request], Any]] = {
        "": calls.snapshot,
        "/history": calls.history,
        "/tasks": calls.tasks,
        "/errors": calls.errors,
        "/commits": calls.commits,
        "/state": calls.state,
        "/keys": calls.keys,
        "/lag": calls.lag,
        "/stories": calls.stories,
        "/logs": calls.logs,
        "/log": calls.log,
        "/search": calls.search,
    }

    def route(path: str, call: Callable[[Request], Any]) -> Route:
        async def answer(request: Request) -> Response:
            check_topology(served, request)
            try:
                return json_answer(await run_in_threadpool(call, request))
            except log_files.UnknownLogError as error:
                raise HTTPException(404, str(error)) from error
            except CheckpointError as error:
                raise HTTPException(500, str(error)) from error
            except UnsupportedEnvironmentError as error:  # a log folder that others can change
                raise HTTPException(500, str(error)) from error

        return Route(here + path, answer, methods=["GET"])

    return [
        Route("/", files.page, methods=["GET"]),
        *files.routes(),
        Route(f"{HERE}/topology", calls.which, methods=["GET"]),
        *(route(path, call) for path, call in named.items()),
    ]


class _Calls:
    def __init__(self, served: Served) -> None:
        self._served, self._snapshots = served, Snapshots(served)
        self._reads_state = threading.Lock()

    async def which(self, request: Request) -> Response:
        """Which topology runs here."""
        running = self._served.running
        return json_answer({"id": self._served.id, "name": running.name, "finished": False})

    def snapshot(self, request: Request) -> Any:
        """All that changes each second."""
        return self._snapshots.now()

    def history(self, request: Request) -> Any:
        """Figures over time, of a ``component`` or of the whole topology, over ``seconds``, after the time ``since``."""
        component = self._component(request)
        seconds = _number(request, "seconds", 600.0)
        if seconds not in _RANGES:
            raise HTTPException(400, f"seconds is {seconds:g}, but must be one of 600, 3600, 21600")
        return self._served.recorder.series(component, seconds, _number(request, "since", 0.0))

    def tasks(self, request: Request) -> Any:
        """All tasks, with where they are; ``columns`` are the names of the figures in each row."""
        plan, counters = self._served.running.plan, self._served.running.by_task()
        names = ("emitted", "executed", "acked", "failed", "pending", "queued", "errors", "restarts", "down")
        rows: list[list[Any]] = []
        for task in plan.tasks.values():
            row: list[Any] = [task.id, task.component, task.index, task.executor, task.worker]
            if (one := counters.get(task.id)) is not None:
                mean = one.latency.seconds / one.latency.count * 1000 if one.latency.count else None
                row += [*(getattr(one, name) for name in names), None if mean is None else round(mean, 4)]
            else:
                row += [*(0 for _ in names), None]
            rows.append(row)
        return {
            "columns": ["task", "component", "index", "executor", "worker", *names, "mean_ms"],
            "rows": rows,
        }

    def errors(self, request: Request) -> Any:
        """The last errors of all components, the newest first."""
        places = {one.worker: one for one in self._served.running.worker_places()}
        found = [error for errors in self._served.running.errors().values() for error in errors]
        found.sort(key=lambda one: -one.at)
        return {"errors": [described(one, places.get(one.worker)) for one in found]}

    def commits(self, request: Request) -> Any:
        """The last commits and the last attempts that were taken back, the newest first."""
        found = self._served.running.commits()
        return {
            "committed": [
                {**one._asdict(), "at": round(one.at, 3), "seconds": round(one.seconds, 3)}
                for one in found.committed
            ],
            "taken_back": [{**one._asdict(), "at": round(one.at, 3)} for one in found.taken_back],
        }

    def state(self, request: Request) -> Any:
        """Where the state table is, and the batch that this driver has committed last. Nothing is read for that."""
        place, commits = self._served.running.state_table, self._served.running.commits()
        return {
            "location": None if place is None else place.location,
            "by_spark": place is not None and place.by_spark,
            "batch": commits.committed[0].batch if commits.committed else None,
        }

    def keys(self, request: Request) -> Any:
        """What is in the state table, which is read for that. One page at a time may do so."""
        place = self._served.running.state_table
        if place is None or place.by_spark:
            raise HTTPException(404, "the topology has no state table that its driver can read")
        if not self._reads_state.acquire(blocking=False):
            raise HTTPException(503, "another page reads the state now: try again in some seconds")
        try:
            return keys_of(place.location)
        finally:
            self._reads_state.release()

    def lag(self, request: Request) -> Any:
        """How far the spout ``component`` is behind Kafka (K9): the partitions with the most messages that wait, and the sum."""
        topics = self._served.running.lags().get(self._component(request) or "", {})
        every = [
            (one, topic, partition)
            for topic, partitions in topics.items()
            for partition, one in partitions.items()
        ]
        every.sort(key=lambda one: (-one[0].lag, one[1], len(one[2]), one[2]))
        return {
            "partitions": [
                {"topic": topic, "partition": partition, "read": one.read, "end": one.end, "lag": one.lag}
                for one, topic, partition in every[:_MOST_PARTITIONS]
            ],
            "count": len(every),
            "lag": sum(one.lag for one, _, _ in every),
        }

    def _component(self, request: Request) -> str | None:
        component = request.query_params.get("component")
        if component is not None and component not in self._served.running.plan.components:
            raise HTTPException(404, f"the topology has no component {component!r}")
        return component

    def stories(self, request: Request) -> Any:
        """A list of the latest stories, failed ones first; with ``root``, all lines of the stories about that tree or message."""
        root = request.query_params.get("root")
        every = self._served.running.stories()
        if root is None:
            chosen = sorted(every, key=lambda one: not one.failed)[:_MOST_STORIES]
            return {"stories": [_story(one) for one in chosen], "untold": sum(one.untold for one in every)}
        found = [one for one in every if one.root == root]
        return {"stories": [{**_story(one), "lines": list(tell(one, every))} for one in found]}

    def logs(self, request: Request) -> Any:
        """The log files on this host."""
        folder = self._served.running.log_folder
        return {"folder": folder, "files": log_files.files(folder)}

    def log(self, request: Request) -> Any:
        """A piece of the log file ``name``: its end, or what follows the position ``begin`` in the ``file`` of that number."""
        begin = request.query_params.get("begin")
        file = request.query_params.get("file")
        return log_files.piece(
            self._served.running.log_folder,
            request.query_params.get("name", ""),
            None if begin is None else int(_number(request, "begin", 0.0)),
            None if file is None else int(_number(request, "file", 0.0)),
        )

    def search(self, request: Request) -> Any:
        """The lines with a ``text``, in the log file ``name`` or in all."""
        return log_files.matches(
            self._served.running.log_folder,
            request.query_params.get("text", ""),
            request.query_params.get("name"),
        )


def _story(story: Story) -> dict[str, Any]:
    return {
        "root": story.root,
        "ended": datetime.fromtimestamp(story.ended, UTC).isoformat(timespec="milliseconds"),
        "outcome": story.outcome,
        "failed": story.failed,
        "seconds": story.seconds,
        "spout": story.spout,
        "message": story.message_id,
        "traced": story.traced,
        "why": story.why,
    }


def _number(request: Request, name: str, default: float) -> float:
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value < 2**63:
        raise HTTPException(400, f"{name} is {text!r}, but must be a number that is not negative")
    return value
