"""In a checkout, what is compiled runs as long as it is what its sources say; then the sources run."""

from __future__ import annotations

import os
import py_compile
import shutil
import subprocess
import sys
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, SourceFileLoader
from pathlib import Path

import pytest

from stormspark.tuple_path import PURE, in_place, wants_sources

ROOT = Path(__file__).parents[2]
SUFFIX = EXTENSION_SUFFIXES[0]
NAMES = ["stormspark.acker.tree", "stormspark.api.tuples"]
TREE, TUPLES = "stormspark/acker/tree", "stormspark/api/tuples"
#: One whose Python is never compiled.
EDGES = "stormspark/api/edges"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Two compiled modules, and one that stays Python."""
    for file in ("setup.py", "stormspark/tuple_path/__init__.py"):
        write(tmp_path / file, file)
    for module in (TREE, TUPLES, EDGES):
        for suffix in (".py", ".pxd"):
            write(tmp_path / f"{module}{suffix}", f"{module}{suffix}")
    assert in_place.why_outdated(tmp_path) is None, "nothing is compiled, so nothing is outdated"
    assert compile_in(tmp_path) == NAMES
    return tmp_path


def write(file: Path, text: str) -> None:
    """A file, and its folder."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def compile_in(checkout: Path, names: list[str] = NAMES, failing: str = "") -> list[str]:
    """As `setup.py` does. Return what was compiled."""
    outdated = in_place.outdated(checkout, names)
    hashes = in_place.begin(checkout, names, outdated)
    for name in outdated:
        if name != failing:
            file = name.replace(".", "/")
            write(checkout / f"{file}{SUFFIX}", f"compiled from {(checkout / f'{file}.py').read_text()}")
    assert in_place.end(checkout, names, hashes) is not bool(failing)
    return outdated


def extensions(checkout: Path) -> set[str]:
    """The compiled modules of this Python."""
    return {file.relative_to(checkout).as_posix() for file in checkout.rglob(f"*{SUFFIX}")}


def test_what_is_as_it_was_compiled_runs_and_is_not_compiled_again(checkout: Path) -> None:
    """Also in a checkout of the same commit at another time, or in a copy, because only contents count."""
    assert in_place.why_outdated(checkout) is None
    assert in_place.outdated(checkout, NAMES) == []
    for file in checkout.rglob("*.*"):
        os.utime(file, ns=(1, 1))
    assert in_place.why_outdated(checkout) is None
    assert in_place.outdated(checkout, NAMES) == []


@pytest.mark.parametrize(
    ("file", "again"),
    [
        (f"{TREE}.py", ["stormspark.acker.tree"]),
        (f"{TREE}.pxd", NAMES),
        (f"{EDGES}.py", NAMES),
        (f"{EDGES}.pxd", NAMES),
        ("stormspark/tuple_path/__init__.py", NAMES),
        ("setup.py", NAMES),
    ],
)
def test_what_was_edited_runs_until_it_is_compiled_again(checkout: Path, file: str, again: list[str]) -> None:
    """Types of one module are those of others too, so all are compiled again."""
    before = (checkout / file).stat()
    text = (checkout / file).read_text()
    (checkout / file).write_text(text.upper())
    os.utime(checkout / file, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert in_place.why_outdated(checkout) == f"{file} was edited after it was compiled: make setup"
    assert in_place.outdated(checkout, NAMES) == again
    (checkout / file).write_text(text)
    assert in_place.why_outdated(checkout) is None, "an edit that is taken back"
    (checkout / file).write_text(text.upper())
    assert compile_in(checkout) == again
    assert in_place.why_outdated(checkout) is None


def test_a_source_that_is_gone_is_noticed_and_its_compiled_module_goes_at_the_next_compilation(
    checkout: Path,
) -> None:
    """Another branch may have a module less."""
    (checkout / f"{TREE}.py").unlink()
    (checkout / f"{TREE}.pxd").unlink()
    assert in_place.why_outdated(checkout) == f"{TREE}.py was removed after it was compiled: make setup"
    assert compile_in(checkout, ["stormspark.api.tuples"]) == ["stormspark.api.tuples"]
    assert in_place.why_outdated(checkout) is None
    assert extensions(checkout) == {f"{TUPLES}{SUFFIX}"}


def test_a_module_that_is_new_is_compiled(checkout: Path) -> None:
    """Its types may be used by all others."""
    for suffix in (".py", ".pxd"):
        write(checkout / f"stormspark/grouping/key{suffix}", "new")
    (checkout / "stormspark/tuple_path/__init__.py").write_text("a list of three")
    assert compile_in(checkout, [*NAMES, "stormspark.grouping.key"]) == [*NAMES, "stormspark.grouping.key"]
    assert in_place.why_outdated(checkout) is None


@pytest.mark.parametrize("there", [True, False])
def test_a_compiled_module_that_is_another_does_not_run(checkout: Path, there: bool) -> None:
    """Another branch's `setup.py`, which writes no mark, may have compiled it; or somebody removed it."""
    file = f"{TREE}{SUFFIX}"
    (checkout / file).unlink()
    if there:
        (checkout / file).write_text("from other sources")
    assert in_place.why_outdated(checkout) == f"{file} is not what was compiled in this checkout: make setup"
    assert compile_in(checkout) == ["stormspark.acker.tree"]
    assert in_place.why_outdated(checkout) is None


@pytest.mark.parametrize("other", ["aarch64 Linux, glibc 2.28", ""])
def test_what_was_compiled_on_another_system_does_not_run(
    checkout: Path, monkeypatch: pytest.MonkeyPatch, other: str
) -> None:
    """A container may share the checkout, and have an older C library, with which the compiled modules can't be loaded."""
    here = in_place._system()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(in_place, "_system", lambda: other)
        (checkout / f"{TREE}.py").write_text("other text")
        compile_in(checkout)
    reason = f"it was compiled for {other or 'another system'}, and this is {here}: make setup"
    assert in_place.why_outdated(checkout) == reason
    assert compile_in(checkout) == NAMES, "a wheel that is made here must not have them, either"
    assert in_place.why_outdated(checkout) is None


@pytest.mark.parametrize("mark", ["", "{", "[]", '{"sources": {}, "compiled": {}}', '{"what": 1}'])
def test_sources_run_while_a_compilation_goes_on_and_after_one_that_was_interrupted(
    checkout: Path, mark: str
) -> None:
    """Nobody gets some modules as they were, and others as they will be."""
    in_place.begin(checkout, NAMES, in_place.outdated(checkout, NAMES))
    assert extensions(checkout) == {f"{TREE}{SUFFIX}", f"{TUPLES}{SUFFIX}"}
    reason = "its compilation in this checkout has not ended: make setup"
    assert in_place.why_outdated(checkout) == reason
    (checkout / "stormspark" / f".compiled{SUFFIX}.json").write_text(mark)
    assert in_place.why_outdated(checkout) == reason
    assert compile_in(checkout) == NAMES


def test_nothing_stays_compiled_if_one_module_cannot_be(checkout: Path) -> None:
    """A part of it is slower than none."""
    (checkout / f"{TREE}.py").write_text("other text")
    compile_in(checkout, failing="stormspark.acker.tree")
    assert extensions(checkout) == set()
    assert in_place.why_outdated(checkout) is None
    assert compile_in(checkout) == NAMES


def test_what_another_python_compiled_is_left_alone(checkout: Path) -> None:
    """Each compiles for itself, and has a mark of its own."""
    others = [
        checkout / f"{TREE}.cpython-39-other.so",
        checkout / "stormspark/.compiled.cpython-39-other.so.json",
    ]
    for file in others:
        file.write_text("another Python's")
    (checkout / f"{EDGES}.pxd").write_text("other text")
    compile_in(checkout)
    assert all(file.read_text() == "another Python's" for file in others)


def test_nothing_is_known_of_an_archive(tmp_path: Path) -> None:
    """Spark may ship one: sources are all that Python imports from there."""
    (tmp_path / "shipped.zip").write_text("an archive")
    assert in_place.why_outdated(tmp_path / "shipped.zip") is None
    assert in_place.compiled_names(tmp_path / "shipped.zip") == []
    sources = in_place.Sources(NAMES)
    assert sources.find_spec(NAMES[0], [str(tmp_path / "shipped.zip" / "stormspark" / "acker")]) is None


def test_the_finder_leads_to_the_sources(checkout: Path) -> None:
    """Python itself would take what is compiled, even if the source is gone."""
    sources = in_place.Sources(in_place.compiled_names(checkout))
    folder = str(checkout / "stormspark" / "acker")
    usual = FileFinder(folder, (ExtensionFileLoader, EXTENSION_SUFFIXES), (SourceFileLoader, [".py"]))
    taken = usual.find_spec("stormspark.acker.tree")
    found = sources.find_spec("stormspark.acker.tree", [folder])
    assert taken is not None and taken.origin == str(checkout / f"{TREE}{SUFFIX}")
    assert found is not None and found.origin == str(checkout / f"{TREE}.py")
    assert sources.find_spec("stormspark.acker.edges", [folder]) is None
    (checkout / f"{TREE}.py").unlink()
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'stormspark\.acker\.tree'"):
        sources.find_spec("stormspark.acker.tree", [folder])


def test_what_was_copied_into_a_checkout_without_its_mark_does_not_run(checkout: Path) -> None:
    """Nobody knows from which sources it is. Beside no recipe to compile it, it is what a wheel has installed."""
    (checkout / "stormspark" / f".compiled{SUFFIX}.json").unlink()
    assert in_place.why_outdated(checkout) is None
    assert in_place.compiled_names(checkout) == []
    write(checkout / "pyproject.toml", "")
    assert in_place.why_outdated(checkout) == f"{TREE}{SUFFIX} was not compiled in this checkout: make setup"
    assert in_place.compiled_names(checkout) == NAMES
    assert in_place.outdated(checkout, NAMES) == NAMES
    assert compile_in(checkout) == NAMES
    assert in_place.why_outdated(checkout) is None


def test_where_there_are_no_sources_what_python_made_of_them_runs(checkout: Path) -> None:
    """An installation may have been stripped of its sources."""
    folder = checkout / "stormspark" / "acker"
    source = checkout / f"{TREE}.py"
    source.write_text("value = 1")
    py_compile.compile(str(source), str(source.with_suffix(".pyc")))
    source.unlink()
    spec = in_place.Sources(NAMES).find_spec("stormspark.acker.tree", [str(folder)])
    assert spec is not None
    assert spec.origin == str(source.with_suffix(".pyc"))


@pytest.mark.parametrize(
    ("value", "sources"), [("1", True), ("true", True), ("0", False), ("", False), (None, False)]
)
def test_which_values_ask_for_sources(
    monkeypatch: pytest.MonkeyPatch, value: str | None, sources: bool
) -> None:
    monkeypatch.delenv(PURE, raising=False)
    if value is not None:
        monkeypatch.setenv(PURE, value)
    assert wants_sources() is sources


# -- with a compiler -----------------------------------------------------------------------------------------------


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """This project's `setup.py`, with one small module to compile."""
    package = tmp_path / "stormspark"
    shutil.copytree(
        ROOT / "stormspark" / "tuple_path", package / "tuple_path", ignore=lambda *_: ["__pycache__"]
    )
    shutil.copy(ROOT / "setup.py", tmp_path)
    write(package / "__init__.py", "import stormspark.tuple_path\n")
    write(package / "acker" / "__init__.py", "")
    write(package / "acker" / "tree.py", "def answer():\n    return 1\n")
    write(package / "acker" / "tree.pxd", "cpdef answer()\n")
    said = build(tmp_path)
    if "there is no C compiler" in said or "Python.h is not in" in said:
        pytest.skip(said)
    assert said == "compiling 1 of 1 modules of the tuple path\n"
    return tmp_path


def build(project: Path, *options: str, **environment: str) -> str:
    """What `make setup` does, and what it prints."""
    done = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "build_ext", *(options or ["--inplace"])],
        cwd=project,
        env={**os.environ, "STORMSPARK_PURE": "", "PYTHONPATH": "", **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def answer(project: Path, **environment: str) -> str:
    """What runs: the answer, and the kind of the module."""
    code = (
        "from stormspark import tuple_path; from stormspark.acker import tree; "
        "print(tree.answer(), tree.__spec__.origin.rpartition('.')[2], tuple_path.why_sources())"
    )
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=project,
        env={**os.environ, "STORMSPARK_PURE": "", "PYTHONPATH": str(project), **environment},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()


@pytest.mark.slow
def test_it_is_compiled_edited_and_compiled_again(project: Path) -> None:
    """And STORMSPARK_PURE leads to the sources at any time."""
    source = project / "stormspark" / "acker" / "tree.py"
    assert answer(project) == "1 so None"
    assert answer(project, STORMSPARK_PURE="1") == "1 py STORMSPARK_PURE is set"
    assert answer(project, STORMSPARK_PURE="0") == "1 so None"
    assert build(project) == "", "there is nothing to do"
    source.write_text("def answer():\n    return 2\n")
    os.utime(source, ns=(1, 1))
    assert answer(project) == "2 py stormspark/acker/tree.py was edited after it was compiled: make setup"
    assert "compiling 1 of 1 modules" in build(project)
    assert answer(project) == "2 so None"
    source.write_text("def answer():\n    return 3\n")
    assert build(project, CC="/no/such/cc") == (
        "the tuple path stays Python, which acks a third as many tuples per second: "
        "there is no C compiler /no/such/cc (apt-get install gcc, or xcode-select --install)\n"
    )
    assert answer(project) == "3 py None"
    assert extensions(project) - {file for file in extensions(project) if file.startswith("build/")} == set()


@pytest.mark.slow
def test_it_is_compiled_on_a_file_system_without_locks(project: Path) -> None:
    """As on some network file systems."""
    (project / f"{TREE}{SUFFIX}").unlink()
    write(
        project / "without" / "sitecustomize.py",
        "import errno, fcntl\n"
        "def flock(*_): raise OSError(errno.ENOLCK, 'No locks available')\n"
        "fcntl.flock = flock\n",
    )
    assert "compiling 1 of 1 modules" in build(project, PYTHONPATH=str(project / "without"))
    assert answer(project) == "1 so None"


@pytest.mark.slow
def test_a_wheel_has_what_was_compiled_in_place_if_it_would_be_the_same(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else it is compiled."""
    for name in ("ARCHFLAGS", "CC", "CFLAGS", "CPPFLAGS", "LDFLAGS", "_PYTHON_HOST_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    here, there = project / f"{TREE}{SUFFIX}", project / "build" / "wheel" / f"{TREE}{SUFFIX}"
    assert build(project, "--build-lib", "build/wheel") == ""
    assert there.read_bytes() == here.read_bytes()
    there.write_bytes(b"")
    assert "compiling 1 of 1 modules" in build(project, "--build-lib", "build/wheel", CFLAGS="-O1")
    assert there.stat().st_size > 0
    (project / f"{TREE}.py").write_text("def answer():\n    return 2\n")
    assert "compiling 1 of 1 modules" in build(project, "--build-lib", "build/wheel")
    assert there.read_bytes() != here.read_bytes()
