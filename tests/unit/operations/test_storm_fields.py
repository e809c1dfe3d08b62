"""The REST API has the fields of Storm's UI, by name and by type (J8-J11).

``storm_1_fields.json`` has what the UI of Storm 1.2.4 answered: nimbus, a supervisor and two workers ran a topology of the same
shape as the one here. What Storm 2.8 adds is from its source (``UIHelpers``) and its documentation.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from stormspark import BasicBolt, Fields, Spout, TopologyBuilder
from stormspark.driver.error_log import TaskError
from stormspark.metrics import Histogram, TaskCounters
from stormspark.metrics.streams import StreamCounts
from stormspark.operations.facts import WorkerPlace
from stormspark.operations.registry import entry_of
from stormspark.operations.server import serve
from stormspark.plan import plan_topology
from tests.unit.operations.test_server import Words as AnyWords

pytestmark = pytest.mark.usefixtures("folder")

STORM_1 = json.loads(Path(__file__).with_name("storm_1_fields.json").read_text())
#: What there is in Storm 2.8 besides, by call: the path to an object, and its fields.
STORM_2 = {
    "cluster/summary": {"": "stormVersionInfo fragmentedMem fragmentedCpu availGenerics totalGenerics"},
    "supervisor/summary": {
        "": "logviewerPort logviewerScheme",
        "supervisors": "blacklisted totalGenericResources usedGenericResources availGenericResources",
    },
    "topology/summary": {
        "topologies": "requestedGenericResources assignedGenericResources topologyVersion stormVersion"
    },
    "topology/ID": {
        "": "requestedRegularOnHeapMem requestedSharedOnHeapMem requestedRegularOffHeapMem requestedSharedOffHeapMem "
        "requestedGenericResources assignedRegularOnHeapMem assignedSharedOnHeapMem assignedRegularOffHeapMem "
        "assignedSharedOffHeapMem assignedGenericResources topologyVersion stormVersion bugtracker-url central-log-url",
        "spouts": "requestedGenericResourcesComp",
        "bolts": "requestedGenericResourcesComp",
        "workers": "owner",
    },
    "topology-workers/ID": {"": "logviewerScheme"},
    "topology/ID/component/lines": {"": "requestedGenericResources", "spoutSummary": "lastError"},
    "topology/ID/component/count": {"": "requestedGenericResources"},
    "owner-resources": {
        "": "owners schedulerDisplayResource",
        "owners": "owner totalTopologies totalExecutors totalWorkers totalTasks totalMemoryUsage totalCpuUsage memoryGuarantee "
        "cpuGuarantee isolatedNodes memoryGuaranteeRemaining cpuGuaranteeRemaining totalReqOnHeapMem totalReqOffHeapMem "
        "totalReqMem totalReqCpu totalAssignedOnHeapMem totalAssignedOffHeapMem",
    },
}
#: Fields that may be null here: there is no logviewer, and without an error Storm 2 has null where Storm 1 had "".
NULL_HERE = {"logviewerPort", "errorPort"}
#: Lists that may be empty here, because they have only streams of Storm's own there, such as those to its ackers.
EMPTY_HERE = {"emitted", "transferred", ":inputs"}


class Lines(Spout):
    def open(self, conf: Any, context: Any, collector: Any) -> None:
        pass

    def next_tuple(self) -> None:
        pass

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("line"))
        declarer.declare_stream("side", Fields("x"))


class Split(BasicBolt):
    def execute(self, tup: Any, collector: Any) -> None:
        pass

    def declare_output_fields(self, declarer: Any) -> None:
        declarer.declare(Fields("word"))


class Count(Split):
    def declare_output_fields(self, declarer: Any) -> None:
        pass


def spent(seconds: float, times: int) -> Histogram:
    histogram = Histogram()
    histogram.add(seconds, times)
    return histogram


class Words(AnyWords):
    """A topology of the shape that ran on Storm, which runs nothing. Names may be others."""

    def __init__(
        self, lines: str = "lines", split: str = "split", conf: dict[str, object] | None = None
    ) -> None:
        super().__init__()
        builder = TopologyBuilder()
        builder.set_spout(lines, Lines(), parallelism=2)
        builder.set_bolt(split, Split(), parallelism=2).set_num_tasks(4).shuffle_grouping(lines)
        count = builder.set_bolt("count", Count(), parallelism=2).fields_grouping(split, Fields("word"))
        count.shuffle_grouping(lines, "side")
        self.plan = plan_topology(builder.create_topology("words"), {"topology.workers": 2, **(conf or {})})
        tasks = {name: one.tasks for name, one in self.plan.components.items()}
        self.counters = {
            tasks[lines][0]: TaskCounters(
                emitted=12,
                transferred=12,
                acked=9,
                failed=1,
                latency=spent(0.5, 9),
                outputs={
                    "default": StreamCounts(10, 10, acked=8, failed=1, calls=8, call_seconds=4.0),
                    "side": StreamCounts(2, 2, acked=1, calls=1, call_seconds=0.5),
                },
            ),
            tasks[split][1]: TaskCounters(
                emitted=30, transferred=30, executed=10, acked=10, latency=spent(0.01, 10)
            ),
            tasks["count"][0]: TaskCounters(
                executed=32,
                acked=30,
                failed=1,
                latency=spent(0.001, 32),
                processed=10,
                process_seconds=20.0,
                inputs={
                    (split, "default"): StreamCounts(
                        executed=30,
                        acked=29,
                        failed=1,
                        calls=30,
                        call_seconds=0.03,
                        processed=10,
                        process_seconds=20.0,
                    ),
                    (lines, "side"): StreamCounts(executed=2, acked=1, calls=2, call_seconds=0.002),
                },
            ),
        }
        errors = [
            TaskError(time.time() - age, "count", tasks["count"][0], 0, f"{age}") for age in (5.5, 60.0)
        ]
        self.reported = {"count": tuple(errors)}

    def worker_places(self) -> list[WorkerPlace]:
        return [WorkerPlace(number, "one", 17 + number, time.time() - 90.5) for number in range(2)]


def served(running: Words) -> Iterator[httpx.Client]:
    server = serve(running, engine="local", active=True, checkpoint=None)
    assert server is not None
    socket = entry_of("words").socket
    with httpx.Client(transport=httpx.HTTPTransport(uds=socket), base_url="http://driver/api/v1/") as client:
        yield client
    server.close()


@pytest.fixture
def client(folder: Path) -> Iterator[httpx.Client]:
    yield from served(Words())


def asked(client: httpx.Client, call: str) -> Any:
    answer = client.get(call.replace("ID", Words.storm_id).replace("HOST", "one"))
    assert answer.status_code == 200, answer.text
    return answer.json()


def differences(place: str, storm: Any, ours: Any) -> Iterator[str]:
    """Iterate over what Storm has at a place and we have not."""
    if isinstance(storm, dict):
        if not isinstance(ours, dict):
            yield f"{place} is {ours!r}"
            return
        if "*" in storm:
            for key, value in ours.items():
                yield from differences(f"{place}.{key}", storm["*"], value)
            return
        for key, kind in storm.items():
            if key in ours:
                yield from differences(f"{place}.{key}", kind, ours[key])
            else:
                yield f"{place}.{key} is missing"
    elif isinstance(storm, list):
        may_be_empty = place.rsplit(".", 1)[-1] in EMPTY_HERE
        if not isinstance(ours, list) or (storm and not ours and not may_be_empty):
            yield f"{place} is {ours!r}"
            return
        for one in ours if storm else ():
            yield from differences(f"{place}[]", storm[0], one)
    elif not fits(place, storm, ours):
        yield f"{place} is {ours!r}, but {storm} in Storm"


def fits(place: str, kinds: str, ours: Any) -> bool:
    kind = "null" if ours is None else type(ours).__name__
    if kinds == "any" or (place.rsplit(".", 1)[-1] in NULL_HERE and ours is None):
        return True
    # JSON has one kind of number.
    return kind in kinds.split("|") or (
        kind in ("int", "float") and bool({"int", "float"} & {*kinds.split("|")})
    )


@pytest.mark.parametrize("call", STORM_1)
def test_every_field_of_storm_1_is_there_with_its_type(client: httpx.Client, call: str) -> None:
    assert list(differences("", STORM_1[call], asked(client, call))) == []


@pytest.mark.parametrize("call", STORM_2)
def test_every_field_that_storm_2_adds_is_there(client: httpx.Client, call: str) -> None:
    answer = asked(client, call)
    for place, names in STORM_2[call].items():
        for one in [answer] if not place else answer[place]:
            assert set(names.split()) - one.keys() == set()


def test_a_bolt_has_its_figures_by_input_output_and_executor(client: httpx.Client) -> None:
    page = asked(client, "topology/ID/component/count?window=600")
    assert (page["windowHint"], page["executors"], page["tasks"]) == ("10m 0s", 2, 2)
    split, side = page["inputStats"]
    assert split == {
        "component": "split",
        "encodedComponentId": "split",
        "stream": "default",
        "executed": 30,
        "acked": 29,
        "failed": 1,
        "executeLatency": "1.000",
        # 19 were acked in execute, and 10 took 2 s each
        "processLatency": "690.310",
    }
    assert (side["component"], side["stream"], side["executed"], side["acked"]) == ("lines", "side", 2, 1)
    assert [one["executed"] for one in page["executorStats"]] == [32, 0]
    assert [one["id"] for one in page["executorStats"]] == ["[3-3]", "[4-4]"]
    assert [one["window"] for one in page["boltStats"]] == ["600", "10800", "86400", ":all-time"]
    assert [one["error"] for one in page["componentErrors"]] == ["60.0", "5.5"]


def test_a_spout_has_its_figures_by_stream(client: httpx.Client) -> None:
    page = asked(client, "topology/ID/component/lines")
    assert page["outputStats"] == [
        {
            "stream": "default",
            "emitted": 10,
            "transferred": 10,
            "completeLatency": "500.000",
            "acked": 8,
            "failed": 1,
        },
        {
            "stream": "side",
            "emitted": 2,
            "transferred": 2,
            "completeLatency": "500.000",
            "acked": 1,
            "failed": 0,
        },
    ]
    assert asked(client, "topology/ID/component/split")["outputStats"] == [
        {"stream": "default", "emitted": 30, "transferred": 30}
    ]


def test_an_executor_of_two_tasks_is_named_after_both(client: httpx.Client) -> None:
    page = asked(client, "topology/ID/component/split")
    assert [(one["id"], one["executed"]) for one in page["executorStats"]] == [("[7-8]", 10), ("[9-10]", 0)]


def test_the_lag_is_that_of_the_partitions(client: httpx.Client) -> None:
    lag = asked(client, "topology/ID/lag")["lines"]
    assert (lag["spoutType"], lag["spoutLagResult"]["topic"]["0"]["lag"]) == ("KAFKA", 7)


def test_what_there_is_not(client: httpx.Client) -> None:
    of_topology = f"topology/{Words.storm_id}"
    for call in (f"{of_topology}/component/cuont", f"{of_topology}/component/", "topology/x/component/count"):
        assert client.get(call).status_code == 404, call
    message = client.get(f"{of_topology}/component/cuont").json()["errorMessage"]
    assert message == "topology 'words' has no component 'cuont'; did you mean 'count'?"
    assert asked(client, "topology/ID/component/count?window=77")["window"] == ":all-time"
    profiling = client.post(f"{of_topology}/profiling/start/one:6700/10")
    assert (profiling.status_code, profiling.json()["status"]) == (501, "disabled")
    assert asked(client, "supervisor?id=nobody")["supervisors"] == []
    assert asked(client, "owner-resources/nobody")["totalTopologies"] == 0
    assert asked(client, "cluster/configuration")["topology.message.timeout.secs"] == 30


@pytest.mark.parametrize(
    "name", ["a/b", "<script>alert(1)</script>", "50%", "a b+c", "größe", "%2F", "a?b=c&d#e"]
)
def test_hostile_names_are_reached_by_their_encoded_ids(folder: Path, name: str) -> None:
    for client in served(Words(split=name, lines=f"{name} ")):
        (bolt, _) = asked(client, "topology/ID")["bolts"]
        page = client.get(f"topology/{Words.storm_id}/component/{bolt['encodedBoltId']}").json()
        assert (page["id"], page["componentType"]) == (name, "bolt")
        assert client.get(f"topology/{Words.storm_id}/metrics").json()["bolts"][0]["id"] == name
        graph = client.get(f"topology/{Words.storm_id}/visualization").json()
        assert set(graph) == {name, f"{name} ", "count"}


def test_secrets_of_the_configuration_are_hidden(folder: Path) -> None:
    conf = {"my.password": "sesame", "jdbc": {"url": "jdbc:postgresql://me:sesame@host/db"}, "my.limit": 7}
    for client in served(Words(conf=conf)):
        page = client.get(f"topology/{Words.storm_id}")
        assert "sesame" not in page.text
        shown = page.json()["configuration"]
        assert (shown["my.password"], shown["jdbc"], shown["my.limit"]) == ("***", {"url": "***"}, 7)


def test_any_text_can_be_an_error(folder: Path) -> None:
    running = Words()
    running.reported = {"count": (TaskError(1.0, "count", 3, 0, "file \udcff is gone"),)}
    for client in served(running):
        assert asked(client, "topology/ID")["bolts"][1]["lastError"] == "file \udcff is gone"
