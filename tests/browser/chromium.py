"""Finds a Chromium on this host. Playwright's own browsers are not downloaded."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser

#: The variable that names another browser.
NAMED = "STORMSPARK_CHROMIUM"
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def found() -> str | None:
    """Return the path of a Chromium; None if there is none."""
    return os.environ.get(NAMED) or next(filter(None, map(shutil.which, _NAMES)), None)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start the browser. Skip the test, with what to do, if there is none."""
    sync_api = pytest.importorskip(
        "playwright.sync_api", reason="there is no Playwright: pip install playwright"
    )
    path = found()
    if path is None:
        pytest.skip(f"there is no Chromium: apt-get install chromium, or name one in {NAMED}")
    # Root may start no sandbox; the pages are this project's own.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=[*arguments, "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()
