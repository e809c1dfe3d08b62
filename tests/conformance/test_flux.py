"""Topologies that are YAML do on every engine what those written in Python do."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stormspark import flux

Run = Callable[..., Any]

PARTS = "tests.conformance.components"
NUMBERS = f"- {{id: numbers, className: {PARTS}.Numbers, constructorArgs: [60], parallelism: 2}}"
#: A bolt in Storm's multilang protocol, without any library.
CHILD = """
import json, os, sys

def read():
    lines = []
    while (line := sys.stdin.readline()) != "end\\n":
        if not line:
            sys.exit()
        lines.append(line)
    return json.loads("".join(lines))

def say(**message):
    sys.stdout.write(json.dumps(message) + "\\nend\\n")
    sys.stdout.flush()

hello = read()
open(os.path.join(hello["pidDir"], str(os.getpid())), "w").close()
say(pid=os.getpid())
own = hello["conf"]["my.offset"]
while True:
    message = read()
    if isinstance(message, list):
        continue
    if message["stream"] == "__heartbeat":
        say(command="sync")
        continue
    [number] = message["tuple"]
    stream = "odd" if number % 2 else "default"
    say(command="emit", tuple=[number + own], stream=stream, anchors=[message["id"]], need_task_ids=False)
    say(command="ack", id=message["id"])
"""


@pytest.fixture
def load(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Depends on ``run``, because the session of Spark adds to the path, too, and for all tests."""
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))

    def load_text(text: str) -> Any:
        file = tmp_path / "topology.yaml"
        file.write_text(text)
        return flux.load(file)

    return load_text


def test_components_groupings_and_sizes(run: Run, load: Callable[[str], Any]) -> None:
    """K13-K16, K23: objects with references, each kind of grouping, tasks, and a message timeout nobody needs."""
    done = run(
        load(f"""
name: groupings
config: {{topology.acker.executors: 1, topology.message.timeout.secs: 30}}
components:
- {{id: three, className: java.lang.Integer, constructorArgs: ['3']}}
spouts:
{NUMBERS}
bolts:
- {{id: repeat, className: {PARTS}.Repeat, constructorArgs: [ref: three], parallelism: 2}}
- {{id: by-field, className: {PARTS}.Record, parallelism: 2, numTasks: 4}}
- {{id: everywhere, className: {PARTS}.Record, parallelism: 3}}
- {{id: first, className: {PARTS}.Record, parallelism: 3}}
- {{id: one, className: {PARTS}.Record, parallelism: 2}}
- {{id: nobody, className: {PARTS}.Record}}
streams:
- {{from: numbers, to: repeat, grouping: {{type: SHUFFLE}}}}
- {{from: repeat, to: by-field, grouping: {{type: FIELDS, args: [n]}}}}
- {{from: numbers, to: everywhere, grouping: {{type: ALL}}}}
- from: numbers
  to: first
  grouping: {{type: CUSTOM, customClass: {{className: org.apache.storm.testing.NGrouping, constructorArgs: [2]}}}}
- {{from: numbers, to: one, grouping: {{type: GLOBAL}}}}
- {{from: repeat, to: one, grouping: {{type: LOCAL_OR_SHUFFLE}}}}
""")
    )
    by_field = done.recorded("by-field")
    assert Counter(one.values for one in by_field) == Counter(
        (n, copy) for n in range(60) for copy in range(3)
    )
    task_of: dict[int, int] = {}
    assert all(task_of.setdefault(one.values[0], one.task) == one.task for one in by_field)
    assert len(set(task_of.values())) == 4
    assert Counter(one.values[-1] for one in done.recorded("everywhere")) == Counter([*range(60)] * 3)
    tasks = Counter(one.task for one in done.recorded("first"))
    assert sorted(tasks.values()) == [60, 60]
    both = done.recorded("one")
    assert len({one.task for one in both if one.component == "numbers"}) == 1
    assert Counter(one.component for one in both) == {"numbers": 60, "repeat": 180}
    assert done.acked("numbers") == Counter(range(60))


def test_a_shell_bolt_emits_and_acks(run: Run, load: Callable[[str], Any], tmp_path: Path) -> None:
    """K20: a child beside the YAML gets its component's settings, and emits on the streams that were set."""
    (tmp_path / "resources").mkdir()
    (tmp_path / "resources" / "offset.py").write_text(CHILD)
    done = run(
        load(f"""
name: shell
spouts:
{NUMBERS}
bolts:
- id: offset
  className: org.apache.storm.flux.wrappers.bolts.FluxShellBolt
  constructorArgs: [[{sys.executable}, offset.py], [n]]
  configMethods:
  - {{name: setNamedStream, args: [odd, [n]]}}
  - {{name: addComponentConfig, args: [my.offset, 1000]}}
  parallelism: 2
- {{id: even, className: {PARTS}.Record}}
- {{id: odd, className: {PARTS}.Record}}
streams:
- {{from: numbers, to: offset, grouping: {{type: SHUFFLE}}}}
- {{from: offset, to: even, grouping: {{type: SHUFFLE}}}}
- {{from: offset, to: odd, grouping: {{type: SHUFFLE, streamId: odd}}}}
""")
    )
    assert sorted(one.values[-1] for one in done.recorded("even")) == list(range(1000, 1060, 2))
    assert sorted(one.values[-1] for one in done.recorded("odd")) == list(range(1001, 1060, 2))
    assert done.acked("numbers") == Counter(range(60))
