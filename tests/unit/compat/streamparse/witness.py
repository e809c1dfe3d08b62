"""What components saw: they are copies of what a test defines, so a test's own variables are not theirs."""

from typing import Any

seen: list[Any] = []
