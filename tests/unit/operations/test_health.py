"""Probes of a driver, which need no token and tell nothing about the topology."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest

from stormspark.metrics import Durations
from stormspark.operations.registry import entry_of
from tests.unit.operations.test_server import Words, run, serving

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def words(folder: Path) -> Iterator[Words]:
    running = Words(conf={"stormspark.ui.port": 0})
    server = serving(running)
    yield running
    server.close()


def get(path: str, **headers: str) -> httpx.Response:
    url = entry_of("words").url
    assert url is not None
    return httpx.get(url.removesuffix("/api/v1") + path, headers=headers)


def test_a_topology_is_ready_once_its_first_batch_has_ended(words: Words) -> None:
    words.waiting = "workers start, 0 of 2 are up"
    assert (get("/healthz").status_code, get("/readyz").status_code) == (200, 503)
    assert get("/readyz").text == "not ready"
    words.waiting = ""
    assert (get("/readyz").status_code, get("/readyz").text) == (200, "ready")


def test_a_topology_whose_workers_start_anew_is_ready(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    durations = Durations()
    durations.batches.add(0.5)
    monkeypatch.setattr(words, "durations", lambda: durations)
    words.waiting = "workers start, 0 of 2 are up"
    assert get("/readyz").status_code == 200


def test_a_topology_that_is_killed_is_not_ready_but_lives(words: Words) -> None:
    run("kill", "words", "-w", "1000")
    assert (get("/healthz").status_code, get("/readyz").status_code) == (200, 503)


def test_a_topology_that_has_failed_is_not_healthy(words: Words) -> None:
    words.error = ValueError("secret")
    assert (get("/healthz").status_code, get("/healthz").text) == (503, "failed")


def test_it_answers_while_a_worker_does_not_read_its_orders(
    words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A frozen worker holds up `deactivate` for seconds. Kubernetes would kill the driver whose probe fails meanwhile."""
    begun, reads = threading.Event(), threading.Event()

    def deactivate() -> None:
        begun.set()
        reads.wait(20)

    monkeypatch.setattr(words, "deactivate", deactivate)
    with ThreadPoolExecutor(1) as pool:
        ran = pool.submit(run, "deactivate", "words")
        try:
            assert begun.wait(20)
            assert get("/healthz").status_code == 200
        finally:
            reads.set()
        assert ran.result(20)[0] == 0


@pytest.mark.parametrize(
    "path",
    [
        "/healthz/",
        "/healthz/../api/v1/topology/summary",
        "/api/v1/readiness",
        "//healthz",
        "/healthz?a=b/api",
    ],
)
def test_only_the_probes_need_no_token(words: Words, path: str) -> None:
    answer = get(path)
    assert answer.status_code in (401, 404) or answer.text == "ok"
    assert words.storm_id not in answer.text
    assert httpx.post(str(entry_of("words").url).removesuffix("/api/v1") + "/healthz").status_code == 405
