"""A project of Petrel, run by ``stormspark run`` as it is."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.legacy.streamparse.running import run

# Each starts the command line.
pytestmark = pytest.mark.slow

HARBOUR = Path(__file__).parent / "projects" / "harbour" / "create.py"


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]
)
def test_harbour(engine: str, tmp_path: Path) -> None:
    """A basic bolt anchors and acks, another bolt by itself; what fails comes again; each task calls ``run()`` of its script.

    ``topology.yaml`` says workers and parallelism. The component that ``create`` makes can't be pickled, and need not be.
    """
    done = run(HARBOUR, engine, tmp_path)
    notes = done.notes("tally")
    assert {note for note, *_ in notes} == {"run makes this one"}
    last: Counter[str] = Counter()
    for _, component, stream, value, count in notes:
        assert component == "unload"
        if stream == "default":
            last[value] = max(last[value], count)
    assert last == {"rye": 3, "salt": 2, "tar": 1}
    assert [value for _, _, stream, value, _ in notes if stream == "empty"] == ["clara"]
    assert done.figures["topology"] == "harbour"
    assert done.figures["components"]["unload"]["tasks"] == 3
    assert (done.figures["components"]["ships"]["acked"], done.figures["components"]["ships"]["failed"]) == (
        4,
        1,
    )
