"""What commands ask of a driver beyond Storm's calls: errors, what is emitted, levels of loggers, restarts (J1, J6, J22)."""

from __future__ import annotations

import json
import logging
import os
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from stormspark.cli.monitor import monitor
from stormspark.cli.reach import Reach
from stormspark.driver.error_log import TaskError
from stormspark.errors import StatusError
from stormspark.metrics import TaskCounters
from stormspark.operations.log_levels import LogLevels
from stormspark.operations.registry import entry_of
from stormspark.worker.host.logger_levels import LoggerLevels
from tests.unit.operations.test_server import Words, run, serving
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def words(folder: Path) -> Iterator[Words]:
    running = Words(conf={"stormspark.ui.port": 0})
    server = serving(running)
    yield running
    server.close()


def with_errors(words: Words) -> None:
    count = words.plan.components["count"].tasks
    raised = '/app/words.py:7: Traceback (most recent call last):\n  File "x"\nValueError: no \x1b[31mword'
    words.reported = {
        "count": (
            TaskError(200.0, "count", count[1], 1, raised),
            TaskError(100.0, "count", count[0], 0, "first"),
        ),
        "lines": (TaskError(150.0, "lines", words.plan.components["lines"].tasks[0], 0, "between"),),
    }


def test_the_last_errors_come_in_the_order_of_their_times(words: Words) -> None:
    with_errors(words)
    code, said = run("errors", "words")
    assert code == 0
    first, second, last = said.splitlines()
    assert "count[0] in worker 0 on one: first" in first
    assert "lines[0]" in second
    assert "count[1] in worker 1: /app/words.py:7: ValueError: no" in last
    assert "\x1b" not in said
    assert [
        one["taskName"] for one in json.loads(run("errors", "words", "lines", "--json")[1])["errors"]
    ] == ["lines[0]"]


def test_a_traceback_is_printed_in_full_on_request(words: Words) -> None:
    with_errors(words)
    assert '  File "x"' in run("errors", "words", "count", "--full")[1]


def test_an_error_of_a_task_that_a_rebalance_has_removed(words: Words) -> None:
    words.reported = {"count": (TaskError(200.0, "count", 99, 0, "gone"),)}
    assert "count in worker 0 on one: gone" in run("errors", "words")[1]


def test_errors_of_what_is_not_there(words: Words) -> None:
    assert run("errors", "words")[1] == f"{words.storm_id} has reported no errors\n"
    code, said = run("errors", "words", "no/such?component=count")
    assert (
        code,
        "topology 'words' has no component 'no/such?component=count'; it has 'lines', 'count'" in said,
    ) == (2, True)
    assert run("errors", "wrods") == (
        2,
        "Error: this user runs no topology 'wrods' on this host; did you mean 'words'?\n",
    )


def test_a_monitor_prints_the_lines_of_storm(words: Words) -> None:
    words.counters = {words.plan.components["lines"].tasks[0]: TaskCounters(emitted=10, transferred=7)}
    code, said = run("monitor", "words", "-m", "lines", "-w", "transferred", "--times", "2", "-i", "0.1")
    assert code == 0
    heading, first, second = (line.split("\t") for line in said.splitlines())
    assert heading[4:] == ["time-diff ms", "transferred", "throughput (Kt/s)"]
    assert first == ["words", "lines", "2", "default", "0", "7", "0.0"]
    assert second[5:] == ["0", "0.0"]


def test_a_monitor_without_a_component_lists_them(words: Words) -> None:
    assert "Please use -m to specify one component" in run("monitor", "words")[1]
    assert (
        "topology 'words' has no component 'line'; did you mean 'lines'?"
        in run("monitor", "words", "-m", "line")[1]
    )
    assert (
        "component 'lines' has no stream 'other'; it has 'default'"
        in run("monitor", "words", "-m", "lines", "-s", "other")[1]
    )


def test_a_monitor_ends_at_ctrl_c(words: Words) -> None:
    def interrupted(secs: float) -> None:
        raise KeyboardInterrupt

    reach = Reach("words")
    assert monitor(reach, 4.0, "lines", "default", "emitted", None, as_json=True, sleep=interrupted) == 0


def test_workers_are_restarted(words: Words) -> None:
    assert run("restart", "words", "1") == (0, f"worker 1 of {words.storm_id} starts anew\n")
    assert run("restart", "words")[0] == 0
    assert words.restarted == [[1], [0, 1]]
    assert "there is no worker '2': 'words' has the workers 0 to 1" in run("restart", "words", "2")[1]
    for hostile in ("-1", "٢", "1e0", "9" * 5000):
        with httpx.Client(transport=httpx.HTTPTransport(uds=entry_of("words").socket)) as client:
            assert (
                client.post(f"http://driver/api/v1/topology/{words.storm_id}/restart/{hostile}").status_code
                == 404
            )
    run("kill", "words", "-w", "1000")
    assert run("restart", "words")[0] == 2
    assert len(words.restarted) == 2


def test_levels_of_loggers_are_those_of_storm(words: Words) -> None:
    code, said = run("log-level", "words", "-l", "my.bolt=debug:60", "-l", "ROOT=OFF", "--json")
    assert code == 0
    levels = json.loads(said)["namedLoggerLevels"]
    until = levels["my.bolt"].pop("timeout_epoch")
    assert abs(until / 1000 - time.time() - 60) < 30
    assert levels == {
        "my.bolt": {"target_level": "DEBUG", "reset_level": "INFO", "timeout": 60},
        "root": {"target_level": "OFF", "reset_level": "INFO", "timeout": 0, "timeout_epoch": 0},
    }
    assert words.levels == [{"my.bolt": 10, "root": 60}]
    assert run("log-level", "words", "-r", "my.bolt", "-r", "root") == (
        0,
        "no command has set the level of a logger\n",
    )
    assert words.levels[-1] == {}


@pytest.mark.parametrize(
    ("option", "reason"),
    [
        ("my.bolt", "expected LOGGER=LEVEL"),
        ("=DEBUG", "expected LOGGER=LEVEL"),
        ("a=LOUD", "there is no level 'LOUD'"),
        ("a=DEBUG:soon", "expected LOGGER=LEVEL"),
        ("a=DEBUG:-1", "expected LOGGER=LEVEL"),
        ("a=DEBUG:99999999999", "expected a whole number of seconds"),
        ("x" * 201 + "=DEBUG", "expected 1 to 200 characters"),
        ("a\nb=DEBUG", "expected 1 to 200 characters"),
    ],
)
def test_levels_that_can_not_be(words: Words, option: str, reason: str) -> None:
    code, said = run("log-level", "words", "-l", option)
    assert (code, reason in " ".join(said.split())) == (2, True), said
    assert words.levels == []


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[1]",
        b"{}",
        b'{"namedLoggerLevels": [1]}',
        b'{"namedLoggerLevels": {"a": 1}}',
        b"[" * 90_000,
        b"x" * 200_000,
    ]
    + [
        json.dumps({"namedLoggerLevels": {"a": one}}).encode()
        for one in (
            {"target_level": 1},
            {"target_level": "DEBUG", "timeout": True},
            {"target_level": "DEBUG", "timeout": 1.5},
        )
    ],
)
def test_bodies_that_can_not_be(words: Words, body: bytes) -> None:
    with httpx.Client(transport=httpx.HTTPTransport(uds=entry_of("words").socket)) as client:
        answer = client.post(f"http://driver/api/v1/topology/{words.storm_id}/logconfig", content=body)
    assert answer.status_code in (400, 413)
    assert answer.json()["errorMessage"]
    assert words.levels == []


def test_a_level_falls_back_by_itself() -> None:
    applied: list[Mapping[str, int]] = []
    now = [1000.0]
    levels = LogLevels(lambda levels: applied.append(dict(levels)), "INFO", wall_clock=lambda: now[0])
    levels.change(
        {"a": {"target_level": "DEBUG", "timeout": 1000}, "b": {"target_level": "ERROR", "timeout": 0}}
    )
    now[0] = 1999.0
    levels.fall_back()
    now[0] = 2000.0
    levels.fall_back()
    assert applied == [{"a": 10, "b": 40}, {"a": 10, "b": 40}, {"b": 40}]


def test_not_too_many_loggers() -> None:
    levels = LogLevels(lambda levels: None, "INFO")
    wanted: dict[str, Any] = {str(number): {"target_level": "INFO"} for number in range(101)}
    with pytest.raises(StatusError, match="more than 100 loggers"):
        levels.change(wanted)
    assert levels.as_json() == {"namedLoggerLevels": {}}


def test_a_logger_whose_level_the_code_changed_meanwhile_keeps_that() -> None:
    logger, levels = logging.getLogger("changed.meanwhile"), LoggerLevels()
    levels.apply({"changed.meanwhile": logging.DEBUG})
    logger.setLevel(logging.ERROR)
    levels.apply({})
    assert logger.level == logging.ERROR


def test_by_url_and_token(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    entry = entry_of("words")
    assert entry.url is not None
    assert entry.token is not None
    monkeypatch.setenv("STORMSPARK_UI_TOKEN", entry.token)
    assert words.storm_id in run("list", "--url", entry.url)[1]
    assert run("deactivate", "words", "--url", entry.url.removesuffix("/api/v1")) == (
        0,
        f"{words.storm_id} is inactive\n",
    )
    assert run("kill", "other", "--url", entry.url)[0] == 2
    assert words.told == ["deactivate"]
    code, said = run("activate", "--url", entry.url, "--token", "wrong")
    assert (code, "takes another token: set STORMSPARK_UI_TOKEN to that of the driver" in said) == (2, True)
    assert "is no URL of a driver" in run("list", "--url", "words:80")[1]
    with socket.socket() as silent:  # it is bound, and listens to nobody
        silent.bind(("127.0.0.1", 0))
        assert "nobody answers" in run("list", "--url", f"http://127.0.0.1:{silent.getsockname()[1]}")[1]
    assert run("kill")[0] == 2


def test_the_figures_do_nothing_to_a_terminal(words: Words) -> None:
    words.reported = {"count": (TaskError(100.0, "count", 99, 0, "no \x1b[31mword"),)}
    assert r"count: no \x1b[31mword;" in run("stats", "words")[1]


def test_a_program_hears_where_the_driver_is(words: Words) -> None:
    entry = entry_of("words")
    (found,) = json.loads(run("list", "--json")[1])["topologies"]
    assert found["id"] == words.storm_id
    assert (found["socket"], found["pid"], found["url"]) == (entry.socket, os.getpid(), entry.url)
    assert (found["logs"], found["checkpoint"]) == (entry.log_folder, entry.checkpoint)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion(shell: str) -> None:
    code, said = run("completion", shell)
    assert (code, "_STORMSPARK_COMPLETE" in said) == (0, True)


def test_the_figures_of_a_topology_and_of_a_component(words: Words) -> None:
    with_errors(words)
    words.counters = {words.plan.components["lines"].tasks[0]: TaskCounters(emitted=1234, acked=7)}
    code, said = run("stats", "words")
    assert code == 0
    assert "words: ACTIVE, up" in said
    assert "1,234" in said
    error = r"/app/words.py:7: ValueError: no \x1b[31mword"
    assert f"last error of count: {error}; `stormspark errors words count` shows more" in said
    assert json.loads(run("stats", "words", "lines", "--json", "--window", "600")[1])["spoutId"] == "lines"
    assert (
        "topology 'words' has no component 'line'; did you mean 'lines'?" in run("stats", "words", "line")[1]
    )
    assert run("status", "words")[0] == 2


@pytest.mark.parametrize("command", ["worker-uptime", "worker_uptime", "slot-usage", "slot_usage"])
def test_where_the_workers_are(words: Words, command: str) -> None:
    code, said = run(command, "words")
    assert (code, "one" in said) == (0, True)
    assert run(command, "words", "--json")[1].startswith('{"')


def test_the_spellings_of_storm(words: Words) -> None:
    assert run("get-errors", "words")[0] == run("set_log_level", "words", "-l", "ROOT=INFO")[0] == 0


def test_a_command_rebalances(words: Words) -> None:  # J1, J3
    code, said = run("rebalance", "words", "-w", "0", "-n", "3", "-e", "count=5", "-e", "lines=1")
    assert (code, said) == (
        0,
        f"{words.storm_id} is REBALANCING: its workers start anew after 0 s\n",
    )
    wait_for(lambda: "activate" in words.told)
    assert words.told == ["deactivate", "lay out 3", "activate"]
    assert [words.plan.components[name].parallelism for name in ("lines", "count")] == [1, 5]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["-e", "count"], "expected COMPONENT=N with a whole number, such as count=8, got 'count'"),
        (["-e", "count=-1"], "expected COMPONENT=N with a whole number, such as count=8, got 'count=-1'"),
        (["-e", "count=1", "-e", "count=2"], "'count' has two numbers of executors, 1 and 2: give one"),
        (["-e", "cuont=2"], "there is no component 'cuont'; did you mean 'count'?"),
        (["-e", "count=0"], "the number of executors of 'count' must be positive, got 0"),
        (["-n", "0"], "0 is not in the range"),
        (["-w", "-1"], "-1.0 is not in the range"),
        (["-n", "99"], "99 workers are asked for, but there are only 5 executors"),
    ],
)
def test_what_can_not_be_rebalanced_is_refused(words: Words, arguments: list[str], problem: str) -> None:
    code, said = run("rebalance", "words", *arguments)
    assert (code, words.told) == (2, [])
    assert problem in said
