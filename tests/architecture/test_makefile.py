"""The Makefile works wherever somebody has put the repository."""

from __future__ import annotations

import re

from tests.parity import ROOT


def test_the_path_of_the_repository_may_have_spaces() -> None:
    """Shells would take its parts for words of their own. A variable that is exported needs no quotes."""
    lines = (ROOT / "Makefile").read_text().splitlines()
    bare = [
        line for line in lines if re.search(r'(?<!")\$\(CURDIR\)', line) and not line.startswith("export ")
    ]
    assert any('"$(CURDIR)/' in line for line in lines)
    assert bare == []
