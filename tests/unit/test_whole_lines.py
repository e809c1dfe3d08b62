from __future__ import annotations

from pathlib import Path

import pytest

from tests.whole_lines import whole_lines


@pytest.mark.parametrize(
    ("written", "lines"),
    [
        (b"", []),
        (b"[1", []),
        (b"[1]\n", ["[1]"]),
        (b"[1]\n\n[2", ["[1]", ""]),
        ("[1]\nä".encode()[:-1], ["[1]"]),
    ],
)
def test_half_a_line_is_none(written: bytes, lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(written)
    assert whole_lines(tmp_path / "file") == lines
