"""The topologies that come with Storm's Flux and Heron's ECO, as they are.

STORM_EXAMPLES and HERON_EXAMPLES name a checkout of apache/storm, and of apache/incubator-heron.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.legacy.flux.originals import ORIGINALS, Original
from tests.legacy.flux.running import stormspark

HERE = Path(__file__).parent
PAGE = HERE.parents[2] / "docs" / "porting" / "from-flux.md"
ALL = [(variable, one) for variable, originals in ORIGINALS.items() for one in originals]
#: Folders of a checkout with scripts that a topology's jar has under resources/.
SCRIPTS = [
    "flux/flux-wrappers/src/main/resources/resources",
    "storm-multilang/python/src/main/resources/resources",
    "storm-multilang/javascript/src/main/resources/resources",
]


def checkout(variable: str) -> Path:
    where = os.environ.get(variable)
    if not where:
        pytest.skip(f"{variable} does not name a checkout")
    return Path(where)


def placed(source: Path, original: Original, folder: Path, *, classes: bool) -> list[str]:
    """The topology with its neighbours, its scripts, and what stands for its classes; the command line's arguments."""
    shutil.copytree(
        (source / original.file).parent,
        folder / "configs",
        ignore=lambda _, names: [name for name in names if not name.endswith((".yaml", ".properties"))],
    )
    for scripts in SCRIPTS:
        if (source / scripts).is_dir():
            shutil.copytree(source / scripts, folder / "configs" / "resources", dirs_exist_ok=True)
    if classes:
        shutil.copytree(HERE / "stand_ins", folder / "configs", dirs_exist_ok=True)
    arguments = [str(folder / "configs" / Path(original.file).name), "--env-filter"]
    if original.properties:
        arguments += ["--filter", str(source / original.properties)]
    return arguments


@pytest.mark.slow
@pytest.mark.parametrize(
    ("variable", "original"), [pytest.param(*one, id=one[1].file.rpartition("/")[2]) for one in ALL]
)
def test_an_original_does_what_the_table_says(variable: str, original: Original, tmp_path: Path) -> None:
    """K13-K23: it runs as it is, or with Python for its Java classes, or why it does not."""
    source = checkout(variable)
    if "randomsentence.js" in (source / original.file).read_text() and shutil.which("node") is None:
        pytest.skip("no node on the PATH")
    outcome = original.outcome
    arguments = placed(source, original, tmp_path, classes=outcome != "runs")
    if outcome in ("refused", "planned"):
        done = stormspark("explain", *arguments)
        assert done.returncode == (2 if outcome == "refused" else 0), done.stderr
        assert original.said in done.stderr
        return
    done = stormspark(
        "run", *arguments, "--engine", "local", "--seconds", 3, "--json", tmp_path / "figures.json"
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert any(component["emitted"] for component in figures["components"].values()), figures
    if outcome == "runs with classes":
        bare = placed(source, original, tmp_path / "bare", classes=False)
        assert original.said in stormspark("explain", *bare).stderr


@pytest.mark.parametrize("variable", ORIGINALS)
def test_the_table_has_all_of_them(variable: str) -> None:
    """K13: a checkout has no topology that the table does not know."""
    source = checkout(variable)
    folders = {Path(one.file).parent for one in ORIGINALS[variable]}
    found = {str(path.relative_to(source)) for folder in folders for path in (source / folder).glob("*.yaml")}
    assert found == {one.file for one in ORIGINALS[variable]}


def test_the_page_tells_the_same() -> None:
    """K13: the table in the guide names each file with its outcome."""
    rows = [
        [cell.strip(" `") for cell in line.split("|")]
        for line in PAGE.read_text().partition("## The originals")[2].splitlines()
        if ".yaml`" in line
    ]
    told = {name: row[2] for row in rows if len(row) > 3 for name in row[1].replace("`", "").split(", ")}
    assert told == {one.file.rpartition("/")[2]: one.outcome for _, one in ALL}
