"""``ARCHITECTURE.md`` is a short map of what there is, and what documents and docstrings refer to exists."""

from __future__ import annotations

import io
import re
import tokenize
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.parity import ROOT, TABLE, rows

PACKAGE = ROOT / "stormspark"
MAP = ROOT / "ARCHITECTURE.md"
DOCUMENTS = sorted(
    path
    for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
    if path.name != "parity.md"  # another test holds what that page is written from
)
#: Here each path is one of ours. Other documents also name files of their readers.
ALL_PATHS_ARE_OURS = (MAP, ROOT / "docs" / "decisions.md", ROOT / "docs" / "glossary.md")
MOST_LINES, LONGEST_LINE = 200, 130

#: What looks like a path of ours and is none, and where it is.
ELSEWHERE = {
    "build/compiled": "what `make compiled` makes",
    "build/site/html": "what `make site` makes",
    "examples/src/python": "a folder of Heron's repository",
    "feedback.json": "what the driver writes for planners",
    "flux_classes.py": "a file of the user's",
    "stormspark/state": "a folder in a checkpoint",
    "stormspark/state/inputs": "a folder in a checkpoint",
    "multilang/resources": "a folder of the user's",
    "src/main/multilang": "a folder of the user's",
    "src/main/resources": "a folder of the user's",
    "tests/test_word_count.py": "a file of the user's",
    "storm.py": "Storm's library, and a file of the user's",
    "topology.json": "what a topology writes about itself",
}
#: Documents that are named and not kept in the repository.
NOT_KEPT = {
    "INVENTORY.md": "the test that reads it says that it lies beside the project",
    "history.md": "a page of JStorm's",
    "report.md": "`stormspark port` writes it",
    "table.md": "`make bench` writes it",
    "tables.md": "the tests of faults write it",
}

_IN_BACKTICKS = re.compile(r"`([^`\n]+)`")
_PATH = re.compile(r"\.?\w[\w.-]*(?:/[\w.-]+)*/?")
_FILE = re.compile(r"\w\.(?:py|pyi|pxd|md|toml|json|ya?ml|ipynb|svg|txt|xml)$")
_LINK = re.compile(r"\]\(([^)#\s]+)(?:#[^)\s]*)?\)")
_DOCUMENT = re.compile(r"\b[\w-]+\.md\b|\b[A-Z]{4,}(?='s section)")
_ROW = re.compile(r"(?<![-\w])([A-KWX])(\d+)([a-o]?)(?:-\1(\d+))?(?![-\w])")
_GROUP = re.compile(r"(?<![-\w])[A-K]-\d+b?(?![-\w])")
_SUPPRESSED = re.compile(r"# noqa:[ \w,]*")


def text_of(path: Path) -> str:
    """A file of the repository."""
    return path.read_text(encoding="utf-8")


def without_blocks(text: str) -> str:
    """A document without its blocks of code, where backticks mean something else."""
    return re.sub(r"(?ms)^```.*?^```", "", text)


def name(path: Path) -> str:
    """A path below the repository, for messages."""
    return path.relative_to(ROOT).as_posix()


# -- the map -------------------------------------------------------------------------------------------------------


def test_the_map_is_short() -> None:
    """A map that grows is no map: why something is so belongs into docs/decisions.md."""
    lines = text_of(MAP).splitlines()
    assert len(lines) <= MOST_LINES
    assert not [
        f"line {number}: {len(line)}" for number, line in enumerate(lines, 1) if len(line) > LONGEST_LINE
    ]


def layers_drawn() -> list[list[str]]:
    """The names in the map's picture of layers, line by line."""
    block = next(block for block in text_of(MAP).split("\n\n") if block.startswith("    cli "))
    return [re.split(r" {4,}", line.strip())[0].split() for line in block.splitlines()]


def test_every_package_and_module_is_in_the_picture() -> None:
    """And nothing else is."""
    modules = {path.stem for path in PACKAGE.glob("*.py") if not path.stem.startswith("__")}
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert {drawn for line in layers_drawn() for drawn in line} == modules | packages


def test_the_picture_has_the_order_of_the_layers() -> None:
    """The contract in pyproject.toml says which layer is above which."""
    contracts = tomllib.loads(text_of(ROOT / "pyproject.toml"))["tool"]["importlinter"]["contracts"]
    layers = next(contract for contract in contracts if contract["id"] == "layers")["layers"]
    place = {one: number for number, layer in enumerate(layers) for one in re.findall(r"\w+", layer)}
    drawn = [place[one] for line in layers_drawn() for one in line]
    assert drawn == sorted(drawn)


def test_every_room_of_the_worker_is_in_the_map() -> None:
    """A room is a package inside of ``worker/``."""
    named = set(_IN_BACKTICKS.findall(text_of(MAP)))
    rooms = {f"worker/{path.parent.name}/" for path in (PACKAGE / "worker").glob("*/__init__.py")}
    assert rooms
    assert not rooms - named


# -- paths and documents -------------------------------------------------------------------------------------------


def paths_in(text: str, *, all_ours: bool) -> Iterator[str]:
    """What stands in backticks and names a file or a folder of the repository.

    Where not ``all_ours``, it does so only if it begins with a folder of ours, or is a document.
    """
    ours = {path.name for folder in (ROOT, PACKAGE) for path in folder.iterdir() if path.is_dir()}
    for quoted in _IN_BACKTICKS.findall(without_blocks(text)):
        if not _PATH.fullmatch(quoted) or quoted.rstrip("/") in ELSEWHERE:
            continue
        looks_like_one = "/" in quoted or _FILE.search(quoted)
        is_ours = all_ours or ("/" in quoted and quoted.split("/")[0] in ours)
        if looks_like_one and is_ours:
            yield quoted


def is_there(path: str) -> bool:
    """Whether a path names something, from the repository's root or from the package."""
    return (ROOT / path).exists() or (PACKAGE / path).exists()


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_paths_in_backticks_exist(document: Path) -> None:
    """A file that is moved leaves no document behind that sends its reader nowhere."""
    paths = paths_in(text_of(document), all_ours=document in ALL_PATHS_ARE_OURS)
    assert not [path for path in paths if not is_there(path)]


def test_paths_are_found() -> None:
    """So that the test above can fail."""
    text = "`worker/core.py`, `worker/gone.py`, `make docs`, `topologies/mine.py`, `gone.py`, `Worker.run`, `hdfs://`"
    assert list(paths_in(text, all_ours=False)) == ["worker/core.py", "worker/gone.py"]
    assert list(paths_in(text, all_ours=True)) == [
        "worker/core.py",
        "worker/gone.py",
        "topologies/mine.py",
        "gone.py",
    ]
    assert is_there("worker/core.py")
    assert not is_there("worker/gone.py")


@pytest.mark.parametrize("document", DOCUMENTS, ids=name)
def test_links_lead_somewhere(document: Path) -> None:
    """Those to other files of the repository."""
    links = [link for link in _LINK.findall(without_blocks(text_of(document))) if "://" not in link]
    assert not [link for link in links if not (document.parent / link).exists()]


def unkept_documents(text: str) -> set[str]:
    """Documents that a text names and that the repository does not have."""
    if ".md" not in text and "'s section" not in text:  # as in most modules; the expression takes a while
        return set()
    kept = {path.name for path in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]}
    return set(_DOCUMENT.findall(text)) - kept - NOT_KEPT.keys()


def test_no_file_refers_to_a_document_that_is_not_in_the_repository() -> None:
    """Whoever reads such a line has nowhere to look."""
    files = [*DOCUMENTS, ROOT / "Makefile", ROOT / "pyproject.toml"]
    for folder in ("stormspark", "tests", "benchmarks", "examples", "jobs"):
        files += [path for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".pxd", ".md")]
    found = {
        name(path): sorted(unkept_documents(text_of(path)))
        for path in files
        if path != Path(__file__).resolve() and "legacy" not in path.parts
    }
    assert not {path: names for path, names in found.items() if names}


def test_documents_are_found() -> None:
    """So that the test above can fail."""
    assert unkept_documents("See DESIGN.md, CHANGELOG.md and NOTES's section 2.") == {"DESIGN.md", "NOTES"}


# -- rows ----------------------------------------------------------------------------------------------------------


def words_of(path: Path) -> Iterator[tuple[int, str]]:
    """The comments and strings of a module, which docstrings are; each with its line."""
    if path.suffix == ".pxd":
        yield from enumerate(text_of(path).splitlines(), 1)
        return
    # From Python 3.12 on an f-string is several tokens.
    kinds = {tokenize.COMMENT, tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", tokenize.STRING)}
    for token in tokenize.generate_tokens(io.StringIO(text_of(path)).readline):
        if token.type in kinds:
            yield token.start[0], _SUPPRESSED.sub("", token.string)


def cited(text: str) -> set[str]:
    """The rows and groups of rows that a text cites."""
    found = set(_GROUP.findall(text))
    for letter, first, part, last in _ROW.findall(text):
        found |= {f"{letter}{number}{part}" for number in range(int(first), int(last or first) + 1)}
    return found


def test_rows_that_code_cites_are_in_the_parity_table() -> None:
    """A1 to X110, and groups of them such as A-5."""
    known = rows().keys() | tomllib.loads(text_of(TABLE))["groups"].keys()
    dangling = [
        f"{name(path)}:{line}: {sorted(unknown)}"
        for path in sorted([*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.pxd")])
        if cited(text_of(path)) - known  # most modules need no closer look
        for line, text in words_of(path)
        if (unknown := cited(text) - known)
    ]
    assert not dangling


def test_citations_are_found(tmp_path: Path) -> None:
    """So that the test above can fail: in docstrings, comments and messages, and no codes of ruff's."""
    module = tmp_path / "module.py"
    module.write_text(
        '"""Rows E1-E3 and A-5."""\nB1 = 1  # noqa: B018 - see X53f\nM = "said (W99)"\n', encoding="utf-8"
    )
    found = {row for _, text in words_of(module) for row in cited(text)}
    assert found == {"E1", "E2", "E3", "A-5", "X53f", "W99"}
