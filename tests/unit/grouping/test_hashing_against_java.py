"""The hashes against Java's own: recorded ones always, and a live JDK where there is one (D1-D3).

`java_hashes.json` is what `JavaHashes.java` answers to the keys below. After a change of the keys write it
anew: ``python tests/unit/grouping/test_hashing_against_java.py``.
"""

from __future__ import annotations

import json
import math
import random
import shutil
import struct
import subprocess
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from stormspark.grouping import fields_task_index
from stormspark.grouping.hashing import key_hash

HERE = Path(__file__).parent
RECORD = HERE / "java_hashes.json"
GRINNING = "\N{GRINNING FACE}"
IST = timezone(timedelta(hours=5, minutes=30))

STRINGS = [
    *[
        "",
        "a",
        "storm",
        "word count",
        "\0",
        "\ud800",
        "é",
        "naïve",
        "日本語",
        GRINNING,
        f"a{GRINNING}b{GRINNING}",
    ],
    # Around where string_hash changes its ways.
    *["x" * n for n in (31, 32, 33, 4095, 4096, 4097, 10_000)],
    *["é" * n for n in (31, 32, 33, 4096, 5000)],
    *[GRINNING * n for n in (15, 16, 17, 2049)],
]
EDGES = [sign * 2**bits + d for bits in (31, 32, 63, 64, 96) for sign in (1, -1) for d in (-1, 0, 1)]
INTS = [0, 1, -1, 42, -42, *EDGES, 10**40]
FLOATS = [0.0, -0.0, 1.0, -1.0, 0.1, math.pi, 5e-324, 1.7976931348623157e308, math.inf, -math.inf, math.nan]
OTHERS = [
    *[None, True, False],
    *[b"", b"storm", bytes(range(256)), b"\xff" * 5000],
    *[
        Decimal(d)
        for d in ("0", "0.00", "1.0", "1.00", "-1.5", "1E+3", "1E-20", "-12345678901234567890.1234")
    ],
    *[UUID(int=0), UUID("12345678-9abc-def0-8123-456789abcdef"), UUID(int=2**128 - 1)],
    *[date(1, 1, 1), date(1970, 1, 1), date(2024, 2, 29), date(9999, 12, 31)],
    *[time(0), time(23, 59, 59, 999_999), time(12, 30, tzinfo=UTC), time(12, 30, 1, 5, tzinfo=IST)],
    *[datetime(2024, 2, 29, 23, 59, 59, 999_999), datetime(1, 1, 1), datetime(1969, 12, 31, 23, 59, 59, 1)],
    *[datetime(2024, 2, 29, 12, 0, 0, 1, IST), datetime(1969, 12, 31, 23, 59, 59, 1, UTC)],
    *[timedelta(0), timedelta(days=-1, microseconds=1), timedelta(10**6, 5, 999_999)],
]
CONTAINERS = [
    *[[], [None], [[]], [1, "a", [2.5, None, [True]]], (1, -2, "x"), list(range(100))],
    *[{}, {"a": 1}, {"a": -1, "b": [None, {"c": 2.0}], None: "x"}, {1: {2: {3: "deep"}}, -1: False}],
    *[
        set(),
        frozenset({"a", "b"}),
        {1, -1, None},
        {frozenset({1}), "x"},
        [frozenset(), {"s": frozenset({2})}],
    ],
]
SEVERAL_FIELDS: list[list[Any]] = [
    ["user", 1],
    ["user", -1],
    [None, None],
    [1, 1.0, True],
    ["", b"\xff", ["x", 3]],
    [{"a": 1}, [], {2}],
]
#: A key is a list of values: the selected fields of one tuple.
KEYS = [[], *[[value] for value in [*STRINGS, *INTS, *FLOATS, *OTHERS, *CONTAINERS]], *SEVERAL_FIELDS]


def random_value(rng: random.Random, depth: int = 3) -> Any:
    """Any value, nested up to ``depth``. No bytes, which Java hashes by identity inside of containers."""
    if depth and rng.random() < 0.3:
        parts = [random_value(rng, depth - 1) for _ in range(rng.randrange(4))]
        # Of True, 1 and 1.0 a set keeps only the first, and Java all: so only one kind of number here.
        hashable = [part for part in parts if isinstance(part, str | int) and not isinstance(part, bool)]
        containers: list[Any] = [parts, set(hashable), dict(zip(hashable, parts, strict=False))]
        return rng.choice(containers)
    kinds: list[Callable[[], Any]] = [
        lambda: "".join(chr(rng.randrange(rng.choice([128, 0x11_0000]))) for _ in range(rng.randrange(50))),
        lambda: rng.randrange(-(2 ** rng.randrange(1, 130)), 2 ** rng.randrange(1, 130)),
        lambda: struct.unpack(">d", rng.randbytes(8))[0],
        lambda: Decimal(rng.randrange(-(10**30), 10**30)).scaleb(rng.randrange(-20, 20)),
        lambda: datetime(1, 1, 1) + timedelta(microseconds=rng.randrange(3 * 10**17)),
        lambda: rng.choice([None, True, False]),
    ]
    return rng.choice(kinds)()


def as_java(value: Any, ints: str) -> str:
    """Write ``value`` down for `JavaHashes.java`."""
    match value:
        case None:
            return "n"
        case bool():
            return f"b{value:d}"
        case int():
            if ints == "integer" and value in range(-(2**31), 2**31):
                return f"i{value}"
            return f"l{value}" if value in range(-(2**63), 2**63) else f"z{value}"
        case float():
            return "d" + struct.pack(">d", value).hex()
        case Decimal():
            return f"m{value}"
        case str():
            return "s" + value.encode("utf-16-be", "surrogatepass").hex()
        case bytes():
            return "y" + value.hex()
        case UUID():
            return f"u{value}"
        case datetime():
            if value.tzinfo is None:
                return "L" + value.isoformat()
            return "I" + value.astimezone(UTC).replace(tzinfo=None).isoformat() + "Z"
        case date():
            return "D" + value.isoformat()
        case time():
            return ("T" if value.tzinfo is None else "O") + value.isoformat()
        case timedelta():
            whole, rest = divmod(value, timedelta(seconds=1))
            return f"P{whole},{rest.microseconds * 1000}"
        case list() | tuple():
            return " ".join([f"[{len(value)}", *(as_java(element, ints) for element in value)])
        case set() | frozenset():
            return " ".join([f"({len(value)}", *sorted(as_java(element, ints) for element in value)])
        case dict():
            entries = (f"{as_java(k, ints)} {as_java(v, ints)}" for k, v in value.items())
            return " ".join([f"{{{len(value)}", *entries])
    raise AssertionError(value)


def key_as_java(key: list[Any], ints: str) -> str:
    return " ".join(as_java(value, ints) for value in key)


def ask_java(keys: list[str]) -> list[int]:
    """What `JavaHashes.java` answers: the deep hash of each key."""
    java = shutil.which("java")
    assert java is not None
    command = [java, "-Xshare:auto", "-XX:TieredStopAtLevel=1", str(HERE / "JavaHashes.java")]
    answers = subprocess.run(
        command, input="\n".join(keys) + "\n", capture_output=True, text=True, check=True
    )
    return [int(line) for line in answers.stdout.split()]


def short(key: str) -> str:
    """How the record names a key: by its text, of a long one the beginning."""
    return key if len(key) < 200 else f"{key[:60]}... {len(key)}"


def java_record() -> dict[str, dict[str, int]]:
    """What the record should be, from a live JDK."""
    record = {}
    for ints in ("long", "integer"):
        keys = [key_as_java(key, ints) for key in KEYS]
        record[ints] = dict(zip(map(short, keys), ask_java(keys), strict=True))
    return record


needs_java = pytest.mark.skipif(shutil.which("java") is None, reason="there is no java to ask")


@pytest.mark.parametrize("ints", ["long", "integer"])
def test_hashes_are_those_that_java_gave(ints: str) -> None:
    """The hashes are those in a record that Java wrote (D1, D2, D3)."""
    record: dict[str, int] = json.loads(RECORD.read_text())[ints]
    wrong = [key for key in KEYS if key_hash(key, ints) != record[short(key_as_java(key, ints))]]
    assert not wrong


@pytest.mark.slow
@needs_java
def test_the_record_is_what_java_says_today() -> None:
    """Java still computes the hashes of the record (D1, D2, D3)."""
    assert json.loads(RECORD.read_text()) == java_record()


@pytest.mark.slow
@needs_java
def test_any_other_key_hashes_as_in_java() -> None:
    """Random keys hash as Java hashes them (D1, D2, D3)."""
    rng = random.Random(2)
    keys = [[random_value(rng) for _ in range(rng.randrange(1, 4))] for _ in range(2000)]
    for ints in ("long", "integer"):
        said = ask_java([key_as_java(key, ints) for key in keys])
        wrong = [(key, java) for key, java in zip(keys, said, strict=True) if key_hash(key, ints) != java]
        assert not wrong, wrong[0]


def test_values_sent_as_json_go_where_storm_sends_them() -> None:
    """D3: the record was made by Storm itself."""
    messages = [json.loads(line) for line in (HERE / "storm_json.jsonl").read_text().splitlines()]
    assert len(messages) > 100
    for message in messages:
        for tasks in (7, 1_000_003):
            assert fields_task_index(message["t"], tasks, ints="json") == message[f"of_{tasks}"], message


if __name__ == "__main__":
    RECORD.write_text(json.dumps(java_record(), indent=0) + "\n")
