"""Drafts of Python 2 in Python 3: names that have become keywords, and long files."""

from __future__ import annotations

import pytest

from stormspark.porting.drafts_in_python3 import can_draft, in_python3, lines_before

pytestmark = pytest.mark.skipif(not can_draft(), reason="fissix is not installed")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("print 'a'\nasync = await = 1\n", "print('a')\nasync_ = await_ = 1\n"),
        ("f(async=True)\nprint x.async, 'async'\n", "f(async_=True)\nprint(x.async_, 'async')\n"),
        ("print 'the async way'\n", "print('the async way')\n"),
    ],
)
def test_names_that_are_keywords_today_get_an_underscore(old: str, new: str) -> None:
    """A37: before, such a file was called no Python at all, and nothing of it was read."""
    assert in_python3(old.encode(), "a.py") == new


@pytest.mark.slow
def test_the_lines_of_long_files_are_found() -> None:
    """Frequent lines, such as those of a table of data, made this quadratic: 20 minutes for this file."""
    before = "print 1\nx = [\n" + '    {\n    "a": 1,\n    },\n' * 20_000 + "]\nprint 2\nfrom b import izip\n"
    after = "import sys\n" + before.replace("print 1", "print(1)").replace("print 2", "print(2)")
    numbers = lines_before(before, after)
    assert (len(numbers), numbers[:3], numbers[-2:]) == (60_006, [1, 1, 2], [60_004, 60_005])
    assert lines_before("a\nb\n", "a\nb\n") == [1, 2]
    assert lines_before("a\nb\nc\n", "a\nc\n") == [1, 3]
