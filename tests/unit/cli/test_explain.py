from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark.cli import main

WORD_COUNT = str(Path(__file__).parents[3] / "examples" / "word_count.py")


def explain(*arguments):
    return CliRunner().invoke(main, ["explain", *arguments], catch_exceptions=False)


def test_text_comes_before_mermaid():
    done = explain(WORD_COUNT)
    assert done.exit_code == 0
    assert done.stdout.startswith("topology word-count: 3 components")
    text, mermaid = done.stdout.split("\n\nflowchart LR\n")
    assert "lines -> split: shuffle" in text
    assert '"fields(word)"' in mermaid


@pytest.mark.parametrize(
    ("options", "text", "mermaid"),
    [
        (["--format", "text"], True, False),
        (["--format", "mermaid"], False, True),
        (["--mermaid"], False, True),
        (["--format", "both"], True, True),
    ],
)
def test_one_of_them_can_be_had_alone(options, text, mermaid):
    out = explain(WORD_COUNT, *options).stdout
    assert ("topology word-count" in out, "flowchart LR" in out) == (text, mermaid)


def test_the_command_line_changes_the_plan():
    assert "2 workers" in explain(WORD_COUNT, "--workers", "2").stdout
    assert "2 workers" in explain(WORD_COUNT, "-c", "topology.workers=2").stdout
    assert "3 components, 3 tasks" in explain(WORD_COUNT, "-c", "topology.max.task.parallelism=1").stdout


def test_a_setting_of_a_wrong_type_is_refused():
    done = explain(WORD_COUNT, "-c", "topology.workers=two")
    assert done.exit_code == 2
    assert "topology.workers must be int, got 'two' of type str" in done.stderr


def test_a_file_without_a_topology_is_refused():
    done = explain(f"{WORD_COUNT}:WORD")
    assert done.exit_code == 2
    assert "no Topology. Did you mean" in done.stderr
    assert f"{WORD_COUNT}:build" in done.stderr
