"""Projects of Flux as Maven and Leiningen lay them out, with children that have none of Storm's libraries beside them (K20)."""

from __future__ import annotations

import shutil
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from tests.legacy.flux.running import stormspark

# Each starts the command line.
pytestmark = pytest.mark.slow

FILES = Path(__file__).parent / "children"
WORDS = Counter("THE WIND BLOWS THE RAIN FALLS SUN SHINES".split())


def project(folder: Path) -> Path:
    """The YAML of a project: one script is in multilang/resources, one in src/main/multilang, and one in a jar."""
    yaml = folder / "src" / "main" / "resources" / "topology.yaml"
    scripts = {
        "sentences.js": folder / "multilang" / "resources",
        "split.py": folder / "src" / "main" / "multilang",
    }
    for place in (yaml.parent, folder / "target", folder / "out", *scripts.values()):
        place.mkdir(parents=True, exist_ok=True)
    (folder / "pom.xml").write_text("<project/>")
    shutil.copy(FILES / "topology.yaml", yaml)
    for name, place in scripts.items():
        shutil.copy(FILES / name, place)
    with zipfile.ZipFile(folder / "target" / "languages-1.0.jar", "w") as jar:
        jar.write(FILES / "shout.rb", "resources/shout.rb")
    return yaml


@pytest.mark.parametrize(
    "engine", ["local", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.long])]
)
def test_scripts_are_found_where_projects_keep_them(engine: str, tmp_path: Path) -> None:
    """K20: Storm's storm.js, storm.py and storm.rb come along; ``python`` needs no program of this name."""
    for program in ("node", "ruby"):
        if shutil.which(program) is None:
            pytest.skip(f"no {program} on the PATH")
    yaml = project(tmp_path)
    done = stormspark(
        *("run", yaml, "--engine", engine, "--env-filter", "--until-idle", 2),
        env={"OUT": str(tmp_path / "out")},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line for path in (tmp_path / "out").glob("*.txt") for line in path.read_text().splitlines()]
    assert Counter(lines) == WORDS


def test_explain_tells_what_is_missing_and_what_is_python_2(tmp_path: Path) -> None:
    """K20, I12: with the line of the YAML and of the script, before anything runs."""
    yaml = project(tmp_path)
    split = tmp_path / "src" / "main" / "multilang" / "split.py"
    split.write_text(split.read_text().replace("storm.emit([word])", "print word"))
    done = stormspark("explain", yaml)
    assert done.returncode == 2
    assert (
        f"{yaml}:7: FluxShellBolt: python split.py: {split}:7: this is Python 2: 'print word'" in done.stderr
    )
    split.unlink()
    done = stormspark("explain", yaml)
    assert done.returncode == 0
    assert f"bolt 'split': its child can't start on this host: {yaml}:7: python split.py: " in done.stderr
    assert f"{split.parent}, {split.parents[1]}," in done.stderr
    assert f"{tmp_path / 'target' / 'languages-1.0.jar'} (resources/)" in done.stderr
