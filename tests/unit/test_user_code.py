"""How the file that a command line names is imported: under which name, and from which folder."""

from __future__ import annotations

import gc
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from stormspark.compat.heronpy import project
from stormspark.user_code import import_file, parsed, place_of_module, syntax_tree


@pytest.fixture(autouse=True)
def paths(monkeypatch: pytest.MonkeyPatch) -> None:
    """The module path is as before after each test."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("PYTHONPATH", os.environ.get("PYTHONPATH", ""))


def test_a_file_with_relative_imports_is_imported_with_its_package(tmp_path: Path) -> None:
    """A40: its name has that of the package, so that workers find it too."""
    package = tmp_path / "of_user_code" / "inner"
    package.mkdir(parents=True)
    for name in "../__init__.py", "__init__.py":
        (package / name).touch()
    (package / "words_of_test.py").write_text("WORD = 'storm'\n")
    (package / "relative_of_test.py").write_text("from .words_of_test import WORD\n")
    module = import_file(package / "relative_of_test.py")
    assert (module.__name__, module.WORD) == ("of_user_code.inner.relative_of_test", "storm")
    assert str(tmp_path) in os.environ["PYTHONPATH"].split(os.pathsep)
    assert import_file(package / "words_of_test.py").__name__ == "of_user_code.inner.words_of_test"


def test_the_main_module_of_a_package_of_heronpy_is_run(tmp_path: Path) -> None:
    """A40: projects for pex have a ``__main__.py``; the topology's name is the package's."""
    package = tmp_path / "heron_package_of_test"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "parts.py").write_text(
        "from heronpy.api.spout.spout import Spout\n"
        "class Words(Spout):\n    outputs = ['word']\n    def next_tuple(self):\n        pass\n"
    )
    (package / "__main__.py").write_text(
        "import sys\nfrom heronpy.api.topology import TopologyBuilder\nfrom .parts import Words\n"
        "if __name__ == '__main__':\n"
        "    builder = TopologyBuilder(sys.argv[1])\n    builder.add_spout('words', Words, par=1)\n"
        "    builder.build_and_submit()\n"
    )
    topology = project.load(package / "__main__.py", None)
    assert (topology.name, list(topology.components)) == ("heron_package_of_test", ["words"])


@pytest.fixture
def write(tmp_path):
    def write_file(path, text=""):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    return write_file


@pytest.mark.parametrize(
    ("packages", "file", "text", "name"),
    [
        ([], "topology.py", "", "topology"),
        (["pkg"], "pkg/topology.py", "", "pkg.topology"),
        (["pkg", "pkg/inner"], "pkg/inner/topology.py", "", "pkg.inner.topology"),
        (["inner"], "inner/topology.py", "from ..bolts import Split", "inner.topology"),
        ([], "pkg/topology.py", "from .bolts import Split", "pkg.topology"),
        ([], "pkg/inner/topology.py", "from ..bolts import Split", "pkg.inner.topology"),
        ([], "pkg/topology.py", "from bolts import Split", "topology"),
        ([], "pkg/topology.py", "this is no Python", "topology"),
        (["pkg", "pkg/my-flow"], "pkg/my-flow/topology.py", "", "topology"),
        (["pkg"], "pkg/__init__.py", "", "pkg"),
        ([], "__init__.py", "", "__init__"),
    ],
)
def test_a_file_is_a_module_of_its_package(packages, file, text, name, write, tmp_path):
    root = tmp_path / "a-root"  # no name of a package
    for package in packages:
        write(root / package / "__init__.py")
    path = write(root / file, text)
    place = place_of_module(path)
    assert place.name == name
    assert (place.root / name.replace(".", "/")).name == name.rpartition(".")[2]
    if "." in name:
        assert place.package == place.root / name.partition(".")[0]


@pytest.mark.parametrize(
    ("clause", "is_old"),
    [
        ("except Empty, e: print(e)", True),
        ("except (Empty, e): pass", False),
        pytest.param(
            "except Empty, KeyError: pass",
            False,
            marks=pytest.mark.skipif(sys.version_info < (3, 14), reason="PEP 758 is of Python 3.14"),
        ),
    ],
)
def test_an_except_clause_of_python_2_is_a_syntax_error_in_each_python(clause: str, is_old: bool) -> None:
    source = f"from queue import Empty\ntry: pass\n{clause}\n"
    if is_old:
        with pytest.raises(SyntaxError, match="multiple exception types must be parenthesized") as raised:
            parsed(source)
        assert raised.value.lineno == 3
    else:
        assert parsed(source).body


def test_threads_that_parse_at_a_time_do_not_disturb_each_other() -> None:
    """Python before 3.11.5 loses its count of recursions if another thread parses while a garbage collection interrupts it."""
    source = "a = " + "+".join(f"f({n}, [{n}])" for n in range(300))
    failed: list[BaseException] = []

    def parse_often() -> None:
        try:
            for _ in range(5):
                syntax_tree(source)
        except SystemError as error:
            failed.append(error)

    def switch(*_: object) -> None:
        time.sleep(0)

    threshold = gc.get_threshold()
    gc.callbacks.append(switch)
    gc.set_threshold(30)
    try:
        threads = [threading.Thread(target=parse_often) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(switch)
    assert not failed
