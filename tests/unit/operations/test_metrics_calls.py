"""``GET /metrics`` on the socket of a driver, and on its port."""

from __future__ import annotations

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families

from stormspark.metrics import TaskCounters
from stormspark.operations.registry import entry_of
from tests.unit.operations.test_access import words as words_on_a_port  # noqa: F401
from tests.unit.operations.test_server import Words

pytestmark = pytest.mark.usefixtures("folder")


def get(path: str) -> httpx.Response:
    with httpx.Client(transport=httpx.HTTPTransport(uds=entry_of("words").socket)) as client:
        return client.get(f"http://driver{path}")


def test_prometheus_reads_it(words: Words) -> None:
    words.counters = {words.plan.components["count"].tasks[0]: TaskCounters(executed=10)}
    found = {one.name: one for one in text_string_to_metric_families(get("/metrics").text)}
    assert [one.value for one in found["stormspark_executed"].samples] == [10.0]
    assert {one.labels["component"] for one in found["stormspark_capacity"].samples} == {"count"}
    by = get("/metrics?by=component").text
    assert 'stormspark_executed_total{component="count",task="",topology="words"} 10.0' in by
    answer = get("/metrics?by=stream")
    assert (answer.status_code, answer.json()["errorMessage"]) == (
        400,
        "by is 'stream', but it must be 'task' or 'component'",
    )


def test_on_a_port_it_needs_the_token(words_on_a_port: Words) -> None:  # noqa: F811
    url = (entry_of("words").url or "").replace("/api/v1", "/metrics")
    assert httpx.get(url).status_code == 401
    assert httpx.get(url, headers={"Authorization": "Bearer sesame"}).status_code == 200
