import json
import logging
import signal
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark import __version__
from stormspark.cli import main
from stormspark.cli.run import ENGINES
from stormspark.errors import ComponentError, StormsparkError, UnsupportedEnvironmentError
from tests.unit.cli.topology_file import write_topology
from tests.unit.scripted_topology import Moment, ScriptedTopology

MOMENTS = [
    Moment(0, batches=0),
    Moment(1.0, emitted=100, executed=80, acked=70, pending=30),
    Moment(3.0, 100, 100, 100),
]


@pytest.fixture
def file(tmp_path):
    conf = {"topology.workers": 3, "topology.debgu": True}
    return write_topology(tmp_path / "numbers_topology.py", "numbers", conf)


@pytest.fixture
def four(tmp_path):
    """A topology with four executors that sets no number of workers."""
    return write_topology(tmp_path / "four_topology.py", "numbers", {"topology.debgu": True}, tasks=4)


@pytest.fixture
def script(monkeypatch):
    """Put a scripted topology in the place of both engines; gives what they were asked to run."""
    asked = []

    def script(topology):
        def start(run):
            asked.append(run)
            return topology

        for name in ENGINES:
            monkeypatch.setitem(ENGINES, name, start)
        return asked

    return script


@pytest.fixture(autouse=True)
def goes_on(monkeypatch):
    """The process of the tests must not end at once."""
    monkeypatch.setattr("stormspark.cli.run.leave_at_once", sys.exit)


def stormspark(*arguments):
    return CliRunner().invoke(main, ["run", *map(str, arguments)], catch_exceptions=False)


def test_a_run_shows_progress_and_the_table(file, script):
    script(ScriptedTopology(MOMENTS, batch_every=0.5))
    done = stormspark(file, "--until-idle", "2")
    assert done.exit_code == 0
    assert "starting numbers on spark" in done.stderr
    assert "tuples/s" in done.stderr
    assert done.stdout.startswith("scripted on script: ")
    assert [line.split()[0] for line in done.stdout.splitlines() if line.startswith(("spout", "bolt"))] == [
        "spout",
        "bolt",
    ]


def test_the_command_line_wins_over_the_topology(file, script):
    asked = script(ScriptedTopology(MOMENTS, ends_at=1.0))
    stormspark(
        file, "--workers", "2", "-c", "topology.workers=9", "-c", "mine=text", "--conf", "topology.debug=true"
    )
    assert (
        asked[0].plan.conf.items() >= {"topology.workers": 2, "mine": "text", "topology.debug": True}.items()
    )


def test_what_is_not_given_is_not_overridden(file, script):
    asked = script(ScriptedTopology(MOMENTS, ends_at=1.0))
    stormspark(file, "--engine", "local")
    assert asked[0].plan.conf["topology.workers"] == 3  # the file's own
    assert asked[0].engine == "local"


@pytest.mark.parametrize(
    ("options", "workers"),
    [
        (["--master", "local[2]"], 2),
        (["--master", "local[3,4]", "-c", "spark.master=local[2]"], 2),
        (["--master", "local[9]"], 4),  # as many as executors
        (["--engine", "local"], 1),
        (["--master", "local[2]", "--workers", "3"], 3),
    ],
)
def test_workers_follow_the_cores_of_the_engine(four, script, options, workers):
    """A16: where nobody sets their number."""
    asked = script(ScriptedTopology(MOMENTS, ends_at=1.0))
    stormspark(four, *options)
    assert asked[0].plan.workers == workers


def test_a_cluster_is_started_before_its_cores_are_counted(four, monkeypatch):
    """Only a running cluster knows its cores. With a number of workers, nobody counts them."""
    pytest.importorskip("pyspark")
    from stormspark import spark

    events = []

    def started(plan, conf, checkpoint, master):
        events.append((plan.workers, master))
        return "session"

    def counted(session, wait_secs):
        events.append((session, wait_secs))
        return 2

    def submitted(plan, session, **options):
        events.append((plan.workers, session))
        return ScriptedTopology(MOMENTS, ends_at=1.0)

    monkeypatch.setattr(spark, "session_for", started)
    monkeypatch.setattr(spark, "session_cores", counted)
    monkeypatch.setattr(spark, "submit", submitted)
    assert stormspark(four, "--master", "spark://host:7077").exit_code == 0
    assert events == [(1, "spark://host:7077"), ("session", 30), (2, "session")]
    events.clear()
    assert stormspark(four, "--master", "spark://host:7077", "--workers", "4").exit_code == 0
    assert events == [(4, None)]


def test_options_of_spark_reach_spark(file, script, tmp_path):
    asked = script(ScriptedTopology(MOMENTS, ends_at=1.0))
    stormspark(file, "--checkpoint", tmp_path / "state", "--master", "local[2]")
    assert (asked[0].checkpoint, asked[0].master) == (str(tmp_path / "state"), "local[2]")


@pytest.mark.parametrize("option", ["--checkpoint", "--master"])
def test_options_of_spark_are_refused_elsewhere(file, script, option):
    asked = script(ScriptedTopology(MOMENTS))
    done = stormspark(file, "--engine", "local", option, "x")
    assert done.exit_code == 2
    assert "need --engine spark" in done.stderr
    assert not asked


def test_misspelt_settings_are_warned_about_wherever_they_stand(file, script):
    script(ScriptedTopology(MOMENTS, ends_at=1.0))
    done = stormspark(file, "-c", "topology.wrokers=2", "-c", "my.own=1")
    assert done.exit_code == 0
    assert "Warning: unknown setting topology.wrokers: did you mean topology.workers?" in done.stderr
    assert "Warning: unknown setting topology.debgu: did you mean topology.debug?" in done.stderr
    assert "my.own" not in done.stderr


NOTHING = [Moment(0, batches=0), Moment(1.0, batches=4)]
DOWN = [Moment(0, batches=0), Moment(1.0, emitted=9, executed=9, acked=9, down=1)]
UNWRITTEN = [Moment(0, batches=0), Moment(1.0, emitted=9, executed=9, acked=9, unwritten=1)]
ALL_FAILED = [Moment(0, batches=0), Moment(1.0, emitted=9, executed=9, failed=9)]


@pytest.mark.parametrize(
    ("moments", "text", "allow"),
    [
        (NOTHING, "nothing was emitted by spout", "nothing-done"),
        (DOWN, "spout: 1 of 2 tasks had raised an error and had not started again at the end", "tasks-down"),
        (
            UNWRITTEN,
            "spout: the deactivate or close of 1 of 2 tasks raised an error, so something may be unwritten",
            "unwritten",
        ),
        (ALL_FAILED, "spout: 9 messages failed, and none was acked", "all-failed"),
    ],
)
def test_a_topology_that_did_not_do_its_work_does_not_end_with_0(file, script, moments, text, allow):
    script(ScriptedTopology(moments, ends_at=2.0))
    done = stormspark(file)
    assert done.exit_code == 3
    assert done.stderr.endswith(f"{text}\nexit code 3; --allow {allow} makes it 0\n")
    script(ScriptedTopology(moments, ends_at=2.0))
    done = stormspark(file, "--allow", allow)
    assert done.exit_code == 0 and text not in done.stderr


@pytest.mark.parametrize("options", [(), ("--allow", "dead-letters")])
@pytest.mark.parametrize("error", [None, StormsparkError("the disk is full")])
def test_rows_that_were_given_up_are_told_once(file, script, options, error):
    """Also where another exit code says something else, or they are allowed."""
    moments = [Moment(0, batches=0), Moment(1.0, emitted=9, executed=9, acked=6, failed=3, dead_letters=3)]
    script(ScriptedTopology(moments, ends_at=2.0, error=error))
    done = stormspark(file, *options)
    assert done.exit_code == (1 if error else 0 if options else 3)
    assert (done.stdout + done.stderr).count("given up") == 1
    assert "spout: 3 rows were given up; see the log of the task" in done.stderr


def test_the_progress_line_says_what_the_start_waits_for(file, script):
    topology = ScriptedTopology([Moment(0, batches=0), Moment(2.0, emitted=5, executed=5)], ends_at=3.0)
    topology.start = "workers start, 1 of 2 are up"
    script(topology)
    lines = stormspark(file).stderr.splitlines()
    assert "scripted 0 s  starts: workers start, 1 of 2 are up" in lines


def test_sources_without_new_rows_are_no_failure(file, script):
    script(ScriptedTopology(NOTHING, ends_at=2.0))
    assert stormspark(file, "--trigger", "available-now").exit_code == 0


def test_a_topology_that_is_interrupted_at_once_has_done_nothing_and_that_is_all_right(file, script):
    topology = ScriptedTopology(NOTHING)
    topology.events[0.5] = lambda: signal.raise_signal(signal.SIGINT)
    script(topology)
    assert stormspark(file).exit_code == 0


def test_an_error_counts_more_than_a_shortfall(file, script):
    script(ScriptedTopology(ALL_FAILED, ends_at=2.0, error=ComponentError("it broke")))
    assert stormspark(file).exit_code == 1


def test_json_goes_to_a_file(file, script, tmp_path):
    script(ScriptedTopology(MOMENTS))
    done = stormspark(file, "--seconds", "4", "--json", tmp_path / "out.json")
    assert done.exit_code == 0
    summary = json.loads((tmp_path / "out.json").read_text())
    assert summary["topology"] == "scripted"
    assert summary["components"]["spout"]["acked"] == 100


def test_json_on_standard_output_is_alone_there(file, script):
    script(ScriptedTopology(MOMENTS))
    done = stormspark(file, "--seconds", "4", "--json", "-")
    assert json.loads(done.stdout)["components"]["bolt"]["executed"] == 100
    assert "scripted on script" in done.stderr


def test_json_that_could_not_be_written_is_refused_before_the_run(file, script, tmp_path):
    asked = script(ScriptedTopology(MOMENTS))
    done = stormspark(file, "--json", tmp_path / "none" / "out.json")
    assert done.exit_code == 2
    assert "there is no folder" in done.stderr
    done = stormspark(file, "--seconds", "4", "--json", tmp_path)
    assert done.exit_code == 2
    assert "is a folder, give the name of a file" in done.stderr
    assert not asked


def test_json_that_may_not_be_written_is_refused_before_the_run(file, script, tmp_path, monkeypatch):
    asked = script(ScriptedTopology(MOMENTS))
    (tmp_path / "there.json").touch()
    # Root may write everywhere, so the answer of the operating system is played.
    monkeypatch.setattr("os.access", lambda path, mode: not Path(path).is_relative_to(tmp_path))
    done = stormspark(file, "--seconds", "4", "--json", tmp_path / "new.json")
    assert done.exit_code == 2
    assert "takes no new file: permission denied" in done.stderr
    done = stormspark(file, "--seconds", "4", "--json", tmp_path / "there.json")
    assert done.exit_code == 2
    assert "can't be written: permission denied" in done.stderr
    assert not asked


def test_a_topology_that_stops_with_an_error_tells_the_end_of_it(file, script, tmp_path):
    trace = "\n".join(f"  frame {number}" for number in range(50))
    error = ComponentError(f"bolt 'split', task 4: raised 10 times in a row\n{trace}\nValueError: no number")
    script(ScriptedTopology(MOMENTS, ends_at=2.0, error=error))
    done = stormspark(file, "--json", tmp_path / "out.json")
    assert done.exit_code == 1
    assert "numbers stopped: ComponentError: bolt 'split', task 4: raised 10 times in a row" in done.stderr
    assert done.stderr.rstrip().endswith("ValueError: no number")
    assert "frame 49" in done.stderr
    assert "frame 3\n" not in done.stderr
    assert (tmp_path / "out.json").exists(), "figures are worth most where something went wrong"


def test_a_component_that_cannot_be_prepared_is_an_error_of_the_topology(file, monkeypatch):
    def start(run):
        raise ComponentError("bolt 'split' raised in prepare: OSError: none\nTraceback ...\nOSError: none")

    monkeypatch.setitem(ENGINES, "local", start)
    done = stormspark(file, "--engine", "local")
    assert done.exit_code == 1
    assert "numbers stopped: ComponentError: bolt 'split' raised in prepare: OSError: none" in done.stderr


def test_warnings_are_shown_as_lines(file, script):
    topology = ScriptedTopology(MOMENTS, ends_at=2.0)
    topology.events[1.0] = lambda: logging.getLogger("stormspark.task.split").error("split[0]: no number")
    script(topology)
    assert "\nsplit[0]: no number\n" in stormspark(file).stderr


def test_what_tasks_print_is_kept_out_of_the_json(file, script):
    topology = ScriptedTopology(MOMENTS, ends_at=2.0)
    topology.events[1.0] = lambda: print("from a task")
    script(topology)
    done = stormspark(file, "--json", "-")
    assert json.loads(done.stdout)
    assert "from a task" in done.stderr


def test_ctrl_c_ends_a_run_well(file, script):
    topology = ScriptedTopology(MOMENTS)
    topology.events[1.0] = lambda: signal.raise_signal(signal.SIGINT)
    script(topology)
    done = stormspark(file)
    assert done.exit_code == 0
    assert "stopping; what is under way" in done.stderr
    assert done.stdout.startswith("scripted on script: ")


def test_ctrl_c_twice_ends_it_at_once(file, script, monkeypatch):
    monkeypatch.setattr(
        sys.modules["stormspark.ui.watch"], "ONE_SECS", 0.0
    )  # the script's seconds pass at once
    topology = ScriptedTopology(MOMENTS, stop_takes=60.0)
    topology.events = {at: lambda: signal.raise_signal(signal.SIGINT) for at in (1.0, 2.0)}
    script(topology)
    done = stormspark(file)
    assert done.exit_code == 130
    assert topology.calls == ["stop", "kill"]
    assert "ending at once" in done.stderr
    assert done.stdout.startswith("scripted on script: ")


def test_warnings_of_the_start_are_lines_too(file, monkeypatch):
    def start(run):
        logging.getLogger("stormspark.task.split").warning(
            "split[0]: Traceback\n  frame\nValueError: no number"
        )
        return ScriptedTopology(MOMENTS, ends_at=1.0)

    monkeypatch.setitem(ENGINES, "spark", start)
    stderr = stormspark(file).stderr
    assert "\nsplit[0]: Traceback ValueError: no number\n" in stderr
    assert "frame" not in stderr


def test_the_logs_are_named_where_they_are_known(file, script):
    topology = ScriptedTopology(MOMENTS, ends_at=1.0)
    topology.log_folder = "/var/log/numbers"
    script(topology)
    assert "logs: /var/log/numbers" in stormspark(file).stderr


def test_an_engine_that_cannot_start_is_one_line(file, monkeypatch):
    def start(run):
        raise UnsupportedEnvironmentError("Spark needs Java 17 or newer, found none")

    monkeypatch.setitem(ENGINES, "spark", start)
    done = stormspark(file)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[-1] == "Error: Spark needs Java 17 or newer, found none"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--workers", "0"], "0 is not in the range"),
        (["--seconds", "0"], "0.0 is not in the range"),
        (["--until-idle", "-1"], "-1.0 is not in the range"),
        (["--engine", "flink"], "'flink' is not one of 'spark', 'local'"),
        (["-c", "no-assignment"], "expected key=value, got 'no-assignment'"),
    ],
)
def test_wrong_usage(file, script, arguments, said):
    asked = script(ScriptedTopology(MOMENTS))
    done = stormspark(file, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert not asked


def test_a_file_that_is_not_there():
    done = stormspark("none.py")
    assert done.exit_code == 2
    assert done.stderr == "Error: none.py does not exist\n"


def test_the_version():
    done = CliRunner().invoke(main, ["--version"])
    assert done.output == f"stormspark {__version__}\n"
