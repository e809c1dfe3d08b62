"""What is shown while a topology starts."""

from __future__ import annotations

import threading

import pytest

from stormspark.driver.start_steps import begin_step
from stormspark.ui.starting import Starting
from tests.waiting import PATIENCE_SECS


class Line:
    """A line that remembers, on a terminal or not. The start that it shows goes on when the first line has come."""

    def __init__(self, *, is_live: bool) -> None:
        self.is_live = is_live
        self.shown: list[str] = []
        self.said: list[str] = []
        self.has_come = threading.Event()

    def show(self, progress):
        self.shown.append(str(progress))
        self.has_come.set()

    def say(self, text):
        self.said.append(text)
        self.has_come.set()


@pytest.mark.parametrize(("is_live", "every"), [(True, 0.5), (False, 5.0)], ids=["terminal", "file"])
def test_a_start_that_takes_long_shows_its_step(is_live, every):
    line, over, waited = Line(is_live=is_live), threading.Event(), []

    def wait(seconds):
        waited.append(seconds)
        return len(waited) > 1 and over.wait(PATIENCE_SECS)

    with Starting("words", line, "Spark starts", wait):
        assert line.has_come.wait(PATIENCE_SECS)
        over.set()
    assert set(waited) == {every}
    assert (line.shown if is_live else line.said)[0] == "words 0 s  starts: Spark starts"
    assert not (line.said if is_live else line.shown)


def test_the_step_is_the_one_that_began_last():
    line, step = Line(is_live=False), threading.Event()

    def wait(seconds):
        return line.has_come.is_set() or not step.wait(PATIENCE_SECS)

    with Starting("words", line, "Spark starts", wait):
        begin_step("the state is read")
        step.set()
        assert line.has_come.wait(PATIENCE_SECS)
    assert line.said == ["words 0 s  starts: the state is read"]


def test_a_short_start_shows_nothing():
    line = Line(is_live=False)
    with Starting("words", line, "Spark starts"):
        pass
    assert line.said == []
