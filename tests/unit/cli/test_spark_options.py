"""Options of spark-submit: what they become, and what is said of a local file that is not there, before Spark starts."""

import zipfile

import pytest
from click.testing import CliRunner

from stormspark.cli import main
from stormspark.cli.run import ENGINES
from tests.unit.cli.topology_file import write_topology
from tests.unit.scripted_topology import Moment, ScriptedTopology


@pytest.fixture(autouse=True)
def there(tmp_path, monkeypatch):
    """Be in a folder with a topology, two jars and a file of properties."""
    monkeypatch.chdir(tmp_path)
    conf = {"topology.workers": 1, "spark.jars": "of-the-topology.jar"}
    write_topology(tmp_path / "optional.py", "optional", conf)
    for name in ("a.jar", "b.jar", "env.tar.gz"):
        (tmp_path / name).touch()
    (tmp_path / "some.conf").write_text(
        "spark.executor.memory   2g\nspark.jars=of-the-file.jar\nspark.task.cpus 2\nother.key 1\n"
    )
    return tmp_path


@pytest.fixture
def run(monkeypatch):
    """`stormspark run` with a scripted engine: what it said, its exit code, and what the engine was asked for."""
    asked = []

    def start(wanted):
        asked.append(wanted)
        return ScriptedTopology([Moment(0, batches=1), Moment(1.0, 1, 1, 1)])

    for engine in ENGINES:
        monkeypatch.setitem(ENGINES, engine, start)

    def run(*arguments, file="optional.py"):
        done = CliRunner().invoke(
            main,
            ["run", file, "--seconds", "1", "--allow", "nothing-done", *arguments],
            catch_exceptions=False,
        )
        conf = (
            {key: value for key, value in asked[-1].plan.conf.items() if key.startswith("spark.")}
            if asked
            else {}
        )
        return done, conf

    return run


def test_options_are_settings_of_spark_as_for_spark_submit(run):
    done, conf = run(
        "--packages", "g:a:1", "--exclude-packages", "g:b", "--repositories", "https://repository.invalid",
        "--files", "a.jar#b", "--archives", "env.tar.gz#env,hdfs://name/other.zip", "--conf", "spark.ui.enabled=true",
        "-c", "spark.executor.memory=1.50g",
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert conf == {
        "spark.jars": "of-the-topology.jar",
        "spark.jars.packages": "g:a:1",
        "spark.jars.excludes": "g:b",
        "spark.jars.repositories": "https://repository.invalid",
        "spark.files": "a.jar#b",
        "spark.archives": "env.tar.gz#env,hdfs://name/other.zip",
        "spark.ui.enabled": "true",
        "spark.executor.memory": "1.50g",
    }


def test_resources_are_settings_of_spark_too(run):
    done, conf = run("--driver-memory", "2g", "--num-executors=3", "--deploy-mode", "client")
    assert done.exit_code == 0, done.output
    assert conf == {
        "spark.jars": "of-the-topology.jar",
        "spark.driver.memory": "2g",
        "spark.executor.instances": "3",
    }
    done, _ = run("--deploy-mode", "cluster")
    assert done.exit_code == 2
    assert "`stormspark submit` starts one on the cluster" in " ".join(done.output.split())


def test_an_option_counts_more_than_conf_and_conf_more_than_the_file(run):
    done, conf = run("--properties-file", "some.conf", "--jars", "*.jar", "--conf", "spark.task.cpus=1")
    assert conf == {"spark.jars": "a.jar,b.jar", "spark.executor.memory": "2g", "spark.task.cpus": "1"}
    assert "sets other.key, which Spark ignores" in done.stderr


@pytest.mark.parametrize("option", ["--jars", "--py-files", "--files", "--archives"])
def test_a_local_file_that_is_missing_is_told_before_spark_starts(run, option, there):
    done, conf = run(option, "a.jar,nowhere.zip")
    assert (done.exit_code, conf) == (2, {})
    assert f"nowhere.zip does not exist on this host, as seen from {there}" in " ".join(done.output.split())


def test_patterns_that_match_nothing_and_missing_properties_are_told(run):
    assert "lib/*.jar matches no file on this host" in run("--jars", "lib/*.jar")[0].output
    done, _ = run("--properties-file", "nowhere.conf")
    assert done.exit_code == 2
    assert "nowhere.conf" in done.output


def test_the_topology_imports_what_is_shipped(run, there):
    with zipfile.ZipFile(there / "shipped.zip", "w") as archive:
        archive.writestr("shipped_with_it.py", "NUMBER = 1\n")
    (there / "beside").mkdir()
    (there / "beside" / "lone_module.py").write_text("NUMBER = 2\n")
    (there / "needs.py").write_text(
        "from shipped_with_it import NUMBER\nimport lone_module\nfrom optional import build\n"
    )
    for engine in ("spark", "local"):
        done, conf = run(
            "--engine", engine, "--py-files", "shipped.zip,beside/lone_module.py", file="needs.py"
        )
        assert done.exit_code == 0, done.output
        assert conf["spark.submit.pyFiles"] == "shipped.zip,beside/lone_module.py"


def test_delta_is_asked_for(run):
    assert run("--delta")[0].exit_code == 0


@pytest.mark.parametrize(
    "options", [["--delta"], ["--packages", "g:a:1"], ["--properties-file", "some.conf"]]
)
def test_the_local_engine_has_no_spark_for_them(run, options):
    done, _ = run("--engine", "local", *options)
    assert done.exit_code == 2
    assert "need --engine spark" in done.output


def test_settings_of_spark_may_be_there_for_the_local_engine(run):
    assert run("--engine", "local", "-c", "spark.executor.memory=1g")[0].exit_code == 0
