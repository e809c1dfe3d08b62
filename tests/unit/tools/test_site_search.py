"""The search of the site in a real browser, from files and from a server, without any other host.

It needs what nothing else here needs: ``pip install playwright``, and a Chromium (``apt-get install chromium``).
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.waiting import PATIENCE_SECS

ROOT = Path(__file__).parents[3]
HTML = ROOT / "build" / "site" / "html"

pytestmark = [pytest.mark.slow, pytest.mark.long]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, format: str, *args: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def page() -> Iterator[Any]:
    """A page of a browser, once the site is there."""
    playwright = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("there is no Chromium: apt-get install chromium")
    if not (HTML / "index.html").exists():
        subprocess.run(["make", "site"], cwd=ROOT, check=True)
    with playwright.sync_playwright() as started:
        chromium = started.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        try:
            page = chromium.new_page()
            page.set_default_timeout(PATIENCE_SECS * 1000)
            yield page
        finally:
            chromium.close()


@pytest.fixture(params=["files", "server"])
def start(request: pytest.FixtureRequest) -> Iterator[str]:
    """Where the site begins."""
    if request.param == "files":
        yield HTML.as_uri()
        return
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(HTML))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def test_the_search_finds_pages_and_asks_no_other_host(page: Any, start: str) -> None:
    """Words of a text, the name of a setting, and the name of a class."""
    errors: list[str] = []
    asked: list[str] = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    for words, wanted in (
        ("dead letters", "letters"),
        ("topology.message.timeout.secs", "settings"),
        ("KafkaSpout", "kafka"),
    ):
        page.goto(f"{start}/index.html")
        page.fill("input[name=q]", words)
        page.press("input[name=q]", "Enter")
        # The summary is written once all results are there.
        page.wait_for_function("document.querySelector('p.search-summary')?.textContent.match(/\\d/)")
        found = [link.get_attribute("href") for link in page.query_selector_all("ul.search li > a")]
        assert any(wanted in str(link).lower() for link in found), (words, found)
    page.click("ul.search li > a")
    page.wait_for_load_state()
    assert page.url.startswith(start)
    assert not page.url.startswith(f"{start}/search.html")
    # The page asks for the pages that it has found, to show the words in them. A browser reads no files for it.
    assert set(errors) <= ({"Failed to fetch"} if start.startswith("file:") else set())
    assert [url for url in asked if not url.startswith((start, "data:"))] == []
