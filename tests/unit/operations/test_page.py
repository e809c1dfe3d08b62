"""What the web page is told by a driver, and by `stormspark ui` for all drivers of a user."""

from __future__ import annotations

import asyncio
import json
import os
import pickle
import re
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import httpx
import pytest
from starlette.applications import Starlette

from stormspark import Fields, TopologyBuilder
from stormspark.backpressure import BoltPressure, Pressure, SpoutPressure
from stormspark.checkpoint.ordered_keys import encode_key
from stormspark.checkpoint.state_components import ComponentState, StatePlace, described
from stormspark.checkpoint.state_table import StateTable, TaskChanges, write_changes
from stormspark.driver.commit_log import CommitLog
from stormspark.driver.error_log import TaskError
from stormspark.driver.source_lag import PartitionLag
from stormspark.metrics import Histogram, TaskCounters
from stormspark.operations.page import log_files
from stormspark.operations.page.finished import UnreadablePageError, read_finished
from stormspark.operations.page.one_page import Links, one_page
from stormspark.operations.page.state_keys import keys_of
from stormspark.operations.registry import entry_of
from stormspark.plan import plan_topology
from stormspark.testing import FixedTupleSpout, TestWordCounter
from stormspark.worker.stories.story import Holder, Story
from tests.unit.operations.test_server import Words, serving

pytestmark = pytest.mark.usefixtures("folder")

HOSTILE = "</script><img src=x onerror=alert(1)>\"'&\u202e\ud800"


@pytest.fixture
def driver(words: Words) -> Iterator[httpx.Client]:
    with httpx.Client(
        transport=httpx.HTTPTransport(uds=entry_of("words").socket), base_url="http://driver"
    ) as client:
        yield client


def write_state(folder: Path, state: dict[Any, Any], tasks: int) -> None:
    """Commit a state of task 0 of "count" to a new table."""
    table = StateTable(folder)
    table.open(generation=0)
    items = sorted((encode_key(key), pickle.dumps(value)) for key, value in state.items())
    file = write_changes(str(folder), [TaskChanges("count", 0, items)], generation=0, txid=0)
    table.commit(0, [file] if file else [], described({"count": ComponentState(tasks, "storm")}))


def now(driver: httpx.Client, words: Words, call: str = "", **query: Any) -> Any:
    url = f"/api/v1/stormspark/topology/{words.storm_id}{call and '/' + call}"
    return driver.get(url, params=query).raise_for_status().json()


def test_a_topology_without_anything_yet_is_well(driver: httpx.Client, words: Words) -> None:
    said = now(driver, words)
    assert (said["id"], said["name"], said["status"], said["engine"]) == (
        "words-1-1795861973",
        "words",
        "ACTIVE",
        "local",
    )
    assert [one["id"] for one in said["components"]] == ["lines", "count"]
    assert said["edges"] == [
        {
            "source": "lines",
            "stream": "default",
            "target": "count",
            "grouping": "shuffle",
            "crosses": True,
            "per_s": None,
        }
    ]
    assert {one["id"] for one in said["graph"]["boxes"]} == {"lines", "count"}
    assert said["actions"] == ["deactivate", "rebalance", "kill"]
    assert [one["pid"] for one in said["workers"]] == [17, 0]
    assert said["verdict"]["reasons"] == [
        {"level": "bad", "text": "1 worker is not there", "component": None}
    ]


def test_the_bolt_that_holds_spouts_is_named(driver: httpx.Client, words: Words) -> None:
    words.pressed = Pressure(
        {"lines": SpoutPressure(200, "count", {"count": 4000.0})},
        {"count": BoltPressure(2100, 200_000, 1_000_000, 104_857_600, 2.1, False)},
        1,
        [],
    )
    said = now(driver, words)
    (reason,) = [one for one in said["verdict"]["reasons"] if one["level"] == "slow"]
    assert (reason["component"], "spouts are held back by count" in reason["text"]) == ("count", True)
    lines, count = said["components"]
    assert (count["high_mark"], count["low_mark"], count["backlog_seconds"]) == (1_000_000, 500_000, 2.1)
    assert (lines["limit"], lines["throttled_by"]) == (200, "count")


def test_errors_come_with_the_users_line(driver: httpx.Client, words: Words) -> None:
    text = f'Traceback:\n  File "/home/me/count.py", line 7, in execute\n    x\nValueError: {HOSTILE}'
    words.reported = {"count": (TaskError(time.time(), "count", 3, 0, text),)}
    (error,) = now(driver, words, "errors")["errors"]
    assert (error["component"], error["task"], error["host"]) == ("count", 3, "one")
    assert error["line"] == "/home/me/count.py:7"
    # What no encoding has is replaced, and all else is as it was.
    assert error["summary"] == f"ValueError: {HOSTILE[:-1]}?"
    (reason, _) = sorted(now(driver, words)["verdict"]["reasons"], key=lambda one: one["level"] != "slow")
    assert reason["text"] == "count: 1 error in the last 5 minutes"


def test_the_last_commits_and_what_was_taken_back(driver: httpx.Client, words: Words) -> None:
    assert now(driver, words, "commits") == {"committed": [], "taken_back": []}
    log = CommitLog(now=0.0)
    for batch in range(100):
        log.take_back(batch, HOSTILE * 1000, at=1000.0 + batch)
        log.commit(batch, 2, emitted=batch + 1, executed=3 * batch, now=0.25 * batch, at=1000.0 + batch)
    words.told_commits = log.commits()
    found = now(driver, words, "commits")
    assert (len(found["committed"]), len(found["taken_back"])) == (50, 50)
    assert found["committed"][0] == {
        "batch": 99,
        "at": 1099.0,
        "seconds": 0.25,
        "emitted": 1,
        "executed": 3,
        "rounds": 2,
        "batches": 1,
    }
    assert len(found["taken_back"][0]["reason"]) == 2000


def test_the_lag_of_a_spout_by_partition(driver: httpx.Client, words: Words) -> None:  # K9
    lags = {
        "lines": {HOSTILE[:-1]: {str(number): PartitionLag(10, 10 + number) for number in range(300)}},
    }
    words.lags = lambda: lags  # type: ignore[method-assign]
    found = now(driver, words, "lag", component="lines")
    assert (found["count"], found["lag"], len(found["partitions"])) == (300, 44850, 200)
    assert found["partitions"][0] == {
        "topic": HOSTILE[:-1],
        "partition": "299",
        "read": 10,
        "end": 309,
        "lag": 299,
    }
    assert now(driver, words, "lag", component="count")["count"] == 0
    refused = driver.get(f"/api/v1/stormspark/topology/{words.storm_id}/lag", params={"component": "x"})
    assert refused.status_code == 404


def test_the_state_table_and_its_first_keys(driver: httpx.Client, words: Words, tmp_path: Path) -> None:
    assert now(driver, words, "state") == {"location": None, "by_spark": False, "batch": None}
    keys = f"/api/v1/stormspark/topology/{words.storm_id}/keys"
    assert driver.get(keys).status_code == 404
    words.state_table = StatePlace(str(tmp_path), by_spark=True)
    assert now(driver, words, "state")["by_spark"]
    assert driver.get(keys).status_code == 404
    words.state_table = StatePlace(str(tmp_path), by_spark=False)
    missing = driver.get(keys)
    assert (missing.status_code, "no state table at" in missing.json()["errorMessage"]) == (500, True)
    values = {f"{number:03}": number for number in range(98)}
    write_state(
        tmp_path, {**values, "!": Path("/not/plain"), "#": "x" * 1_000_000, "$": HOSTILE[:-1] * 100}, tasks=5
    )
    found = now(driver, words, "keys")
    (count,) = found["components"]
    first = count.pop("first")
    assert (found["batch"], len(first)) == (0, 50)
    size = count.pop("bytes")
    assert (count, size > 1000) == ({"component": "count", "tasks": 5, "keys": 101, "complete": True}, True)
    assert [one["key"] for one in first[:4]] == ["'!'", "'#'", "'$'", "'000'"]
    plain, large, hostile, number = (one["value"] for one in first[:4])
    assert re.fullmatch(r"\d+ bytes that are no plain data", plain)
    assert (large, number) == (f"{len(pickle.dumps('x' * 1_000_000)):,} bytes", "0")
    assert (len(hostile), hostile[:20]) == (201, repr(HOSTILE)[:20])


def test_a_large_state_is_counted_for_some_seconds_only(tmp_path: Path) -> None:
    write_state(tmp_path, dict.fromkeys(range(30000), "x"), tasks=5)
    ticks = iter(range(0, 1000, 4))
    (count,) = keys_of(str(tmp_path), clock=lambda: next(ticks))["components"]
    assert (count["complete"], 0 < count["keys"] < 30_000, len(count["first"])) == (False, True, 50)
    (count,) = keys_of(str(tmp_path))["components"]
    assert (count["complete"], count["keys"]) == (True, 30_000)


def test_tasks_and_stories(driver: httpx.Client, words: Words) -> None:
    spent = Histogram()
    spent.add(0.2, 3)
    task = words.plan.components["count"].tasks[0]
    words.counters = {task: TaskCounters(executed=3, latency=spent)}
    found = now(driver, words, "tasks")
    rows = [dict(zip(found["columns"], row, strict=True)) for row in found["rows"]]
    assert len(rows) == 7
    (counted,) = [row for row in rows if row["executed"]]
    assert (counted["task"], counted["component"], counted["mean_ms"]) == (task, "count", 200.0)
    words.told_stories = (
        Story("00aa", "acked", spout="lines[0]", message_id="1", seconds=0.1),
        Story(
            "00ab",
            "timed out",
            spout="lines[0]",
            message_id="1",
            holders=(Holder("count[1]", "held", 1, 29.0),),
        ),
    )
    listed = now(driver, words, "stories")["stories"]
    assert [(one["root"], one["failed"]) for one in listed] == [("00ab", True), ("00aa", False)]
    (story,) = now(driver, words, "stories", root="00ab")["stories"]
    assert "The same message: 00aa acked." in story["lines"]
    assert now(driver, words, "stories", root="ffff")["stories"] == []


def test_calls_that_can_not_be_answered(driver: httpx.Client, words: Words) -> None:
    here = f"/api/v1/stormspark/topology/{words.storm_id}"
    assert driver.get("/api/v1/stormspark/topology").json()["id"] == words.storm_id
    for path, status in {
        "/api/v1/stormspark/topology/other-1-1": 404,
        f"{here}/history?component=nobody": 404,
        f"{here}/history?seconds=5": 400,
        f"{here}/history?since=nan": 400,
        f"{here}/history?since=-1": 400,
        f"{here}/log?name=x.log": 404,
        f"{here}/log?name=../../etc/passwd": 404,
        f"{here}/nothing": 404,
    }.items():
        answer = driver.get(path)
        assert (path, answer.status_code) == (path, status)
        assert answer.json()["error"].startswith(str(status))
    assert driver.post(here).status_code == 405


def test_the_page_needs_nothing_from_elsewhere(driver: httpx.Client) -> None:
    page = driver.get("/")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'; script-src 'self'; style-src 'self'" in policy
    assert "unsafe" not in policy
    assert page.headers["x-frame-options"] == "DENY"
    linked = [part.split('"')[0] for part in page.text.replace('src="', 'href="').split('href="')[1:]]
    files = [name for name in linked if name.startswith("page/")]
    assert len(files) >= 4
    assert [name for name in linked if "//" in name] == []
    assert "style=" not in page.text and "onclick" not in page.text
    for name in files:
        answer = driver.get(f"/{name}")
        assert (name, answer.status_code) == (name, 200)
        again = driver.get(f"/{name}", headers={"If-None-Match": answer.headers["etag"]})
        assert again.status_code == 304
    for name in ("page/nothing.js", "page/topology.html", "page/../calls.py", "page/uplot/../../snapshot.py"):
        assert driver.get(f"/{name}").status_code == 404


@pytest.fixture
def logs() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as made:  # for this user alone
        yield Path(made)


def test_logs_are_read_piece_by_piece(logs: Path) -> None:
    (logs / "count-0.log").write_text("one\ntwo\n")
    (logs / "secret.txt").write_text("key")
    (logs / "link.log").symlink_to("/etc/passwd")
    (logs / "folder.log").mkdir()
    os.mkfifo(logs / "pipe.log")
    assert [one["name"] for one in log_files.files(str(logs))] == ["count-0.log"]
    first = log_files.piece(str(logs), "count-0.log", None)
    assert (first["text"], first["begin"], first["end"]) == ("one\ntwo\n", 0, 8)
    with (logs / "count-0.log").open("a") as file:
        file.write("three")
    more = log_files.piece(str(logs), "count-0.log", first["end"], first["file"])
    assert (more["text"], more["begin"]) == ("three", 8)
    (logs / "count-0.log").rename(logs / "count-0.log.1")
    (logs / "count-0.log").write_text("a longer beginning of the next file\n")
    assert log_files.piece(str(logs), "count-0.log", more["end"], first["file"])["begin"] == 0
    for name in (
        "secret.txt",
        "link.log",
        "folder.log",
        "pipe.log",
        "../x.log",
        "",
        "count-0.log\0",
        "/etc/passwd",
    ):
        with pytest.raises(log_files.UnknownLogError):
            log_files.piece(str(logs), name, None)


def test_logs_are_searched(logs: Path) -> None:
    (logs / "count-0.log").write_text("one\nTwo\n")
    (logs / "count-0.log.1").write_text("two twos\n" * 3)
    found = log_files.matches(str(logs), "two")
    assert [(one["name"], one["begin"]) for one in found["lines"]] == [
        ("count-0.log", 4),
        *(("count-0.log.1", 9 * number) for number in range(3)),
    ]
    assert log_files.matches(str(logs), "TWO", "count-0.log")["lines"][0]["line"] == "Two"
    assert log_files.matches(str(logs), "") == {"lines": [], "more": False}
    (logs / "count-0.log").write_text("two\n" * 1000)
    assert log_files.matches(str(logs), "two")["more"]
    assert log_files.files(None) == log_files.files(str(logs / "gone")) == []


def test_a_long_log_is_cut_between_lines(logs: Path) -> None:
    (logs / "x.log").write_text("äöü 123456789\n" * 40_000)
    last = log_files.piece(str(logs), "x.log", None)
    assert last["text"].startswith("äöü") and last["end"] == last["bytes"]
    first = log_files.piece(str(logs), "x.log", 0)
    assert first["text"].endswith("\n") and "\ufffd" not in first["text"]
    assert 0 < first["end"] < first["bytes"]


# --- stormspark ui --------------------------------------------------------------------------------------------------------


class Browser:
    """Calls an ASGI application in one event loop."""

    def __init__(self, app: Starlette) -> None:
        self._client = httpx.AsyncClient(
            transport=httpx.ASGITransport(app, raise_app_exceptions=True), base_url="http://127.0.0.1:1234"
        )
        self._runner = asyncio.Runner()
        self.headers = self._client.headers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.run(self._client.aclose())
        self._runner.close()

    def get(self, path: str, **more: Any) -> httpx.Response:
        return self._runner.run(self._client.get(path, **more))

    def post(self, path: str, **more: Any) -> httpx.Response:
        return self._runner.run(self._client.post(path, **more))


@pytest.fixture
def links() -> Links:
    return Links()


@pytest.fixture
def ui(links: Links) -> Iterator[Browser]:
    with Browser(one_page(links)) as client:
        yield client


def sign_in(ui: Browser, links: Links) -> None:
    answer = ui.post("/session", headers={"Authorization": f"Bearer {links.once}"})
    ui.headers["Authorization"] = f"Bearer {answer.json()['token']}"


def test_nothing_is_told_without_the_token(ui: Browser, links: Links, words: Words) -> None:
    assert (
        ui.get("/").status_code
        == ui.get("/t/words/").status_code
        == ui.get("/page/list.js").status_code
        == 200
    )
    once = links.once
    for token in (None, "", "x", once):
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        for call in (
            "/api/v1/stormspark/topologies",
            "/t/words/api/v1/topology/summary",
            "/t/nobody/api/v1/topology/summary",
        ):
            answer = ui.get(call, headers=headers)
            assert (answer.status_code, "words-1" in answer.text) == (401, False)
        kill = ui.post(f"/t/words/api/v1/topology/{words.storm_id}/kill/0", headers=headers)
        assert kill.status_code == 401
    assert words.told == []
    assert ui.get(f"/session?once={once}").status_code == 405


def test_a_link_is_good_for_one_time(ui: Browser, links: Links) -> None:
    once = {"Authorization": f"Bearer {links.once}"}
    assert ui.post("/session").status_code == 401
    assert ui.post("/session", headers=once).status_code == 200
    assert ui.post("/session", headers=once).status_code == 401
    assert ui.post("/session", headers={"Authorization": f"Bearer {links.once}"}).status_code == 200


def test_calls_go_to_the_driver(ui: Browser, links: Links, words: Words) -> None:
    sign_in(ui, links)
    (listed,) = ui.get("/api/v1/stormspark/topologies").json()["topologies"]
    assert (listed["name"], listed["status"], listed["at"]) == ("words", "ACTIVE", "t/words/")
    assert ui.get("/t/words/api/v1/stormspark/topology").json()["id"] == words.storm_id
    assert ui.post(f"/t/words/api/v1/topology/{words.storm_id}/deactivate").json()["status"] == "success"
    assert words.told == ["deactivate"]
    missing = ui.get("/t/words/api/v1/topology/other%2F..%2F..")
    assert (missing.status_code, missing.json()["error"]) == (404, "404 Not Found")
    gone = ui.get("/t/nobody/api/v1/topology/summary")
    assert (gone.status_code, "this user runs no topology 'nobody'" in gone.json()["errorMessage"]) == (
        502,
        True,
    )
    large = ui.post(f"/t/words/api/v1/topology/{words.storm_id}/activate", content=b"x" * 1_000_001)
    assert large.status_code == 413


def test_two_of_one_name_have_two_pages(ui: Browser, links: Links, words: Words) -> None:
    sign_in(ui, links)
    other = Words()
    other.storm_id = "words-2-1795861999"
    server = serving(other)
    listed = ui.get("/api/v1/stormspark/topologies").json()["topologies"]
    assert {one["at"] for one in listed} == {"t/words-1-1795861973/", "t/words-2-1795861999/"}
    server.close()


def test_a_driver_that_is_gone(ui: Browser, links: Links, words: Words, folder: Path) -> None:
    sign_in(ui, links)
    assert ui.get("/t/words/api/v1/topology/summary").status_code == 200
    (file,) = folder.glob("*.json")
    file.write_text(file.read_text().replace(f'"pid": {os.getpid()}', '"pid": 999999999'))
    (listed,) = ui.get("/api/v1/stormspark/topologies").json()["topologies"]
    assert (listed["status"], listed["level"]) == ("DEAD", "bad")
    assert "has lost its driver, process 999999999" in listed["title"]
    assert ui.get("/t/words/api/v1/topology/summary").status_code == 502


# --- topologies that have ended ---------------------------------------------------------------------------------------------


def summary(words: Words) -> dict[str, Any]:
    subscriptions = [{"source": "lines", "stream": "default", "target": "count", "grouping": "shuffle"}]
    return {**words.statistics().as_json(), "subscriptions": subscriptions}


def test_the_summary_of_a_run_is_shown(links: Links, words: Words, tmp_path: Path) -> None:
    words.counters = {words.plan.components["count"].tasks[0]: TaskCounters(executed=600, failed=3, errors=2)}
    file = tmp_path / "run.json"
    file.write_text(json.dumps(summary(words)))
    found = read_finished(file)
    assert found.snapshot["verdict"]["level"] == "slow"
    assert [one["text"] for one in found.snapshot["verdict"]["reasons"]] == ["count: 2 errors"]
    assert [one["per_s"] for one in found.snapshot["edges"]] == [10.0]
    assert found.snapshot["progress"]["executed_per_s"] == 10.0
    assert [one["id"] for one in found.snapshot["graph"]["boxes"]] == ["lines", "count"]
    with Browser(one_page(links, {"run": found})) as ui:
        sign_in(ui, links)
        listed = ui.get("/api/v1/stormspark/topologies").json()["topologies"]
        assert [one["status"] for one in listed] == ["ACTIVE", "ENDED"]
        here = "/t/run/api/v1/stormspark/topology"
        assert ui.get(here).json() == {"id": "run", "name": "words", "finished": True}
        for call in ("", "/history?component=count", "/errors", "/tasks", "/stories", "/commits", "/logs"):
            assert (call, ui.get(f"{here}/run{call}").status_code) == (call, 200)
        assert ui.get(f"{here}/run/log").status_code == 404
        assert ui.post("/t/run/api/v1/topology/run/kill/0").status_code == 404


def test_a_page_that_was_saved_is_shown(driver: httpx.Client, words: Words, tmp_path: Path) -> None:
    file = tmp_path / "saved.json"
    saved = {"stormspark_page": 1, "snapshot": now(driver, words), "history": {"at": [1.0]}, "errors": []}
    file.write_text(json.dumps(saved))
    found = read_finished(file)
    assert (found.name, found.history, found.snapshot["actions"]) == ("words", {"at": [1.0]}, [])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", r"is no JSON \(.*\): give a file that `stormspark run --json FILE` has written"),
        ("[]", "is no summary of a run"),
        ("{}", "is no summary of a run"),
        ('{"topology": "x", "components": 3}', "is no summary of a run"),
        ('{"stormspark_page": 99, "snapshot": {}, "history": {}, "errors": []}', "another version"),
    ],
)
def test_other_files_are_refused(content: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "x.json"
    file.write_text(content)
    with pytest.raises(UnreadablePageError, match=said):
        read_finished(file)
    with pytest.raises(UnreadablePageError, match="No such file"):
        read_finished(tmp_path / "gone.json")


def test_a_graph_that_is_too_large_is_not_drawn(folder: Path) -> None:
    running = Words("many")
    builder = TopologyBuilder()
    builder.set_spout("lines", FixedTupleSpout([], Fields("line")))
    for number in range(250):
        builder.set_bolt(f"count{number}", TestWordCounter()).shuffle_grouping("lines")
    running.plan = plan_topology(builder.create_topology("many"), {})
    server = serving(running)
    with httpx.Client(
        transport=httpx.HTTPTransport(uds=entry_of("many").socket), base_url="http://driver"
    ) as driver:
        said = now(driver, running)
    server.close()
    assert (said["graph"], len(said["components"]), len(said["edges"])) == (None, 251, 250)
