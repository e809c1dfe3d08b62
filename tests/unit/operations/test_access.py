"""The REST API on a port of the loopback device, for whoever knows the token."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from stormspark.errors import UnsupportedEnvironmentError
from stormspark.operations import connections
from stormspark.operations.access import TOKEN
from stormspark.operations.client import Client
from stormspark.operations.registry import entry_of
from stormspark.operations.server import serve
from tests.unit.operations.test_server import Words, run
from tests.waiting import wait_for

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture
def words(monkeypatch: pytest.MonkeyPatch) -> Iterator[Words]:
    monkeypatch.setenv(TOKEN, "sesame")
    running = Words(conf={"stormspark.ui.port": 0})
    server = serve(running, engine="local", active=True, checkpoint=None)
    assert server is not None
    yield running
    server.close()


def summary(**options: object) -> httpx.Response:
    return httpx.get(f"{entry_of('words').url}/topology/summary", **options)  # type: ignore[arg-type]


def test_a_token_opens_it(words: Words) -> None:
    assert (entry_of("words").url or "").startswith("http://127.0.0.1:")
    for options in ({"headers": {"Authorization": "Bearer sesame"}}, {"auth": ("anybody", "sesame")}):
        assert summary(**options).json()["topologies"][0]["name"] == "words"


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"headers": {"Authorization": "Bearer other"}},
        {"headers": {"Authorization": "Bearer"}},
        {"headers": {"Authorization": "Basic ???"}},
        {"auth": ("sesame", "")},
        {"params": {"token": "sesame"}},
    ],
)
def test_nothing_else_does(words: Words, options: dict[str, object]) -> None:
    answer = summary(**options)
    assert (answer.status_code, answer.json()["error"]) == (401, "401 Unauthorized")
    assert "sesame" not in answer.text
    url = f"{entry_of('words').url}/topology/{words.storm_id}/kill/0"
    assert httpx.post(url, **options).status_code == 401  # type: ignore[arg-type]
    assert words.told == []


def test_a_page_of_another_site_can_do_nothing(words: Words) -> None:
    url = entry_of("words").url or ""
    call, auth = f"{url}/topology/{words.storm_id}/deactivate", ("me", "sesame")
    assert httpx.post(call, auth=auth, headers={"Origin": "http://evil.example"}).status_code == 403
    assert words.told == []
    own = url.removesuffix("/api/v1")
    assert httpx.post(call, auth=auth, headers={"Origin": own}).status_code == 200
    assert words.told == ["deactivate"]


def test_the_list_says_where_it_is_and_not_how_it_is_opened(words: Words) -> None:
    code, said = run("list")
    assert (code, f"words answers at {entry_of('words').url}" in said, "sesame" in said) == (0, True, False)
    assert json.loads(run("list", "--json")[1])["topologies"][0]["url"] == entry_of("words").url
    assert "sesame" not in run("list", "--json")[1]


def test_without_a_token_of_the_users_there_is_a_random_one(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    tokens = set()
    for _ in range(2):
        server = serve(Words(conf={"stormspark.ui.port": 0}), engine="local", active=True, checkpoint=None)
        assert server is not None
        tokens.add(entry_of("words").token)
        server.close()
    assert len(tokens) == 2
    assert all(len(token or "") >= 32 for token in tokens)


def test_an_address_of_version_six_may_have_brackets(folder: Path) -> None:
    running = Words(conf={"stormspark.ui.port": 0, "stormspark.ui.host": "[::1]"})
    try:
        server = serve(running, engine="local", active=True, checkpoint=None)
    except UnsupportedEnvironmentError as error:
        if "Cannot assign" in str(error):
            pytest.skip("this host has no IPv6")
        raise
    assert server is not None
    assert httpx.get((entry_of("words").url or "").replace("/api/v1", "/healthz")).status_code == 200
    server.close()


def test_a_port_that_is_taken_is_refused(folder: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(UnsupportedEnvironmentError, match=f"can't have the port {port} of 127.0.0.1"):
            serve(Words(conf={"stormspark.ui.port": port}), engine="local", active=True, checkpoint=None)
    elsewhere = {"stormspark.ui.port": 0, "stormspark.ui.host": "203.0.113.1"}
    with pytest.raises(UnsupportedEnvironmentError, match=r"can't have the port 0 of 203\.0\.113\.1"):
        serve(Words(conf=elsewhere), engine="local", active=True, checkpoint=None)
    assert not folder.exists()


def test_without_a_port_there_is_none(folder: Path) -> None:
    server = serve(Words(), engine="local", active=True, checkpoint=None)
    assert server is not None
    assert (entry_of("words").url, entry_of("words").token) == (None, None)
    server.close()


def test_many_connections_without_a_token_take_few_files(
    words: Words, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each takes one of the files that the driver may open. The Unix socket answers all the same."""
    monkeypatch.setattr(connections, "_MOST", 5)
    url = httpx.URL(entry_of("words").url or "")
    held = []
    for _ in range(50):
        held.append(socket.create_connection((url.host, url.port or 0)))
        held[-1].sendall(b"GET /api/v1/topology/summary HTTP/1.1\r\n")
    for one in held:
        one.settimeout(0.01)
    wait_for(lambda: sum(is_open(one) for one in held) == 5)
    assert Client(entry_of("words")).summary()["name"] == "words"
    for one in held:
        one.close()
    wait_for(lambda: summary(auth=("me", "sesame")).status_code == 200)


def test_a_connection_that_asks_for_nothing_is_closed(words: Words, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_IDLE_SECS", 0.05)
    url = httpx.URL(entry_of("words").url or "")
    with socket.create_connection((url.host, url.port or 0), timeout=10) as connection:
        connection.sendall(b"GET /api/v1/topology/summary HTTP/1.1\r\n")
        assert connection.recv(1) == b""


def is_open(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) != b""
    except TimeoutError:
        return True
    except OSError:
        return False
