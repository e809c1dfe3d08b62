"""A driver that is reached by its Unix socket, and the commands that reach it."""

from __future__ import annotations

import json
import os
import socket
import stat
import subprocess
import sys
import threading
import time
from functools import cached_property
from pathlib import Path
from typing import Any

import httpx
import pytest
from click.testing import CliRunner

from stormspark import Fields, TopologyBuilder
from stormspark.cli import main
from stormspark.driver.error_log import TaskError
from stormspark.driver.event_sampling import EventSampling
from stormspark.driver.source_lag import PartitionLag
from stormspark.errors import StatusError, TopologyNotAliveError
from stormspark.metrics import Histogram, TaskCounters
from stormspark.metrics.windows import ALL_TIME
from stormspark.operations import connections
from stormspark.operations.client import Client
from stormspark.operations.facts import Watcher, WorkerPlace
from stormspark.operations.registry import Registration, entries, entry_of
from stormspark.operations.server import Server, serve
from stormspark.operations.status import Status
from stormspark.plan import plan_topology
from stormspark.plan.rebalance import rebalanced
from stormspark.testing import FixedTupleSpout, TestWordCounter
from tests.unit.operations.figures import Figures
from tests.unit.operations.test_controls import Running
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("folder")


class Words(Figures, Running):
    """A topology with a plan, which runs nothing."""

    storm_id = "words-1-1795861973"
    log_folder: str | None = None

    def __init__(self, name: str = "words", conf: dict[str, object] | None = None) -> None:
        super().__init__()
        self.counters: dict[int, TaskCounters] = {}
        self.reported: dict[str, tuple[TaskError, ...]] = {}
        builder = TopologyBuilder()
        builder.set_spout("lines", FixedTupleSpout([], Fields("line")), parallelism=2)
        builder.set_bolt("count", TestWordCounter(), parallelism=3).set_num_tasks(5).shuffle_grouping("lines")
        self.plan = plan_topology(builder.create_topology(name), {"topology.workers": 2, **(conf or {})})
        self.name = name

    def by_task(self) -> dict[int, TaskCounters]:
        return self.counters

    def errors(self) -> dict[str, tuple[TaskError, ...]]:
        return self.reported

    @cached_property
    def sampling(self) -> EventSampling:
        return EventSampling()

    def lags(self) -> dict[str, dict[str, dict[str, PartitionLag]]]:
        return {"lines": {"topic": {"0": PartitionLag(3, 10)}}}

    def worker_places(self) -> list[WorkerPlace]:
        return [WorkerPlace(0, "one", 17, time.time() - 90.5), WorkerPlace(1, "", 0, 0.0)]


def serving(running: Words) -> Server:
    server = serve(running, engine="local", active=True, checkpoint="/data/words")
    assert server is not None
    return server


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, arguments)
    return result.exit_code, result.output


def test_what_happened_within_a_window_is_known_over_a_rebalance(words: Words) -> None:
    """J3, J13: tasks may have other ids then."""
    lines = words.plan.components["lines"].tasks
    words.counters = {lines[0]: TaskCounters(emitted=10), lines[1]: TaskCounters(emitted=30)}
    now = [0.0]
    watcher = Watcher(words, lambda: Status.ACTIVE, "me", clock=lambda: now[0])
    now[0] = 300.0
    words.counters = {lines[0]: TaskCounters(emitted=11), lines[1]: TaskCounters(emitted=32)}
    watcher.look()
    before = words.plan
    words.plan = rebalanced(before, executors={"count": 7})
    again = words.plan.components["lines"].tasks
    assert again != lines
    words.counters = {again[0]: TaskCounters(emitted=15), again[1]: TaskCounters(emitted=37)}
    now[0] = 620.0
    facts = watcher.facts()
    assert [facts.of("600", [task]).emitted for task in again] == [5, 7]
    assert [facts.of(ALL_TIME, [task]).emitted for task in again] == [15, 37]
    words.plan = before
    words.counters = {lines[0]: TaskCounters(emitted=15), lines[1]: TaskCounters(emitted=38)}
    facts = watcher.facts()
    assert [facts.of("600", [task]).emitted for task in lines] == [5, 8], "it was taken back"
    watcher.close()


@pytest.mark.parametrize("body", ['{"rebalanceOptions": {"numWorkers": 1e999}}', "[" * 100_000])
def test_a_body_that_no_program_would_send_is_refused_as_any_other(words: Words, body: str) -> None:
    entry = entry_of("words")
    with httpx.Client(transport=httpx.HTTPTransport(uds=entry.socket)) as client:
        answer = client.post(f"http://driver/api/v1/topology/{entry.id}/rebalance/0", content=body)
    assert answer.status_code == 400
    assert "the body must be JSON such as" in answer.json()["errorMessage"]
    assert words.told == []


def rebalance_with(body: bytes) -> httpx.Response:
    entry = entry_of("words")
    with httpx.Client(transport=httpx.HTTPTransport(uds=entry.socket)) as client:
        return client.post(f"http://driver/api/v1/topology/{entry.id}/rebalance/0", content=body)


def test_a_rebalance_is_asked_for_as_in_the_user_interface_of_storm(words: Words) -> None:  # J8
    client = Client(entry_of("words"))
    for body in ({"rebalanceOptions": {"executors": {"count": "many"}}}, {"rebalanceOptions": [3]}):
        with pytest.raises(StatusError, match=r'the body must be JSON such as {"rebalanceOptions": '):
            client.do("rebalance/0", body)
    for text in (b'{"rebalanceOptions": {"numWorkers": 1e999}}', b"[" * 90_000):
        assert rebalance_with(text).status_code == 400
    assert rebalance_with(b" " * 200_000).status_code == 413
    with pytest.raises(StatusError, match="can't be rebalanced: there is no component 'x'"):
        client.do("rebalance/0", {"rebalanceOptions": {"numWorkers": 1, "executors": {"x": 1}}})
    assert words.told == []
    client.do("rebalance/0", {"rebalanceOptions": {"numWorkers": 3}})
    wait_for(lambda: "activate" in words.told)
    assert words.told == ["deactivate", "lay out 3", "activate"]
    client.do("rebalance/default")
    assert client.summary()["status"] == "REBALANCING"


def test_the_summary_has_the_fields_of_storm(words: Words) -> None:
    summary = Client(entry_of("words")).summary()
    assert summary["uptimeSeconds"] >= 0
    left_out = {"uptime", "uptimeSeconds", "owner", "schedulerInfo"}
    left_out |= {key for key in summary if key.startswith(("requested", "assigned"))} | {
        "stormVersion",
        "topologyVersion",
    }
    assert {key: summary[key] for key in summary.keys() - left_out} == {
        "id": "words-1-1795861973",
        "encodedId": "words-1-1795861973",
        "name": "words",
        "status": "ACTIVE",
        "tasksTotal": 7,
        "workersTotal": 2,
        "executorsTotal": 5,
        "replicationCount": 1,
    }


def test_the_page_of_a_topology_has_the_figures_of_storm(words: Words) -> None:
    lines, count = words.plan.components["lines"].tasks, words.plan.components["count"].tasks
    spent = Histogram()
    spent.add(0.2, 3)
    words.counters = {
        lines[0]: TaskCounters(emitted=10, transferred=10, acked=7, failed=1, latency=spent),
        count[0]: TaskCounters(emitted=4, executed=10, acked=9, failed=1, latency=spent),
        count[4]: TaskCounters(executed=2, acked=2),
    }
    words.reported = {"count": (TaskError(time.time() - 5.5, "count", count[0], 0, "x" * 300),)}
    with httpx.Client(transport=httpx.HTTPTransport(uds=entry_of("words").socket)) as client:
        url = f"http://driver/api/v1/topology/{words.storm_id}"
        page = client.get(url, params={"window": "600"}).json()
        workers = client.get(f"http://driver/api/v1/topology-workers/{words.storm_id}").json()
        assert client.get(url, params={"window": "7"}).json()["windowHint"] == "All time"
    assert (page["window"], page["windowHint"], page["msgTimeout"]) == ("600", "10m 0s", 30)
    assert page["topologyStats"][0] == {
        "windowPretty": "10m 0s",
        "window": "600",
        "emitted": 14,
        "transferred": 10,
        "completeLatency": "200.000",
        "acked": 7,
        "failed": 1,
    }
    assert [one["window"] for one in page["topologyStats"]] == ["600", "10800", "86400", ":all-time"]
    (spout,), (bolt,) = page["spouts"], page["bolts"]
    assert (spout["spoutId"], spout["executors"], spout["tasks"], spout["emitted"]) == ("lines", 2, 2, 10)
    assert (spout["acked"], spout["failed"], spout["completeLatency"]) == (7, 1, "200.000")
    assert (spout["lastError"], spout["errorPort"]) == ("", None)
    assert (bolt["boltId"], bolt["executors"], bolt["tasks"], bolt["executed"]) == ("count", 3, 5, 12)
    # The busiest executor was in execute for 0.6 s; the topology runs for less than a second, which counts as one.
    assert (bolt["executeLatency"], bolt["capacity"]) == ("200.000", "0.600")
    assert bolt["lastError"] == "x" * 200
    assert (bolt["errorHost"], bolt["errorPort"], bolt["errorLapsedSecs"]) == ("one", 6700, 5)
    up, starting = page["workers"]
    assert (up["host"], up["port"], up["uptime"]) == ("one", 6700, "1m 30s")
    assert up["componentNumTasks"] == {"lines": 1, "count": 3}
    assert (starting["host"], starting["uptime"]) == ("", "")
    assert workers["hostPortList"] == [{"host": "one", "port": 6700}, {"host": "", "port": 6701}]


def test_a_driver_looks_like_a_cluster(words: Words) -> None:
    """J8: a Prometheus exporter for Storm reads these four, and adds up what they say."""
    with httpx.Client(transport=httpx.HTTPTransport(uds=entry_of("words").socket)) as client:

        def get(call: str) -> Any:
            return client.get(f"http://driver/api/v1/{call}/summary").raise_for_status().json()

        cluster, (supervisor,), (nimbus,) = (
            get("cluster"),
            get("supervisor")["supervisors"],
            get("nimbus")["nimbuses"],
        )
        assert get("history") == {"topo-history": [words.storm_id]}
    assert (cluster["supervisors"], cluster["topologies"], cluster["tasksTotal"]) == (1, 1, 7)
    assert (cluster["slotsTotal"], cluster["slotsUsed"], cluster["slotsFree"]) == (2, 1, 1)
    assert (cluster["executorsTotal"], cluster["totalMem"], cluster["cpuAssignedPercentUtil"]) == (
        5,
        0.0,
        "0.0",
    )
    assert (supervisor["host"], supervisor["slotsUsed"], supervisor["uptime"]) == ("one", 1, "1m 30s")
    assert (nimbus["host"], nimbus["status"]) == (socket.gethostname(), "Leader")


def test_it_is_for_its_user_alone(words: Words, folder: Path) -> None:
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    modes = {path.suffix: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {".json": 0o600, ".sock": 0o600}


def test_it_leaves_nothing(folder: Path) -> None:
    serving(Words()).close()
    assert list(folder.iterdir()) == []
    assert run("list") == (0, "this user runs no topology on this host\n")


def asks_and_does_not_read(server: Server) -> socket.socket:
    """Ask for an answer that no buffer of the system holds."""
    one = socket.socket(socket.AF_UNIX)
    one.connect(server._registration.socket)
    one.send(f"GET /api/v1/topology/{Words.storm_id}/errors HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    return one


@pytest.fixture
def unread(folder: Path) -> Words:
    running = Words()
    running.reported = {"count": tuple(TaskError(1.0, "count", 3, 0, "x" * 500_000) for _ in range(10))}
    return running


def test_its_end_does_not_wait_for_somebody_who_does_not_read(
    unread: Words, caplog: pytest.LogCaptureFixture
) -> None:
    """A program that runs one topology after another would keep a thread of each."""
    server = serving(unread)
    (api,) = server._servers
    with asks_and_does_not_read(server):
        wait_for(lambda: any(one.cycle for one in api.server_state.connections))  # type: ignore[union-attr]
        server.close()
        wait_for(lambda: not server._thread.is_alive())
    assert caplog.text == ""


def test_somebody_who_does_not_read_is_not_waited_for_for_ever(
    unread: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "_IDLE_SECS", 0.02)
    server = serving(unread)
    (api,) = server._servers
    with asks_and_does_not_read(server):
        wait_for(lambda: any(one.cycle for one in api.server_state.connections))  # type: ignore[union-attr]
        wait_for(lambda: not api.server_state.connections)
    server.close()


def test_its_end_leaves_no_thread_for_levels_that_fall_back(folder: Path) -> None:
    """The thread would keep the ended topology for as long as the level was to last."""
    server = serving(Words())
    run("log-level", "words", "-l", "my.bolt=DEBUG:3600")

    def waits() -> bool:
        return any(one.name == "log levels fall back" for one in threading.enumerate())

    assert waits()
    server.close()
    wait_for(lambda: not waits())


def test_commands_change_the_state(words: Words) -> None:
    assert run("deactivate", "words") == (0, "words-1-1795861973 is inactive\n")
    assert "INACTIVE" in run("list")[1]
    assert run("activate", words.storm_id) == (0, "words-1-1795861973 is active\n")
    code, said = run("kill", "words", "-w", "600", "--json")
    assert (code, json.loads(said)["topologyOperation"]) == (0, "kill")
    assert json.loads(run("list", "--json")[1])["topologies"][0]["status"] == "KILLED"
    code, said = run("activate", "words")
    assert (code, "topology 'words' is KILLED: activate is not possible any more" in said) == (2, True)
    assert run("kill", "words", "-w", "0")[0] == 0
    assert words.ended.wait(10)
    assert words.told == ["deactivate", "activate", "deactivate", "stop"]


def test_a_kill_waits_for_the_message_timeout(words: Words) -> None:
    assert run("kill", "words") == (0, "words-1-1795861973 is killed, and ends after its message timeout\n")


def test_unknown_names(words: Words) -> None:
    code, said = run("kill", "wordz")
    assert (code, said) == (
        2,
        "Error: this user runs no topology 'wordz' on this host; did you mean 'words'?\n",
    )
    assert (
        run("activate", "else")[1]
        == "Error: this user runs no topology 'else' on this host; there is words\n"
    )


def test_two_of_one_name_are_told_apart_by_their_ids(words: Words) -> None:
    other = Words()
    other.storm_id = "words-2-1795861999"
    server = serving(other)
    code, said = run("deactivate", "words")
    assert code == 2
    assert "say which one by its id, one of words-1-1795861973, words-2-1795861999" in said
    assert run("deactivate", "words-2-1795861999")[0] == 0
    assert (words.told, other.told) == ([], ["deactivate"])
    server.close()


@pytest.mark.parametrize("wait", ["-1", "soon", "nan", "inf"])
def test_a_wait_is_a_number_of_seconds(words: Words, wait: str) -> None:
    with pytest.raises(StatusError, match=f"the wait is '{wait}', but it must be a number of seconds"):
        Client(entry_of("words")).do(f"kill/{wait}")
    assert words.told == []


def test_errors_have_the_shape_of_storm(words: Words) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(uds=entry_of("words").socket)) as client:
        answer = client.post("http://driver/api/v1/topology/other-1-1/activate")
        assert answer.status_code == 404
        assert answer.json() == {
            "error": "404 Not Found",
            "errorMessage": "no topology 'other-1-1' runs here, but 'words-1-1795861973'",
        }
        assert client.get("http://driver/api/v1/nothing").json()["error"] == "404 Not Found"
        assert client.get("http://driver/api/v1/topology/words-1-1795861973/activate").status_code == 405


def test_a_driver_that_was_killed_is_listed_as_dead_until_somebody_takes_it_off(folder: Path) -> None:
    program = (
        "import sys, time; from stormspark.operations import registry; from pathlib import Path;"
        f"registry.registry_folder = lambda: Path({str(folder)!r});"
        "one = registry.Registration('words'); one.enter('words-1-1', 'spark', time.time(), '/data/words', None);"
        "print('there', flush=True); time.sleep(60)"
    )
    driver = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    assert driver.stdout is not None
    assert driver.stdout.readline() == b"there\n"
    driver.kill()
    driver.wait()
    driver.stdout.close()
    code, said = run("list")
    assert code == 0
    assert "words  DEAD" in said
    assert (
        f"process {driver.pid}, has ended without a word, as after kill -9; its checkpoint is /data/words"
        in said
    )
    with pytest.raises(TopologyNotAliveError, match=f"its driver, process {driver.pid}, has ended"):
        Client(entry_of("words")).do("activate")
    assert run("kill", "words")[1] == "words-1-1 had lost its driver already: it is off the list now\n"
    assert list(folder.iterdir()) == []


def test_the_next_one_of_the_name_takes_a_dead_one_off_the_list(folder: Path) -> None:
    Registration("words").enter("words-0-1", "local", time.time(), None, None)
    (file,) = folder.glob("*.json")
    file.write_text(file.read_text().replace(f'"pid": {os.getpid()}', '"pid": 999999999'))
    Registration("other")
    assert [one.id for one in entries()] == ["words-0-1"]
    Registration("words")
    assert entries() == []


def test_a_dead_one_of_last_week_is_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may have run for months: the week begins when somebody has found it dead."""
    Registration("other").enter("other-0-1", "local", time.time() - 90 * 86_400, None, None)
    for file in folder.glob("*.json"):
        file.write_text(file.read_text().replace(f'"pid": {os.getpid()}', '"pid": 999999999'))
    now = time.time()
    for days, known in ((0, ["other-0-1"]), (6, ["other-0-1"]), (8, [])):
        monkeypatch.setattr(time, "time", lambda days=days: now + days * 86_400)
        Registration("words")
        assert [one.id for one in entries()] == known


def test_a_damaged_file_is_nobody(words: Words, folder: Path) -> None:
    (folder / "1-x.json").write_text("{")
    (folder / "2-x.json").write_text('{"topology": "x"}')
    assert [one.topology for one in entries()] == ["words"]


def test_a_driver_that_does_not_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormspark.operations.client._TIMEOUT_SECS", 0.2)
    registration = Registration("words")
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(registration.socket)
        silent.listen()
        registration.enter("words-1-1", "spark", time.time(), None, None)
        assert "no answer" in run("list")[1]
        assert "has not answered within 0.2 s" in run("activate", "words")[1]


def test_a_folder_of_somebody_else_is_not_used(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir(mode=0o777)
    folder.chmod(0o777)
    (folder / "file").touch()
    assert serve(Words(), engine="local", active=True, checkpoint=None) is None
    assert "`stormspark list` and `kill` will not find this topology" in caplog.text
    assert run("list")[0] == 2
