"""Takes the pictures of the web page that are in the documentation: ``docs/images/page-*.png``.

    python -m tools.screenshots

Needs a Chromium and Playwright. Runs a topology on the local engine for half a minute.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

from stormspark.operations.registry import entries
from tests.browser.chromium import found
from tests.waiting import wait_for

HERE = Path(__file__).parent
IMAGES = HERE.parents[1] / "docs" / "images"
_WARMUP_SECS = 40.0


def take(browser: Browser, link: str, name: str, width: int, height: int, *, dark: bool) -> None:
    """Take one picture. Few colours make it small."""
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    page = context.new_page()
    page.goto(link)
    page.get_by_role("link", name="word-totals", exact=True).click()
    page.wait_for_selector('html[data-shown="3"]', state="attached")
    file = IMAGES / f"page-{name}.png"
    page.screenshot(path=file)
    context.close()
    with Image.open(file) as picture:
        picture.convert("RGB").quantize(160).save(file, optimize=True)
    print(f"{file.name}: {file.stat().st_size / 1024:.0f} KB")


def main() -> None:
    """Take them all."""
    path = found()
    if path is None:
        sys.exit("there is no Chromium: apt-get install chromium")
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "words.py")
        file.write_text((HERE / "words.py").read_text())
        command = [sys.executable, "-m", "stormspark"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        driver = subprocess.Popen([*command, "run", str(file), "--engine", "local"], cwd=folder, **quiet)  # type: ignore[call-overload]
        ui = subprocess.Popen(
            [*command, "ui", "--no-open"],
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )
        try:
            wait_for(lambda: [one for one in entries() if one.topology == "word-totals" and one.lives])
            time.sleep(_WARMUP_SECS)
            assert ui.stdout is not None
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
                for name, width, height, dark in (
                    ("light", 1200, 980, False),
                    ("dark", 1200, 980, True),
                    ("phone", 390, 800, False),
                ):
                    line = next(line for line in ui.stdout if "#once=" in line)
                    take(browser, line.split()[-1], name, width, height, dark=dark)
                browser.close()
        finally:
            for process in (driver, ui):
                process.terminate()
                process.wait()


if __name__ == "__main__":
    main()
