"""A key's two tasks against Java's own generator: recorded draws always, and a live JDK where there is one (D12).

`java_two_tasks.json` is what `JavaTwoTasks.java` answers to the draws below. After a change of them write it anew:
``python tests/unit/grouping/test_two_tasks_against_java.py``.
"""

from __future__ import annotations

import json
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from stormspark.grouping import two_tasks

HERE = Path(__file__).parent
RECORD = HERE / "java_two_tasks.json"

#: Powers of two and others, which Java draws differently, up to bounds of which it draws every third number anew.
BOUNDS = [1, 2, 3, 4, 7, 8, 10, 100, 1024, 1_000_003, 2**30, 2**30 + 1, 1_500_000_000, 2**31 - 1]
KEYS = [
    b"",
    b"\0",
    b"\0\0\0\0",
    b"\xff\xff\xff\xff",
    b"\x80\0\0\0",
    b"storm",
    b"\x7f" * 40,
    bytes(range(256)),
]
DRAWS = [(bound, key) for bound in BOUNDS for key in KEYS]


def ask_java(draws: list[tuple[int, bytes]]) -> list[list[int]]:
    """What `JavaTwoTasks.java` answers: two numbers for each draw."""
    java = shutil.which("java")
    assert java is not None
    answers = subprocess.run(
        [java, "-Xshare:auto", "-XX:TieredStopAtLevel=1", str(HERE / "JavaTwoTasks.java")],
        input="".join(f"{bound} {key.hex()}\n" for bound, key in draws),
        capture_output=True,
        text=True,
        check=True,
    )
    return [[int(word) for word in line.split()] for line in answers.stdout.splitlines()]


def drawn(draws: list[tuple[int, bytes]]) -> list[list[int]]:
    return [list(two_tasks(range(bound), key)) for bound, key in draws]


needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="there is no java to ask")


def test_the_two_tasks_are_those_that_java_gave() -> None:
    """The two tasks of a partial key are those in a record that Java wrote (D12)."""
    assert drawn(DRAWS) == json.loads(RECORD.read_text())


@pytest.mark.slow
@needs_java
def test_the_record_is_what_java_says_today() -> None:
    """Java still chooses the tasks of the record (D12)."""
    assert json.loads(RECORD.read_text()) == ask_java(DRAWS)


@pytest.mark.slow
@needs_java
def test_any_other_key_has_the_tasks_that_java_gives_it() -> None:
    """Random keys get the two tasks that Java chooses (D12)."""
    rng = random.Random(2)
    draws = [
        (rng.randrange(1, 2 ** rng.randrange(1, 32)), rng.randbytes(rng.randrange(12))) for _ in range(3000)
    ]
    assert drawn(draws) == ask_java(draws)


if __name__ == "__main__":
    RECORD.write_text(json.dumps(ask_java(DRAWS)).replace("], [", "],\n[") + "\n")
