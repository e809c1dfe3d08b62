"""`stormspark ui` as somebody types it, with a driver that is killed and started again while the page is open."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from stormspark.operations.registry import entries
from tests.browser.chromium import chromium
from tests.browser.test_page import Seen
from tests.unit.operations.test_drivers import TOPOLOGY
from tests.waiting import wait_for

pytestmark = pytest.mark.slow

COMMAND = [sys.executable, "-m", "stormspark"]


def start(folder: Path, name: str, *more: str) -> subprocess.Popen[bytes]:
    """Start a driver, and wait until it takes commands."""
    with (folder / "output").open("w") as output:
        driver = subprocess.Popen(
            [*COMMAND, "run", "counting.py", "--engine", "local", *more],
            cwd=folder,
            stdout=output,
            stderr=output,
        )
    wait_for(
        lambda: [one for one in entries() if one.topology == name and one.pid == driver.pid],
        120,
        (folder / "output").read_text,
    )
    return driver


def test_from_the_command_to_kill_9_and_back(tmp_path: Path) -> None:
    name = f"numbers-{uuid.uuid4().hex[:8]}"
    (tmp_path / "counting.py").write_text(TOPOLOGY.replace("NAME", name))
    ui = subprocess.Popen(
        [*COMMAND, "ui", "--no-open"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    driver = None
    try:
        driver = start(tmp_path, name)
        assert ui.stdout is not None
        link = ui.stdout.readline().strip()
        with chromium() as browser:
            seen = Seen(browser)
            page = seen.page
            page.goto(link)
            page.get_by_role("link", name=name).click()
            seen.shown(3)
            # The third number is an error of the bolt.
            seen.text("#errors", "ValueError: three")
            assert f"{tmp_path}/counting.py:" in page.locator("#errors code").inner_text()
            page.locator("#logs summary").click()
            seen.text("#logs p", "on the driver's host")
            assert page.locator("#logs option", has_text="numbers-0.log").count() == 1
            driver.kill()
            driver.wait()
            seen.text("#connection", f"process {driver.pid}, has ended")
            driver = start(tmp_path, name)
            seen.text("#connection", "The topology was started again")
            page.get_by_role("button", name="Kill…").click()
            page.locator("dialog input").fill("0")
            page.locator("dialog button[type=submit]").click()
            driver.wait(120)
            seen.text("#connection", "The driver has not answered since")
            seen.close()
    finally:
        processes: list[subprocess.Popen[Any] | None] = [ui, driver]
        for process in filter(None, processes):
            process.terminate()
            process.wait()
        if ui.stdout is not None:
            ui.stdout.close()
