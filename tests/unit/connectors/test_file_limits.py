"""What a batch of files or of a Delta table may bring, by the options that the user gave."""

from __future__ import annotations

from typing import Any

import pytest

from stormspark.api import PerTrigger
from stormspark.connectors import DeltaSpout, FileSpout
from stormspark.connectors.file_limits import bounded
from stormspark.errors import InvalidTopologyError

MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, PerTrigger("maxBytesPerTrigger", 16 * MEGABYTE, 256 * MEGABYTE)),
        ({"maxFilesPerTrigger": "7"}, PerTrigger("maxFilesPerTrigger", 7, 7)),
        ({"maxbytespertrigger": "3m", "maxFilesPerTrigger": 7}, PerTrigger("maxBytesPerTrigger", 3 * MEGABYTE, 3 * MEGABYTE)),
        ({"maxBytesPerTrigger": "2 GB"}, PerTrigger("maxBytesPerTrigger", 2048 * MEGABYTE, 2048 * MEGABYTE)),
    ],
)  # fmt: skip
def test_what_was_set_is_the_most(options: dict[str, Any], expected: PerTrigger) -> None:
    """F10: and where nothing was set there is a first limit, so that no bite is everything there is."""
    for spout in (FileSpout("/in", options=options), DeltaSpout("/in", ["n"], options=options)):
        assert spout.per_trigger == expected
        assert bounded(spout.options, spout) == options, "nothing is set before the engine says how much"
        spout.limit = 5
        others = {name: value for name, value in options.items() if name.lower() != expected.option.lower()}
        assert bounded(spout.options, spout) == others | {expected.option: 5}


@pytest.mark.parametrize("value", ["many", 0, -1, "1.5m", None])
def test_a_limit_that_is_none_is_refused(value: Any) -> None:
    """Bad input: before Spark sees it."""
    with pytest.raises(
        InvalidTopologyError,
        match="maxFilesPerTrigger must be a positive number, or a size such as '10m', got",
    ):
        FileSpout("/in", options={"maxFilesPerTrigger": value})
