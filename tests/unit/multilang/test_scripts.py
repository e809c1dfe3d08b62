"""Where the scripts of children are found, and what is wrong with them before they start (I3, I12, K20)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from stormspark.errors import InvalidTopologyError, MultilangError
from stormspark.multilang import ShellBolt
from stormspark.multilang.interpreters import libraries, missing_program, python_2, runnable, with_library
from stormspark.multilang.scripts import LAYOUT, Found, NotFound, Script, find
from stormspark.user_line import declared_at
from tests.no_home import without_home


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project of Maven; its YAML belongs into the returned folder."""
    (tmp_path / "pom.xml").touch()
    yaml = tmp_path / "src" / "main" / "resources"
    yaml.mkdir(parents=True)
    return yaml


@pytest.mark.parametrize("layout", LAYOUT)
def test_each_layout_is_searched(layout: str, project: Path) -> None:
    """K20: below the project's root, whatever folder the YAML is in."""
    folder = project.parents[2] / layout
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "split.py").touch()
    assert find("split.py", project) == Found(folder.resolve(), folder / "split.py")


def test_resources_beside_the_file_come_first(project: Path) -> None:
    """I3: then what is beside it, and then the folders further up."""
    for folder in (project / "resources", project, project.parents[2] / "multilang" / "resources"):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "split.py").touch()
    order = []
    while isinstance(found := find("split.py", project), Found):
        order.append(found.folder)
        found.file.unlink()
    assert order == [project / "resources", project, project.parents[2] / "multilang" / "resources"]
    assert isinstance(found, NotFound)
    assert str(project / "resources") in found.searched


def test_a_user_without_a_home_has_scripts_too(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    without_home(monkeypatch)
    (project / "split.py").touch()
    assert find("split.py", project) == Found(project.resolve(), project / "split.py")


def test_the_search_ends_at_the_project_s_root(project: Path) -> None:
    """K20: a script of another project is not taken. But the modules of a project of Maven belong together."""
    (project / "module").mkdir()
    (project.parents[3] / "split.py").touch()
    try:
        assert isinstance(find("split.py", project), NotFound)
    finally:
        (project.parents[3] / "split.py").unlink()
    module = project.parents[2] / "topologies"
    module.mkdir()
    (module / "pom.xml").touch()
    (project.parents[2] / "multilang").mkdir()
    (project.parents[2] / "multilang" / "split.py").touch()
    assert isinstance(find("split.py", module), Found)


def test_a_jar_is_unpacked_once_for_this_user(
    project: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """K20: only its resources; the newest jar that has the script."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("temporary")))
    target = project.parents[2] / "target"
    target.mkdir()
    for name, text in ("old", "1"), ("new", "2"), ("other", None):
        with zipfile.ZipFile(target / f"{name}.jar", "w") as jar:
            jar.writestr("META-INF/MANIFEST.MF", "")
            if text:
                jar.writestr("resources/bolts/split", text)
        os.utime(target / f"{name}.jar", (int(text or 3), int(text or 3)))
    (target / "broken.jar").write_text("no jar")
    found = find("./bolts/split", project)
    assert isinstance(found, Found)
    assert found.file.read_text() == "2"
    assert os.access(found.file, os.X_OK)
    assert found.folder.parent.stat().st_mode & 0o077 == 0
    assert not (found.folder.parent / "META-INF").exists()
    assert find("./bolts/split", project) == found


def test_python_s_name_stands_for_this_python() -> None:
    """I3: on hosts that have only python3."""
    nothing = {"PATH": "/nowhere"}
    assert runnable(["python", "split.py"], nothing) == [sys.executable, "split.py"]
    assert runnable(["python2", "split.py"], nothing) == ["python2", "split.py"]
    assert "Python 2 has ended" in (missing_program(["python2.7", "split.py"], nothing) or "")
    assert "Node.js" in (missing_program(["node", "split.js"], nothing) or "")
    assert missing_program(["/bin/sh", "split.sh"], nothing) is None


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("print 'hello'", "this is Python 2"),
        ("try: pass\nexcept ValueError, e: pass", "this is Python 2"),
        ("mode = 0755", "this is Python 2"),
        ("a = b +", "this is not Python 3"),
        ("m = {}\nm['anchors'] = map(lambda a: a.id, [])", "this is Storm's library for Python 2"),
    ],
)
def test_python_2_is_told_with_its_line(line: str, told: str, tmp_path: Path) -> None:
    """I12: also in a module beside the script."""
    script, module = tmp_path / "split.py", tmp_path / "words.py"
    script.write_text("import json\nimport words\n")
    module.write_text(f"import os\n{line}\n")
    command = [sys.executable, "split.py"]
    problem = python_2(command, Script("python3", "split.py"), script)
    assert problem is not None
    assert problem.startswith(f"{module}:{2 + line.count(chr(10))}: {told}")
    assert python_2(command, Script("python2", "split.py"), script) is None


def test_a_component_refuses_python_2_before_it_runs(tmp_path: Path) -> None:
    """K20: the error has the line of the topology's file, and that of the script."""
    (tmp_path / "split.py").write_text("print 'hello'\n")
    with declared_at(f"{tmp_path}/topology.yaml:7"):
        bolt, lost = ShellBolt([sys.executable, "split.py"]), ShellBolt(["python3", "lost.py"])
    with pytest.raises(InvalidTopologyError, match=r"topology.yaml:7: .*split.py:1: this is Python 2"):
        bolt.check_script({})
    assert f"{tmp_path}/topology.yaml:7: python3 lost.py: the script 'lost.py' is in none" in str(
        lost.check_script({})
    )
    with pytest.raises(MultilangError, match=r"bolt 'split'.*searched in this order"):
        lost.surroundings({}, "bolt 'split'")
    assert lost.check_script({"stormspark.multilang.resources": str(tmp_path)}) is None


def test_storm_s_library_for_python_2_is_replaced(tmp_path: Path) -> None:
    """K20: most projects have it, and their own scripts run on Python 3 too. A module of that name that is not Storm's stays."""
    script, library = tmp_path / "split.py", tmp_path / "storm.py"
    script.write_text(
        "import json, sys, words, storm\nprint(json.dumps([sys.argv, words.ALL, storm.BasicBolt.__module__]))\n"
    )
    (tmp_path / "words.py").write_text("ALL = ['a']\n")
    library.write_text(
        "print 'x'\ndef readTaskIds(): pass\ndef emitBolt(): pass\nclass BasicBolt(object): pass\n"
    )
    command = [sys.executable, "split.py", "--fast"]
    assert python_2(command, Script("python3", "split.py"), script) is None
    bolt = ShellBolt(command, cwd=tmp_path)
    found = bolt.surroundings({}, "bolt 'split'")
    assert found.note.startswith(f"{library}:1: this is Python 2: ")
    done = subprocess.run(
        found.command, cwd=tmp_path, env=found.environment, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [["split.py", "--fast"], ["a"], "storm"]
    library.write_text("print 'x'\n")
    assert f"{library}:1: this is Python 2" in str(python_2(command, Script("python3", "split.py"), script))


def test_storm_s_library_comes_along_where_the_project_has_none(tmp_path: Path) -> None:
    """K20: the project's own comes first; a script that does not use it has an unchanged environment."""
    script = tmp_path / "split.py"
    script.write_text("import sys\nimport storm\n")
    path = with_library(Script("python", "split.py"), script, {"PYTHONPATH": "/mine"}, tmp_path)["PYTHONPATH"]
    assert path == f"/mine{os.pathsep}{libraries()}"
    script.write_text("import storm.locals\n")
    assert with_library(Script("python", "split.py"), script, {}, tmp_path) == {}
    script.write_text("from storm import Bolt\n")
    (tmp_path / "storm.py").touch()
    assert with_library(Script("python", "split.py"), script, {}, tmp_path) == {}
    script.write_text("const storm = require('./storm');\n")
    assert "for_node.js" in with_library(Script("node", "split.py"), script, {}, tmp_path)["NODE_OPTIONS"]
    script.write_text('require "./storm"\n')
    ruby = with_library(Script("ruby", "split.py"), script, {"RUBYOPT": "-W0"}, tmp_path)
    assert (ruby["RUBYOPT"], ruby["RUBYLIB"]) == ("-W0 -rfor_ruby", str(libraries()))
    (tmp_path / "storm.rb").touch()
    shutil.copy(script, folder := tmp_path / "bolts.rb")
    assert with_library(Script("ruby", "bolts.rb"), folder, {}, tmp_path) == {}


@pytest.mark.parametrize(
    ("text", "mode", "told"),
    [
        ("#!/usr/bin/env python3\n", 0o600, "is not executable: chmod"),
        ("import storm\n", 0o700, "does not begin with #! and its interpreter"),
        (
            "#!/usr/bin/no-such-ruby\n",
            0o700,
            "'#!/usr/bin/no-such-ruby', and this host does not have that program",
        ),
        ("#!/usr/bin/env no-such-ruby -w\n", 0o700, "this host does not have that program"),
        ("#!/usr/bin/env python3\r\n", 0o700, "line ends of Windows"),
        ("#!/usr/bin/env python3\nprint 'x'\n", 0o700, r"split\.py:2: this is Python 2"),
    ],
)
def test_a_script_that_is_no_program_is_told_with_what_to_do(
    text: str, mode: int, told: str, tmp_path: Path
) -> None:
    """I12: before, the error was the operating system's: no such file, for a script that is there."""
    script = tmp_path / "split.py"
    script.write_bytes(text.encode())
    script.chmod(mode)
    with pytest.raises(MultilangError, match=told):
        ShellBolt(["./split.py"], ["word"], cwd=tmp_path).surroundings({}, "here")


def test_a_script_that_is_the_program_gets_storm_s_library(tmp_path: Path) -> None:
    """K20: also if its first line names the interpreter, and not the command."""
    script = tmp_path / "split.py"
    script.write_text("#!/usr/bin/env python3\nimport storm\n")
    script.chmod(0o700)
    found = ShellBolt(["./split.py"], ["word"], cwd=tmp_path).surroundings({}, "here")
    assert found.command == ["./split.py"]
    assert str(libraries()) in found.environment["PYTHONPATH"].split(os.pathsep)
