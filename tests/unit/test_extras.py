"""`stormspark.extras`: with the base alone the local engine runs, and what is missing is told in a sentence."""

from __future__ import annotations

import ast
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from stormspark import ArrowBolt, TopologyBuilder
from stormspark.connectors import DeltaBolt
from stormspark.errors import UnsupportedEnvironmentError
from stormspark.extras import EXTRAS, Missing, explained, missing, or_missing
from stormspark.testing import TestWordSpout

ROOT = Path(__file__).parents[2]

#: Runs the code after it where no extra is installed: an import of their packages fails as it would there.
_BASE_ONLY = f"""
import sys

class Hides:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {sorted(EXTRAS)!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hides())
"""


def in_base(
    code: str, *arguments: str, cwd: Path = ROOT, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run code in a Python that finds no package of an extra."""
    return subprocess.run(
        [sys.executable, "-c", _BASE_ONLY + code, *arguments],
        cwd=cwd,
        env={"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin", "HOME": str(cwd), "COLUMNS": "200"}
        | environment,
        capture_output=True,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
    )


def test_each_extra_of_the_code_is_one_of_the_package() -> None:
    """Else `pip install` would refuse what a message says."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    assert set(EXTRAS.values()) <= set(extras)
    base = {name.partition(">")[0] for name in project["dependencies"]}
    assert not base & {"pyspark", "pandas", "pyarrow", "deltalake", "delta-spark", "confluent-kafka", "py4j"}
    pinned = [one for name in extras if name not in {"dev", "bench"} for one in extras[name] if "==" in one]
    assert pinned == [], "an extra with a range fits what is there; a pin replaces it"


def test_no_module_but_that_of_extras_imports_them_when_it_is_imported() -> None:
    """Outside of the Spark engine. What is imported where it is used is another matter."""
    wrong = []
    for path in sorted((ROOT / "stormspark").rglob("*.py")):
        place = path.relative_to(ROOT / "stormspark").as_posix()
        if place.startswith(("spark/", "compat/on_path/")) or place in {"extras.py", "map_state/sql.py"}:
            continue
        for node in ast.parse(path.read_text()).body:
            names = [one.name for one in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            wrong += [f"{place}: {name}" for name in names if name.partition(".")[0] in EXTRAS]
    assert wrong == []


def test_a_stand_in_says_what_to_install_when_it_is_used() -> None:
    """And not before, nor if somebody only looks at it."""
    stand_in = Missing(missing("pyarrow"))
    assert not hasattr(stand_in, "__wrapped__")
    for use in (lambda: stand_in.schema, stand_in):
        with pytest.raises(
            UnsupportedEnvironmentError, match=r"needs pyarrow: pip install 'stormspark\[arrow\]'"
        ):
            use()
    made = or_missing(lambda: stand_in.schema([]))
    with pytest.raises(UnsupportedEnvironmentError, match="needs pyarrow"):
        _ = made.names
    assert or_missing(lambda: 3) == 3


def test_another_error_of_an_import_stays_as_it_is() -> None:
    """A module of the user or of this package, and an extension that does not load."""
    other = ModuleNotFoundError("No module named 'words'", name="words")
    assert explained(other, "the Spark engine") is other
    broken = ImportError("libarrow.so: no such file", name="pyarrow")
    assert explained(broken, "the Spark engine") is broken
    told = str(missing("pyarrow", "ArrowBolt", broken))
    assert "installed but can't be imported (libarrow.so: no such file)" in told


def test_a_component_says_when_it_is_declared_what_it_lacks(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It names the component and the line."""

    class Rows(ArrowBolt):
        def execute_batch(self, batch, source):  # type: ignore[no-untyped-def]
            """Nothing."""

    for package, bolt in (("deltalake", DeltaBolt(tmp_path)), ("pyarrow", Rows())):
        builder = TopologyBuilder()
        builder.set_spout("words", TestWordSpout())
        builder.set_bolt("out", bolt).shuffle_grouping("words")
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            with pytest.raises(
                UnsupportedEnvironmentError, match=rf"test_extras.py:\d+: bolt 'out' .* needs {package}: pip"
            ):
                builder.create_topology("t")


@pytest.mark.slow
def test_the_local_engine_runs_with_the_base_alone(tmp_path: Path) -> None:
    """With two workers, so that tuples travel in frames; ``explain`` too; and Spark says what it needs, or where it is."""
    run = "from stormspark.cli import main; main()"
    words = str(ROOT / "examples" / "alerts.py")
    assert in_base(run, "quickstart", "words", cwd=tmp_path).returncode == 0
    mine = tmp_path / "words" / "word_count.py"
    done = in_base(run, "run", str(mine), "--engine", "local", "--workers", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "4 the" in done.stdout + done.stderr
    assert in_base(run, "explain", words, cwd=tmp_path).returncode in {0, 2}
    on_spark = in_base(run, "run", str(mine), cwd=tmp_path, SPARK_HOME="/opt/spark")
    assert on_spark.returncode == 2
    assert "the Spark engine needs pyspark: pip install 'stormspark[spark]'" in on_spark.stderr
    assert "let this Python see that of SPARK_HOME: PYTHONPATH=/opt/spark/python:" in on_spark.stderr
    assert "Traceback" not in on_spark.stderr


@pytest.mark.slow
def test_every_module_but_those_of_spark_is_imported_with_the_base_alone() -> None:
    """So a missing package is told by what needs it."""
    code = """
import importlib, pkgutil, stormspark
wrong = []
for module in pkgutil.walk_packages(stormspark.__path__, "stormspark.", onerror=lambda name: None):
    name = module.name
    if name.startswith(("stormspark.spark", "stormspark.compat.on_path")) or name.endswith(("__main__", "map_state.sql")):
        continue
    try:
        importlib.import_module(name)
    except Exception as error:
        wrong.append(f"{name}: {error!r}")
print("\\n".join(wrong))
"""
    done = in_base(code)
    assert (done.returncode, done.stdout.strip()) == (0, ""), done.stderr
