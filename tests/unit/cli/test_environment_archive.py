"""`stormspark submit --environment-archive`: a file or a URL, its name on the cluster, and what a driver would miss in it."""

from __future__ import annotations

import io
import shlex
import tarfile
import zipfile

import pytest
from click.testing import CliRunner

from stormspark import spark
from stormspark.cli import main
from tests.unit.cli.topology_file import write_topology

PACKAGES = "lib/python3.11/site-packages"
COMPLETE = [f"{PACKAGES}/{name}/__init__.py" for name in ("stormspark", "pandas", "pyarrow")] + ["bin/python"]
YARN = ("--master", "yarn", "--deploy-mode", "cluster", "--checkpoint", "hdfs:///flow")


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch):
    """Be in a project with a topology, and with a Spark that nobody starts."""
    (tmp_path / "home" / "bin").mkdir(parents=True)
    (tmp_path / "home" / "bin" / "spark-submit").touch(0o755)
    monkeypatch.setenv("SPARK_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(spark, "require_java", lambda *_: None)
    for name in ("SPARK_CONF_DIR", "SPARK_SUBMIT_OPTS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    write_topology(tmp_path / "project" / "flow.py", "flow", {})
    return tmp_path


def packed(path, names, **contents):
    """Write an archive with these names, and return its path."""
    with tarfile.open(path, "w:gz") as archive:
        for name in [*contents, *names]:
            entry, data = tarfile.TarInfo(name), contents.get(name, b"")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return str(path)


def submitted(archive, *options, cluster=YARN):
    """The exit code, the environment among the archives of the command, its Python, and what was said."""
    command = ["submit", "flow.py", *cluster, "--dry-run", "--environment-archive", archive, *options]
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    words = shlex.split(done.stdout.replace("\\\n", ""))
    archives = words[words.index("--archives") + 1].split(",")[1:] if words else []
    pythons = [word.partition("=")[2] for word in words if word.startswith("spark.pyspark.python=")]
    return done.exit_code, *archives, *pythons, " ".join(done.stderr.replace("│", "").split())


def test_a_url_and_a_name_are_taken_as_spark_takes_them(here):
    url = "hdfs://name/envs/env.tar.gz"
    assert submitted(url)[:3] == (0, f"{url}#environment", "./environment/bin/python")
    assert submitted(f"{url}#env")[:3] == (0, f"{url}#env", "./env/bin/python")
    assert submitted("https://host/env,1.tgz?sig=a#env")[:2] == (0, "https://host/env%2C1.tgz?sig=a#env")
    file = packed(here / "env.tar.gz", COMPLETE)
    assert submitted(f"{file}#my-env")[:3] == (0, f"{file}#my-env", "./my-env/bin/python")
    assert submitted(f"file:{file}#env")[:3] == (0, f"file:{file}#env", "./env/bin/python")
    number = packed(here / "env#1.tar.gz", COMPLETE)
    assert submitted(number)[:2] == (0, f"{here.as_uri()}/env%231.tar.gz#environment")


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("nowhere.tar.gz", "nowhere.tar.gz does not exist on this host, as seen from "),
        ("file:/nowhere/env.tar.gz#env", "file:/nowhere/env.tar.gz does not exist on this host"),
        ("../home", "../home is a folder on this host"),
        ("hdfs://name/env.tar.gz#a/b", "'a/b' is no name for the folder of an environment: give letters, digits"),
        ("hdfs://name/env.tar.gz#", "'' is no name for the folder"),
        ("hdfs://name/env.tar.gz#stormspark-project", "stormspark-project is the folder in which executors have the project"),
        ("hdfs://name/env.tar.bz2", "Spark unpacks no hdfs://name/env.tar.bz2, only .tar.gz, .tgz, .tar, .zip, .jar"),
    ],
)  # fmt: skip
def test_what_spark_would_not_unpack_is_refused(given, told):
    code, said = submitted(given)
    assert code == 2 and told in said, said


def test_an_environment_in_which_no_driver_runs_is_refused_before_anything_is_sent(here):
    """On the cluster, the driver says so when its container has come and the archive is unpacked."""
    file = packed(here / "env.tar.gz", [name for name in COMPLETE if "pandas" not in name])
    code, said = submitted(file)
    assert code == 2
    assert (
        f"the environment in {file} lacks pandas, which a topology needs on the cluster: install it there, pip install "
        f"'stormspark[delta,pandas]', and pack it again"
    ) in said
    assert list(here.glob("stormspark-submit-*")) == []
    assert submitted(file, cluster=("--master", "yarn"))[0] == 0, "the driver runs here"
    assert submitted(file, "-c", "spark.pyspark.driver.python=/opt/python/bin/python3")[0] == 0
    own = packed(here / "own.tar.gz", ["bin/python"])
    assert "lacks stormspark, pandas, pyarrow, which" in submitted(own)[-1]
    assert "lacks pandas, pyarrow, which" in submitted(own, "-c", "spark.submit.pyFiles=hdfs:///all.zip")[-1]


def test_what_an_environment_may_look_like(here):
    """Packed with ``./`` before the names, by conda, with eggs, as a zip, or with the packages of the cluster's own Python."""
    dotted = packed(here / "dotted.tar.gz", [f"./{name}" for name in COMPLETE])
    eggs = packed(
        here / "eggs.tgz", [*COMPLETE[:1], *COMPLETE[2:], f"{PACKAGES}/pandas-2.3-py3.11.egg/pandas/a.py"]
    )
    system = packed(
        here / "system.tar.gz",
        ["bin/python"],
        **{"pyvenv.cfg": b"home = /usr/bin\ninclude-system-site-packages = true\n"},
    )
    zipped = str(here / "env.zip")
    with zipfile.ZipFile(zipped, "w") as archive:
        for name in COMPLETE:
            archive.writestr(name, "")
    for file in (dotted, eggs, system, zipped):
        assert submitted(file)[0] == 0, file


def test_an_archive_with_the_folder_around_it_and_one_that_is_cut_off(here):
    around = packed(here / "around.tar.gz", [f"env/{name}" for name in COMPLETE])
    code, said = submitted(around)
    assert code == 2 and f"{around} has no bin/python, but env/bin/python: pack the environment with" in said
    (here / "cut.tar.gz").write_bytes((here / "around.tar.gz").read_bytes()[:-60])
    code, said = submitted(str(here / "cut.tar.gz"))
    assert code == 2 and "cut.tar.gz can't be unpacked (" in said and "): pack the environment again" in said
    (here / "empty.tar.gz").touch()
    assert "empty.tar.gz can't be unpacked (empty file)" in submitted(str(here / "empty.tar.gz"))[1]


@pytest.mark.parametrize("target", ["gone", "pyvenv.cfg"])
def test_a_link_in_an_archive_is_not_followed(here, target):
    """Neither one to nowhere, nor one to itself."""
    path = here / "env.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        link = tarfile.TarInfo("pyvenv.cfg")
        link.type, link.linkname = tarfile.SYMTYPE, target
        archive.addfile(link)
        for name in COMPLETE:
            archive.addfile(tarfile.TarInfo(name), io.BytesIO())
    assert submitted(str(path))[0] == 0


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("s3a://me:geheim@bucket/env.rar", "Spark unpacks no ***, only .tar.gz"),
        ("hdfs:///env.tar.gz#a#b", "a URL has no '#' before the name of the folder: write %23"),
        ("hdfs:///an env.tar.gz", "a URL has no ' ' before the name of the folder: write %20"),
        ("a#b/env.tar.gz", "a#b/env.tar.gz does not exist on this host"),
        ("/dev/null", "/dev/null is no file on this host"),
    ],
)
def test_odd_names_are_told_by_what_is_wrong_and_without_passwords(here, given, said):
    assert said in submitted(given)[-1]
