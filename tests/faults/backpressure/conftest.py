"""Where figures go, and how a long run tells how far it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.faults.backpressure.watch import Say

_FOLDER = Path(__file__).parents[3] / "build" / "backpressure"


@pytest.fixture(scope="session")
def folder() -> Path:
    """Where series go."""
    return _FOLDER


@pytest.fixture
def say(request: pytest.FixtureRequest) -> Say:
    """Prints a line at once, past pytest's capture: who runs a long form wants to see it live."""
    capture = request.config.pluginmanager.getplugin("capturemanager")

    def print_line(line: str) -> None:
        with capture.global_and_fixture_disabled():
            print(line, flush=True)

    return print_line
