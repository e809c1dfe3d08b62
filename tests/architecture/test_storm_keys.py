"""A key of Storm's or Heron's means something here, or a topology that sets it is told that it does not."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

import stormspark
from stormspark.storm_keys import STORM_KEYS

PACKAGE = Path(stormspark.__file__).parent
#: What people read, and no engine: names of versions, teams and projects, and what Heron's submitter writes down.
LABELS = {
    "topology.version",
    "topology.team.name",
    "topology.team.email",
    "topology.cap.ticket",
    "topology.project.name",
    "topology.component.parallelism",
}
#: These modules name keys without following them: the table itself, setters, constants, what explains a port.
NAMING = ("storm_keys.py", "porting/", "compat/heronpy/constants.py", "api/configuration.py")


@cache
def followed() -> str:
    """The source of all modules that may follow a key."""
    return "\n".join(
        path.read_text(encoding="utf-8")
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.relative_to(PACKAGE).as_posix().startswith(NAMING)
    )


@pytest.mark.parametrize("key", sorted(key for key, known in STORM_KEYS.items() if not known.useless_because))
def test_each_key_without_a_reason_is_followed(key: str) -> None:
    """A23, A25: the others come with a reason, which is told before the topology runs."""
    assert key in LABELS or key in followed(), f"{key} does nothing here: give it a reason in storm_keys.py"
