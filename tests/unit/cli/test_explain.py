import textwrap
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


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--cores", "3"], "topology.workers is not set: one per core, and the engine offers 3"),
        (["--cores", "90"], "topology.workers is not set: one per executor, and there are 6"),
        (["--cores", "3", "-c", "topology.workers=2"], "topology.workers is 2"),
        (
            ["-c", "spark.master=local[4]"],
            "topology.workers is not set: one per core, and the engine offers 4",
        ),
        (
            ["-c", "spark.master=yarn"],
            "topology.workers is not set: one per core, and how many cores there are is not known yet",
        ),
        (
            ["--cores", "3", "-c", "topology.max.task.parallelism=1"],
            "topology.workers is not set, and more workers would not help: every component has one executor",
        ),
    ],
)
def test_the_number_of_workers_has_a_reason(options, reason):
    """The cores of this host count if nothing else is said (A16)."""
    assert f"\nworkers ({reason})\n" in explain(WORD_COUNT, *options).stdout
    assert f", because {reason}\n" in explain(WORD_COUNT, "--phases", *options).stdout


def test_the_cores_of_this_host_count_unless_others_are_given(monkeypatch):
    monkeypatch.setattr("stormspark.cores.host_cores", lambda: 5)
    assert "one per core, and the engine offers 5" in explain(WORD_COUNT).stdout


def test_a_setting_of_a_wrong_type_is_refused():
    done = explain(WORD_COUNT, "-c", "topology.workers=two")
    assert done.exit_code == 2
    assert "topology.workers must be int, got 'two' of type str" in done.stderr


def test_a_file_without_a_topology_is_refused():
    done = explain(f"{WORD_COUNT}:WORD")
    assert done.exit_code == 2
    assert "not a Topology. Did you mean" in done.stderr
    assert f"{WORD_COUNT}:build" in done.stderr


@pytest.fixture
def wrong(tmp_path):
    path = tmp_path / "wrong_topology.py"
    path.write_text(
        textwrap.dedent("""\
            from stormspark import Config, Fields, TopologyBuilder
            from stormspark.testing import TestWordCounter, TestWordSpout

            def build():
                builder = TopologyBuilder()
                builder.set_spout("words", TestWordSpout())
                (
                    builder.set_bolt("count", TestWordCounter())
                    .fields_grouping("wrods", Fields("word"))
                    .shuffle_grouping("words", "other")
                )
                return builder.create_topology("wrong")

            def settings():
                return Config().set_num_workers(0)

            def fields():
                return Fields("a", "a")
            """)
    )
    return path


@pytest.mark.parametrize("command", ["explain", "run"])
def test_all_errors_of_a_topology_are_one_block(wrong, command):
    """J5: with the lines of the user's file; nothing is started."""
    done = CliRunner().invoke(main, [command, str(wrong)])
    assert done.exit_code == 2
    assert done.stderr.splitlines() == [
        "Error: topology 'wrong' has 2 errors:",
        f"  1. {wrong}:9: bolt 'count' subscribes to 'wrods', which does not exist; did you mean 'words'?",
        f"  2. {wrong}:10: bolt 'count' subscribes to stream 'other' of 'words' (declared at {wrong}:6), which "
        "declares 'default'",
    ]
    assert done.stdout == ""


@pytest.mark.parametrize(("name", "line"), [("settings", 15), ("fields", 18)])
def test_an_error_that_knows_no_line_is_reported_with_it(wrong, name, line):
    """J5, A11: the line of the user's file that it came from."""
    done = CliRunner().invoke(main, ["explain", f"{wrong}:{name}"])
    assert done.exit_code == 2
    assert f"\n  at {wrong}:{line}, in {name}: return " in done.stderr


def test_the_command_line_wins_over_the_topology_and_a_component_over_both(tmp_path):
    """`-c` overrides the topology's setting, and a component's own setting overrides both (A20, X71)."""
    path = tmp_path / "precedence_topology.py"
    path.write_text(
        textwrap.dedent("""\
            from stormspark import TopologyBuilder
            from stormspark.testing import TestWordSpout

            def build():
                builder = TopologyBuilder()
                builder.set_spout("capped", TestWordSpout(), 9).set_max_task_parallelism(4)
                builder.set_spout("free", TestWordSpout(), 9)
                return builder.create_topology("precedence", {"topology.max.task.parallelism": 3})
            """)
    )
    assert "capped: 4 tasks" in (out := explain(str(path)).stdout) and "free: 3 tasks" in out
    out = explain(str(path), "-c", "topology.max.task.parallelism=2").stdout
    assert "capped: 4 tasks" in out and "free: 2 tasks" in out


def test_the_phases_of_planning_are_printed_one_by_one():
    """`explain --phases` prints one line per phase of planning, in order (X41)."""
    lines = explain(WORD_COUNT, "--phases", "--workers", "2").stdout.splitlines()
    assert [line.split("  ")[0] for line in lines] == [
        "rules", "components", "transactions", "windows", "batch bolts", "load", "tasks", "workers", "packing", "locality",
        "crossing", "supersteps", "ends of batches", "end of input",
    ]  # fmt: skip
    assert lines[7:9] == [
        "workers          2 workers, because topology.workers is 2",
        "packing          2 workers with 4 tasks each",
    ]
    assert lines[9].endswith("while max spout pending holds their spouts: none")
    assert lines[11] == "supersteps       a tuple tree needs 2 exchanges to reach its leaves"


def test_phases_before_an_error_are_printed_and_the_error_is_the_same():
    """`explain --phases` prints the phases before an error, and then the same error as without it (J5)."""
    wrong = (WORD_COUNT, "-c", "stormspark.exactly.once=true", "-c", "topology.acker.executors=0")
    done = explain(*wrong, "--phases")
    assert done.exit_code == 2
    assert [line.split("  ")[0] for line in done.stdout.splitlines()] == ["rules", "components"]
    assert done.stderr == explain(*wrong).stderr != ""


def test_advice_comes_with_the_phases_too():
    assert (
        "did you mean topology.workers?" in explain(WORD_COUNT, "--phases", "-c", "topology.wrokers=2").stderr
    )
