"""`stormspark quickstart`: the project that it makes runs and passes its own tests, as its README says."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark.cli import main

FILES = {
    ".gitignore",
    "README.md",
    "job.py",
    "pyproject.toml",
    "tests/test_word_count.py",
    "word_count.ipynb",
    "word_count.py",
}
ROOT = Path(__file__).parents[2]


def quickstart(*arguments):
    return CliRunner().invoke(main, ["quickstart", *arguments], catch_exceptions=False)


@pytest.fixture(autouse=True)
def _here(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path[:])
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))
    yield
    sys.modules.pop("word_count", None)


@pytest.fixture
def project(tmp_path):
    done = quickstart("shop-words")
    assert done.exit_code == 0, done.output
    return tmp_path / "shop-words"


def files_of(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def python(project, *arguments):
    """Run a command in the project's folder, where only stormspark itself is on the module path, with an active environment."""
    command = [sys.executable, *map(str, arguments)]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # Spark starts `python3`
    environment = os.environ | {"PYTHONPATH": str(ROOT), "PATH": path}
    done = subprocess.run(
        command, cwd=project, env=environment, capture_output=True, text=True, check=False, timeout=1200
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_it_makes_the_files_that_it_says(project):
    assert files_of(project) == FILES
    assert "{{" not in "".join((project / name).read_text() for name in FILES)
    assert tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"] == "shop-words"
    assert json.loads((project / "word_count.ipynb").read_text())["nbformat"] == 4


def test_its_readme_names_every_file(project):
    named = set(re.findall(r"`([\w/]+\.\w+)`", (project / "README.md").read_text()))
    assert named == FILES - {".gitignore", "README.md", "pyproject.toml"}


def test_it_prints_what_to_do_next():
    printed = quickstart("words").output
    assert "made words with 7 files" in printed
    assert "    cd words\n    stormspark run word_count.py --engine local " in printed


@pytest.mark.parametrize(
    "name", ["../words", "a/b", ".", "", "1st", "-x", "wörter", "two words", "dash-", "a.b"]
)
def test_a_name_that_can_not_be_one_is_refused(name, tmp_path):
    done = quickstart("--", name)
    assert done.exit_code == 2
    assert f"{name!r} can't be the name of a project: use letters from a to z" in done.output
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["stormspark", "PySpark", "delta_spark"])
def test_a_project_does_not_take_the_name_of_what_it_needs(name, tmp_path):
    """`pip install` of the project would remove the package."""
    done = quickstart(name)
    assert done.exit_code == 2
    assert f"{name!r} is the name of a package that the project needs" in done.output
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["w", "Words2", "word_count", "a-b-c"])
def test_other_names_are_fine(name):
    assert quickstart(name).exit_code == 0


def test_an_empty_folder_is_used(tmp_path):
    (tmp_path / "words").mkdir()
    assert quickstart("words").exit_code == 0
    assert files_of(tmp_path / "words") == FILES


def test_a_folder_that_has_something_is_refused(tmp_path):
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / ".hidden").touch()
    done = quickstart("words")
    assert done.exit_code == 2
    assert "the folder words is here already and is not empty: choose another name" in done.output
    assert files_of(tmp_path / "words") == {".hidden"}


def test_twice_is_refused_and_changes_nothing(project):
    (project / "word_count.py").write_text("mine")
    assert quickstart("shop-words").exit_code == 2
    assert (project / "word_count.py").read_text() == "mine"


@pytest.mark.parametrize("make", [Path.touch, lambda path: path.symlink_to("nowhere")], ids=["file", "link"])
def test_what_is_no_folder_is_refused(make, tmp_path):
    make(tmp_path / "words")
    done = quickstart("words")
    assert done.exit_code == 2
    assert "there is a file words here already" in done.output


def test_a_folder_that_can_not_be_written_to_is_named(monkeypatch):
    def refuses(path, *_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refuses)
    done = quickstart("words")
    assert done.exit_code == 2
    assert re.search(r"the project can't be written to /.*words: Permission denied", done.output)


def test_its_topology_prints_the_words_and_ends(project):
    done = CliRunner().invoke(main, ["run", str(project / "word_count.py"), "--engine", "local"])
    assert done.exit_code == 0, done.output
    assert "  4 the\n" in done.output
    assert "shop-words on local" in done.output


@pytest.mark.slow
def test_its_own_tests_pass(project):
    assert "3 passed" in python(project, "-m", "pytest", "-q", "-p", "no:basilisp_test_runner")


@pytest.mark.slow
def test_it_is_formatted_as_ruff_does_it(project):
    python(project, "-m", "ruff", "format", "--isolated", "--check", "--line-length=110", ".")
    python(project, "-m", "ruff", "check", "--isolated", "--select=E,F,I,W,UP,B", "--line-length=110", ".")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
def test_its_job_and_its_notebook_run_on_spark(project):
    assert "count: emitted 15, executed 15, acked 15" in python(
        project, "job.py", "--checkpoint", "checkpoints/words", "topology.workers=2"
    )
    execute = (
        "import nbformat, nbclient\n"
        "notebook = nbformat.read('word_count.ipynb', as_version=4)\n"
        "nbclient.NotebookClient(notebook, timeout=1200).execute()\n"
        "outputs = [output for cell in notebook.cells for output in cell.get('outputs', ())]\n"
        "print(*(output.get('text') or output['data']['text/plain'] for output in outputs))\n"
    )
    printed = python(project, "-c", execute)
    assert "  4 the" in printed
    assert re.search(r"sentences +spout +1 +3 +0 +3 +0\n", printed), printed


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.long
def test_its_job_runs_by_spark_submit_and_its_topology_by_stormspark(project):
    import pyspark

    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    done = subprocess.run(
        [submit, "--master", "local[2]", "--py-files", "word_count.py", "job.py"],
        cwd=project,
        env=os.environ
        | {
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=1200,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "count: emitted 15, executed 15, acked 15" in done.stdout
    python(
        project, "-m", "stormspark", "run", "word_count.py", "-c", f"stormspark.log.dir={project / 'logs'}"
    )
    printed = "".join(path.read_text() for path in (project / "logs").glob("count-*.log"))
    assert "  4 the" in printed
