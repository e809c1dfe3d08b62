import logging

import pytest

from stormspark.ui import LogLines


def at(seconds, text="split[0]: no number", **extra):
    """A record that was made so many seconds after the first one."""
    record = logging.makeLogRecord({"msg": text, "levelno": logging.WARNING, "name": "stormspark", **extra})
    record.created = 1000.0 + seconds
    return record


def test_a_flood_is_counted():
    said = []
    with LogLines(said.append, burst=3, every=5.0) as lines:
        for tenth in range(120):
            lines.handle(at(tenth / 10, f"number {tenth}"))
    assert said == [
        "number 0",
        "number 1",
        "number 2",
        "number 52 (earlier lines that were left out: 49)",
        "number 102 (earlier lines that were left out: 49)",
        "and 17 more such lines",
    ]


def test_now_and_then_is_no_flood():
    said = []
    with LogLines(said.append, burst=1, every=5.0) as lines:
        for second in range(0, 60, 10):
            lines.handle(at(second))
    assert said == ["split[0]: no number"] * 6


def test_it_listens_to_this_package_while_the_block_lasts():
    said = []
    logger = logging.getLogger("stormspark.task.split")
    with LogLines(said.append):
        logger.warning("heard")
        logger.info("not worth a line")
        logging.getLogger("somebody.else").error("not ours")
    logger.warning("too late")
    assert said == ["heard"]


def test_an_exception_is_shown_by_its_first_line():
    said = []
    with LogLines(said.append):
        try:
            raise ValueError("no number\nbut a long story")
        except ValueError:
            logging.getLogger("stormspark").exception("topology %s stops", "words")
    assert said == ["topology words stops: ValueError: no number"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("one line", "one line"),
        ("", ""),
        (
            "split[0]: Traceback (most recent call last):\n  File x\nKeyError: 'word'\n",
            "split[0]: KeyError: 'word'",
        ),
        ("first\nsecond\nthird", "first third"),
    ],
)
def test_a_line_is_a_line(text, line):
    said = []
    with LogLines(said.append) as lines:
        lines.handle(at(0, text))
    assert said == [line]
