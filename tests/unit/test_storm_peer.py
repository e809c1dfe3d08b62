"""The copy of the Storm peer in which it builds: it follows its sources, and lacks no case without saying so."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import storm_peer


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The sources of a peer that prints one figure and can't be written to."""
    folder = tmp_path / "sources"
    java = folder / "src" / "main" / "java" / "peer" / "storm"
    java.mkdir(parents=True)
    (java / "Bench.java").write_text("class Bench {}")
    (folder / "run.sh").write_text("#!/bin/sh\necho '{\"words_per_s\": 7}'\n")
    (folder / "run.sh").chmod(0o555)
    monkeypatch.setenv("STORM_PEER", str(folder))
    monkeypatch.setattr(storm_peer, "ROOT", tmp_path)
    return folder


def test_the_copy_takes_what_is_new_and_keeps_what_it_built(sources: Path) -> None:
    copy = storm_peer.peer_folder()
    (copy / "target").mkdir()
    (copy / "target" / "cp.txt").write_text("built")
    java = Path("src", "main", "java", "peer", "storm")
    (sources / java / "Waiting.java").write_text("class Waiting {}")
    (sources / java / "Bench.java").write_text("class Bench { }")
    assert storm_peer.peer_folder() == copy
    assert (copy / java / "Waiting.java").read_text() == "class Waiting {}"
    assert (copy / java / "Bench.java").read_text() == "class Bench { }"
    assert (copy / "target" / "cp.txt").read_text() == "built"


def test_what_has_not_changed_is_not_copied_again(sources: Path) -> None:
    copied = storm_peer.peer_folder() / "run.sh"
    before = copied.stat().st_mtime_ns
    storm_peer.peer_folder()
    assert copied.stat().st_mtime_ns == before


def test_a_case_runs_where_the_peer_has_its_source(sources: Path) -> None:
    assert storm_peer.run_storm("wordcount_acked", 1, 1) == {"words_per_s": 7}


def test_an_older_peer_does_not_measure_something_else_under_the_name_of_a_case(sources: Path) -> None:
    copied = storm_peer.peer_folder() / "src" / "main" / "java" / "peer" / "storm" / "Waiting.java"
    copied.write_text("class Waiting {}")  # as a newer peer would have left it
    with pytest.raises(FileNotFoundError, match=r"has no Waiting\.java, which has the case polling"):
        storm_peer.run_storm("polling", 1, 1, source="Waiting.java")
