"""Topologies in Flux's ways, by the real command line on both engines."""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

from tests.kafka_broker import KafkaBroker
from tests.legacy.flux.running import stormspark

# Each starts the command line, and most wait until their topology has been quiet for seconds.
pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
WORD_COUNT = HERE / "topologies" / "word_count.yaml"
#: The conformance cases run a topology of Flux on Spark, and tests/legacy/streamparse the command line.
LONG_ON_SPARK = ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]


@pytest.fixture
def properties(tmp_path: Path) -> Path:
    file = tmp_path / "dev.properties"
    file.write_text('where = files\nworkers = 2\nwords.of.each.task: 40\nsizes = ["2", "3"]\n')
    return file


def run(file: Path, engine: str, out: Path, *options: object, quiet_secs: float = 3) -> tuple[list[str], str]:
    """The lines in all files that the topology has written, and what the command line said."""
    out.mkdir()
    done = stormspark(
        *("run", file, "--engine", engine, "--until-idle", quiet_secs, "--env-filter", *options),
        env={"OUT": str(out)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for path in sorted(out.glob("*.txt")) for line in path.read_text().splitlines()]
    return lines, done.stdout + done.stderr


@pytest.mark.parametrize("engine", LONG_ON_SPARK)
def test_a_file_with_includes_and_variables_runs(engine: str, tmp_path: Path, properties: Path) -> None:
    """K13-K19, K10: stock classes, an included file, properties and the environment, and a bolt that is left out."""
    lines, said = run(WORD_COUNT, engine, tmp_path / "out", "--filter", properties)
    last: Counter[str] = Counter()
    for line in lines:
        word, count = line.split("|")
        last[word] = max(last[word], int(count))
    assert last.total() == len(lines) == 80
    assert "words-to-files" in said
    assert (
        "bolt 'forgotten' is left out, because no stream leads to it (no stream with `to: forgotten`)" in said
    )


@pytest.mark.parametrize("engine", LONG_ON_SPARK)
def test_an_eco_file_runs(engine: str, tmp_path: Path) -> None:
    """K22: streams with ids run; resources are kept and said to change nothing, and so are options of a JVM."""
    lines, said = run(HERE / "topologies" / "eco.yaml", engine, tmp_path / "out")
    assert len(lines) == 60
    assert "topology.component.jvmoptions changes nothing here" in said


@pytest.mark.parametrize("engine", LONG_ON_SPARK)
def test_shell_components_run(engine: str, tmp_path: Path) -> None:
    """K20: a spout and a bolt whose scripts are in the folder resources beside the YAML."""
    lines, _ = run(HERE / "topologies" / "sentences.yaml", engine, tmp_path / "out", quiet_secs=5)
    counts = Counter(line.partition("|")[0] for line in lines)
    assert counts == Counter(dict.fromkeys("wind blows rain falls sun shines again".split(), 5) | {"the": 15})


@pytest.mark.parametrize("engine", LONG_ON_SPARK)
def test_java_class_names_run_by_a_file_of_classes(engine: str, tmp_path: Path) -> None:
    """K14-K16, K23: enums, reflists, factories, properties, a window, a custom grouping and a hook, all by Java's names."""
    lines, _ = run(HERE / "acme" / "orders.yaml", engine, tmp_path / "out", quiet_secs=5)
    american = [f"route {number} {number // 10}" for number in range(1, 40, 2)]
    assert sorted(line for line in lines if line.startswith("route")) == sorted(american)
    windows = [float(line.removeprefix("sums EUR")) for line in lines if line.startswith("sums EUR")]
    assert len(windows) == 5 and sum(windows) == 2 * sum(range(0, 40, 2))
    marks = sorted(path.name for path in (tmp_path / "out").glob("worker-*"))
    assert marks == ["worker-0", "worker-1"]


def test_a_topology_source_runs(tmp_path: Path) -> None:
    """K21: a class that makes the topology, with its name and configuration from the file."""
    lines, said = run(HERE / "acme" / "existing.yaml", "local", tmp_path / "out")
    assert sorted(lines) == sorted(f"orders {number} US" for number in range(8))
    assert "existing-orders" in said


@pytest.mark.slow
def test_a_topic_is_read(kafka: KafkaBroker, tmp_path: Path) -> None:
    """K1, K7, K23: a KafkaSpout by Java's builder."""
    topic = f"flux-{tmp_path.name}".replace("_", "-")
    kafka.create_topic(topic, 2)
    kafka.produce(topic, [f"word-{number % 3}".encode() for number in range(30)])
    properties = tmp_path / "kafka.properties"
    properties.write_text(f"servers = {kafka.bootstrap}\ntopic = {topic}\n")
    file = HERE / "topologies" / "kafka.yaml"
    lines, _ = run(file, "local", tmp_path / "out", "--filter", properties, quiet_secs=6)
    assert Counter(line.partition("|")[0] for line in lines) == {f"word-{n}": 10 for n in range(3)}


def test_jdbc_bolts_run(tmp_path: Path) -> None:
    """K11, K23: Storm's names, with a URL of JDBC."""
    (tmp_path / "out").mkdir()
    with contextlib.closing(sqlite3.connect(tmp_path / "out" / "names.db")) as database, database:
        database.execute("CREATE TABLE names (word TEXT, name TEXT)")
        database.execute("CREATE TABLE seen (word TEXT, name TEXT)")
        database.executemany("INSERT INTO names VALUES (?, ?)", [("nathan", "Nathan"), ("mike", "Mike")])
    file = HERE / "topologies" / "jdbc.yaml"
    done = stormspark(
        *("run", file, "--engine", "local", "--until-idle", 1, "--env-filter"),
        env={"OUT": str(tmp_path / "out")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    with contextlib.closing(sqlite3.connect(tmp_path / "out" / "names.db")) as database:
        seen = Counter(database.execute("SELECT word, name FROM seen"))
    assert set(seen) == {("nathan", "Nathan"), ("mike", "Mike")}


def test_explain_is_flux_s_dry_run(properties: Path) -> None:
    """K19: the plan is printed, nothing runs; what is missing is told with its line."""
    done = stormspark("explain", WORD_COUNT, "--filter", properties, "--env-filter", env={"OUT": "/tmp"})
    assert done.returncode == 0
    assert "topology words-to-files: 4 components, 7 tasks, 2 workers" in done.stdout
    assert "count -> write: local or shuffle" in done.stdout.replace("_", " ").replace("-or-", " or ")
    done = stormspark("explain", WORD_COUNT)
    assert done.returncode == 2
    assert f"{WORD_COUNT}:2: nothing to replace ${{where}} with: give --filter FILE" in done.stderr
    assert f"Error: {WORD_COUNT}:18: spout 'words': parallelism must be a whole number" in done.stderr


def test_the_command_line_s_settings_win(properties: Path) -> None:
    """K19, A20: -c and --workers are laid over the file's configuration."""
    done = stormspark(
        "explain", WORD_COUNT, "--filter", properties, "--workers", 3, "-c", "topology.debug=maybe"
    )
    assert done.returncode == 2
    assert "topology.debug" in done.stderr
    done = stormspark("explain", WORD_COUNT, "--filter", properties, "--workers", 3)
    assert ", 3 workers" in done.stdout


def test_an_error_is_one_message(tmp_path: Path) -> None:
    """K13, K19: no traceback, exit code 2."""
    file = tmp_path / "slip.yaml"
    file.write_text("name: slip\nspout: []\n")
    done = stormspark("run", file, "--engine", "local")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"Error: {file}:2: a topology has no key 'spout': did you mean 'spouts'?\n"
