"""The site has a page for each document and each public name, and its links lead somewhere."""

import importlib
import re
from pathlib import Path, PurePosixPath

import pytest

from tools.site.api import API, made_pages, names_on
from tools.site.links import wrong_links
from tools.site.navigation import BELOW, PARTS, page_of
from tools.site.staging import BrokenLinkError, Stage, contents, documents

ROOT = Path(__file__).parents[3]
#: Pages that are made at each build. Those about the API are below the first one.
MADE = {"reference/api/index", "reference/commands"}
#: What users import from.
PUBLIC = (
    "",
    ".connectors",
    ".connectors.jdbc_bolt",
    ".connectors.kafka",
    ".connectors.redis_bolt",
    ".errors",
    ".flux",
    ".local",
    ".map_state",
    ".map_state.sql",
    ".multilang",
    ".spark",
    ".streamlet",
    ".testing",
    ".transactional",
)
#: What other packages of stormspark import, and users have no use for.
OURS = {
    "stormspark.local": {"CORES", "InProcessWorkers"},
    "stormspark.spark": {
        "conf_of_session",
        "require_java",
        "require_master",
        "require_spark_home",
        "session_for",
        "spark_defaults",
        "spark_home",
    },
}


def md(page):
    """The file of a page, which is not one of the repository."""
    return f"{page}.md"


@pytest.fixture
def repository(tmp_path):
    def write(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("_md", ".md").replace("_py", ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return tmp_path

    return write


def staged(root):
    stage = Stage(root)
    stage.add_documents()
    return stage.pages


@pytest.mark.slow
def test_no_document_here_leads_nowhere():
    """`make site` checks anchors, too."""
    stage = Stage(ROOT)
    stage.pages |= made_pages()
    stage.add_documents()
    assert "tutorials/first-topology.md" in stage.pages


def test_the_navigation_has_every_document_once():
    below = [f"{page.removesuffix('index')}{one}" for page, ones in BELOW.items() for one in ones]
    named = [re.sub(r".* <(.*)>", r"\1", page) for part in PARTS for page in part.pages] + below
    pages = {page for one in documents(ROOT) if (page := page_of(one))}
    assert sorted(named) == sorted(pages - {"index"} | MADE)


@pytest.mark.slow  # imports the engine for Spark
def test_every_public_name_has_a_place_on_a_page():
    shown = {
        id(getattr(importlib.import_module(module), name)) for page in API for module, name in names_on(page)
    }
    for part in PUBLIC:
        module = importlib.import_module(f"stormspark{part}")
        public = set(module.__all__) - {"__version__"} - OURS.get(module.__name__, set())
        assert {name for name in public if id(getattr(module, name)) not in shown} == set(), part


@pytest.mark.slow  # imports the engine for Spark
def test_every_page_that_is_made_is_there():
    pages = made_pages()
    assert {name for name in pages if name.split("/")[-1] in ("index.rst", md("commands"))} == {
        "reference/api/index.rst",
        md("reference/commands"),
    }
    assert ".. autoclass:: TopologyBuilder" in pages["reference/api/topologies.rst"]
    assert ".. autofunction:: state" in pages["reference/api/state.rst"]
    assert ".. py:data:: Key\n\n   A key of a map." in pages["reference/api/state.rst"]
    rows = ".. py:data:: ROW_BY_ROW\n   :value: 'row by row'\n\n   The value of ``anchors`` for a batch"
    assert rows in pages["reference/api/arrow-and-async.rst"]
    page = pages[md("reference/commands")]
    assert (
        "## stormspark run\n" in page
        and "--until-idle" in page
        and "### stormspark dead-letters replay\n" in page
    )


def test_links_between_documents_lead_to_pages(repository):
    root = repository(
        README_md="[a](docs/sinks.md#b)",
        docs__sinks_md="[back](../README.md), [c](porting/README.md)",
        docs__porting__README_md="",
    )
    pages = staged(root)
    assert pages[md("overview")] == "[a](sinks.md#b)"
    assert pages[md("sinks")] == f"[back]({md('overview')}), [c]({md('porting/index')})"


def test_a_linked_file_becomes_a_page_and_a_folder_a_list(repository):
    root = repository(
        docs__sinks_md="[x](../examples/x.py), [all](../examples)",
        examples__x_py="x = 1\n",
        examples__y_py="y = 2\n",
    )
    pages = staged(root)
    assert pages[md("sinks")] == f"[x]({md('source/examples/x.py')}), [all]({md('source/examples')})"
    assert (
        "x = 1" in pages[md("source/examples/x.py")] and "nosearch: true" in pages[md("source/examples/x.py")]
    )
    assert f"[y.py]({md('examples/y.py')})" in pages[md("source/examples")]
    assert "y = 2" in pages[md("source/examples/y.py")]


def test_code_keeps_its_brackets(repository):
    text = "```python\nx[0](y)\n```\n\n    x[0](y)\n\n[w](https://example.org), [h](#here)"
    assert staged(repository(docs__sinks_md=text))[md("sinks")] == text


def test_a_link_to_nothing_names_its_line(repository):
    with pytest.raises(
        BrokenLinkError, match=r"docs/sinks\.md:2: state\.md leads to docs/state\.md, which does not exist"
    ):
        staged(repository(docs__sinks_md="\n[b](state.md)"))


def test_a_page_that_stays_the_same_keeps_its_time_and_an_old_one_goes(tmp_path):
    stage = Stage(tmp_path)
    stage.pages = {md("sinks"): "a", md("state"): "b"}
    stage.write(tmp_path / "pages")
    before = (tmp_path / "pages" / "sinks.md").stat().st_mtime_ns
    stage.pages = {md("sinks"): "a"}
    stage.write(tmp_path / "pages")
    assert [path.name for path in (tmp_path / "pages").iterdir()] == [md("sinks")]
    assert (tmp_path / "pages" / "sinks.md").stat().st_mtime_ns == before


def test_the_front_page_carries_the_navigation():
    assert contents("index").count(":caption:") == len(PARTS)
    assert contents("sinks") == ""


def test_documents_are_pages_and_other_files_are_not():
    assert page_of(PurePosixPath("docs/reference/parity.toml")) is None
    assert page_of(PurePosixPath("docs/notes.txt")) is None


def test_wrong_links_are_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="a.html#top"></a><a href="b.html"></a><a href="#low"></a>'
        '<a href="https://example.org"></a><script src="https://example.org/x.js"></script>'
    )
    (tmp_path / "a.css").write_text("@import url('//example.org/font.css'); a { color: red }")
    assert sorted(wrong_links(tmp_path)) == [
        "a.css: loads //example.org/font.css from another host",
        "a.html: #low leads to no place on that page",
        "a.html: b.html leads to no file",
        "a.html: loads https://example.org/x.js from another host",
    ]


def test_pictures_come_along(repository, tmp_path):
    root = repository(docs__sinks_md="![how](images/a.svg)")
    (root / "docs" / "images").mkdir()
    (root / "docs" / "images" / "a.svg").write_text("<svg/>")
    stage = Stage(root)
    stage.add_documents()
    assert stage.pages[md("sinks")] == "![how](images/docs/images/a.svg)"
    stage.write(tmp_path / "pages")
    assert (tmp_path / "pages" / "images" / "docs" / "images" / "a.svg").read_text() == "<svg/>"
