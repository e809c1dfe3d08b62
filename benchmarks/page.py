"""What the web page costs a driver, for a topology of 50 components and 2,000 tasks.

    python -m benchmarks.page [--seconds 20] [--components 50] [--tasks 2000]

The topology runs nothing: batches of two workers end twice a second, so what this process uses is what the REST API and the page
cost. Prints one JSON line: the cores without the REST API, with it, and while a page asks each second; how long an answer takes;
and, if there is a Chromium, after how long the page shows its first figures, and how long it takes to change them.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import logging
import statistics
import threading
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

import httpx

from stormspark import Fields, TopologyBuilder
from stormspark.driver.source_lag import Lags
from stormspark.driver.tally import Tally
from stormspark.driver.throttle import Throttle
from stormspark.metrics import Histogram, TaskCounters, TopologyStatistics
from stormspark.operations.facts import WorkerPlace
from stormspark.operations.registry import entry_of
from stormspark.operations.served import ServedTopology
from stormspark.operations.server import serve
from stormspark.plan import plan_topology
from stormspark.plan.physical import PhysicalPlan
from stormspark.testing import FixedTupleSpout, TestWordCounter
from stormspark.worker.busy import Busy
from stormspark.worker.step import WorkerReport
from stormspark.worker.stories.story import Story

_NAME = "page-benchmark"
_REPORTS_SECS = 0.5


class Reported(ServedTopology):
    """A topology that runs nothing, and whose workers report all the same."""

    storm_id = f"{_NAME}-1-1795861973"
    name = _NAME
    log_folder = None
    error = None

    def __init__(self, plan: PhysicalPlan) -> None:
        self.plan = plan
        self._tally = Tally(plan, "local", Throttle(plan).pressure)
        self._ended = threading.Event()
        self._batch = 0

    def report(self) -> None:
        """Report a batch in which each task has done something."""
        self._batch += 1
        reports = []
        for worker in range(self.plan.workers):
            counters = {}
            for task in self.plan.tasks_of_worker(worker):
                spent = Histogram()
                for step in range(40):  # as many buckets as latencies of real calls fill
                    spent.add(0.0001 * (step + task.id % 7 + 1), self._batch)
                done = self._batch * 40
                counters[task.id] = TaskCounters(
                    emitted=done, transferred=done, executed=done, acked=done, latency=spent
                )
            reports.append(WorkerReport(worker, 1, self._batch, counters, (), None, 0))
        self._tally.add_batch(reports, _REPORTS_SECS)
        self._tally.end_batch()

    def report_on(self) -> None:
        """Report until the end."""
        while not self._ended.wait(_REPORTS_SECS):
            self._tally.add_batch([], _REPORTS_SECS)
            self._tally.end_batch()

    def statistics(self) -> TopologyStatistics:
        """Return the counters."""
        return self._tally.statistics()

    def worker_places(self) -> list[WorkerPlace]:
        """Return where the workers would be."""
        return [WorkerPlace(worker, "one", 17, time.time()) for worker in range(self.plan.workers)]

    def waits_for(self) -> str:
        """Wait for nothing."""
        return ""

    def calls_under_way(self) -> list[Busy]:
        """No calls run."""
        return []

    def stories(self, root: int | str | None = None) -> list[Story]:
        """There are none."""
        return []

    def lags(self) -> Lags:
        """Read no Kafka."""
        return {}

    def set_log_levels(self, levels: Mapping[str, int]) -> None:
        """Do nothing."""

    def restart(self, workers: Collection[int]) -> None:
        """Do nothing."""

    def rebalanced(
        self, *, workers: int | None = None, executors: Mapping[str, int] | None = None
    ) -> PhysicalPlan:
        """Return the plan as it is."""
        return self.plan

    def lay_out(self, plan: PhysicalPlan) -> None:
        """Do nothing."""

    def activate(self) -> None:
        """Do nothing."""

    def deactivate(self) -> None:
        """Do nothing."""

    def stop(self) -> None:
        """End the reports."""
        self._ended.set()

    def wait(self, timeout: float | None = None) -> bool:
        """Return whether the reports have ended."""
        return self._ended.wait(timeout)


def plan_of(components: int, tasks: int) -> PhysicalPlan:
    """Return a plan: a spout, and bolts in rows of seven."""
    builder = TopologyBuilder()
    each = max(1, tasks // components)
    builder.set_spout("lines", FixedTupleSpout([], Fields("word")), parallelism=1).set_num_tasks(each)
    before = "lines"
    for number in range(1, components):
        name = f"stage-{number}"
        bolt = builder.set_bolt(name, TestWordCounter(), parallelism=1).set_num_tasks(each)
        bolt.fields_grouping(before, Fields("word"))
        if number % 7 == 0:
            before = name
    conf = {"topology.workers": 2, "stormspark.ui.port": 0}
    return plan_topology(builder.create_topology(_NAME), conf)


def cores(seconds: float) -> float:
    """Return how many cores this process uses in the next seconds."""
    before, began = time.process_time(), time.monotonic()
    time.sleep(seconds)
    return round((time.process_time() - before) / (time.monotonic() - began), 4)


@contextlib.contextmanager
def asked_each_second(took: list[float], sizes: list[int]) -> Iterator[None]:
    """Ask as a page does, in a process of its own, so that its CPU does not count."""
    from multiprocessing import get_context

    context = get_context("spawn")
    pipe, theirs = context.Pipe()
    asking = context.Process(
        target=_ask, args=(entry_of(_NAME).socket, Reported.storm_id, theirs), daemon=True
    )
    asking.start()
    pipe.recv()
    yield
    pipe.send(None)
    found = pipe.recv()
    took += found[0]
    sizes += found[1]
    asking.join()


def _ask(socket: str, topology: str, pipe: Any) -> None:
    here = f"/api/v1/stormspark/topology/{topology}"
    took, sizes, since = [], [], 0.0
    transport = httpx.HTTPTransport(uds=socket)
    with httpx.Client(transport=transport, base_url="http://driver", timeout=30) as client:
        client.get(here)
        pipe.send(None)
        while not pipe.poll():
            at = time.monotonic()
            sizes.append(len(client.get(here).raise_for_status().content))
            history = client.get(f"{here}/history", params={"since": since}).json()
            took.append(time.monotonic() - at)
            since = max([since, *(one - 20 for one in history["at"][-1:])])
            time.sleep(max(0.0, 1 - took[-1]))
    pipe.send((took, sizes))


def in_browser(token: str, url: str) -> dict[str, Any]:
    """Open the page in a Chromium; empty if there is none."""
    from tests.browser.chromium import found

    path = found()
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        return {}
    if path is None:
        return {}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        loads, looks = [], []
        for _ in range(7):
            context = browser.new_context(
                http_credentials={"username": "me", "password": token},
                viewport={"width": 1280, "height": 900},
            )
            page = context.new_page()
            began = time.monotonic()
            page.goto(url, wait_until="commit")
            page.wait_for_selector("html[data-shown]", state="attached")
            loads.append(time.monotonic() - began)
            page.wait_for_selector('html[data-shown="4"]', state="attached")
            looks.append(int(page.evaluate("document.documentElement.dataset.tookMs")))
            context.close()
        browser.close()
    return {
        "load_ms": round(statistics.median(loads) * 1000),
        "best_load_ms": round(min(loads) * 1000),
        "change_ms": statistics.median(looks),
    }


def main() -> None:
    """Measure, and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--components", type=int, default=50)
    parser.add_argument("--tasks", type=int, default=2000)
    given = parser.parse_args()
    logging.getLogger("stormspark").setLevel(logging.ERROR)
    running = Reported(plan_of(given.components, given.tasks))
    running.report()
    running.report()
    threading.Thread(target=running.report_on, daemon=True).start()
    found: dict[str, Any] = {
        "case": "page",
        "components": given.components,
        "tasks": len(running.plan.tasks),
        "without_cores": cores(given.seconds),
    }
    server = serve(running, engine="local", active=True, checkpoint=None)
    assert server is not None
    found["with_cores"] = cores(given.seconds)
    took: list[float] = []
    sizes: list[int] = []
    with asked_each_second(took, sizes):
        found["page_open_cores"] = cores(given.seconds)
    found |= {
        "look_ms": round(statistics.median(took) * 1000, 1),
        "look_kb": round(statistics.median(sizes) / 1024, 1),
    }
    entry = entry_of(_NAME)
    found |= in_browser(str(entry.token), str(entry.url).removesuffix("api/v1"))
    server.close()
    running.stop()
    print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
