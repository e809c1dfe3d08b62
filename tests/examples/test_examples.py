"""The examples do what their pages in docs/examples say, as it is typed there; and the pages show the code as it is."""

import re
import runpy
import shlex
import sys
import threading
from contextlib import contextmanager
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest
from click.testing import CliRunner

from stormspark import Fields, TopologyBuilder
from stormspark.cli import main
from stormspark.cli.load import load_topology
from stormspark.local import LocalCluster
from stormspark.testing import FeederSpout, RecordingBasicCollector, make_tuple
from tests.imports import imports_undone

ROOT = Path(__file__).parents[2]
EXAMPLES, DOCS = ROOT / "examples", ROOT / "docs" / "examples"
PAGES = {page.stem: page.read_text(encoding="utf-8") for page in sorted(DOCS.glob("*.md"))}
INDEX = PAGES.pop("README")


def commands(page):
    """The commands that a page tells its reader to type."""
    return [line.strip() for line in re.findall(r"(?m)^    (?! ).+$", without_blocks(page))]


def run_commands(page):
    return [line for line in commands(page) if line.startswith("stormspark run ") or "_SERVERS=" in line]


def without_blocks(page):
    return re.sub(r"(?ms)^```.*?^```", "", page)


def blocks(page, kind):
    return re.findall(rf"(?ms)^```{kind}\n(.*?)^```", page)


def code_of(page):
    """All files in examples/ that a page links to."""
    files = {(DOCS / link).resolve() for link in re.findall(r"\]\((\.\./\.\./examples/[^)]+)\)", page)}
    return "".join(
        file.read_text(encoding="utf-8")
        for named in files
        for file in ([named] if named.is_file() else named.rglob("*.py"))
    )


# -- the pages -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PAGES)
def test_a_page_shows_the_code_as_it_is(name):
    excerpts = blocks(PAGES[name], "python")
    assert excerpts
    assert not [excerpt for excerpt in excerpts if excerpt not in code_of(PAGES[name])]


@pytest.mark.parametrize("name", PAGES)
def test_the_files_in_its_commands_are_there(name):
    typed = commands(PAGES[name])
    assert typed
    named = re.findall(r"\bexamples/[\w/.]*\w", " ".join(typed))
    assert named
    assert not [file for file in named if not (ROOT / file).exists() and not file.endswith("/more.json")]


def test_the_index_has_every_page_and_every_topology():
    assert set(re.findall(r"\]\(([\w-]+)\.md\)", INDEX)) == set(PAGES)
    helpers = {"check_word_count.py", "price_service.py", "standard_library.py", "word_count.py"}
    shown = INDEX + "".join(PAGES.values())
    files = (
        {path.name for path in EXAMPLES.iterdir() if not path.name.startswith(("_", "."))}
        - helpers
        - {"data"}
    )
    assert not [name for name in files if f"(../../examples/{name})" not in shown]


def test_the_docstring_of_an_example_names_its_page_and_has_a_command_of_it():
    for name, page in PAGES.items():
        files = [path for path in EXAMPLES.glob("*.py") if f"docs/examples/{name}.md" in path.read_text()]
        if name != "streamparse":  # whose project knows nothing of stormspark
            (file,) = files
            assert any(command in file.read_text() for command in run_commands(page)), name


# -- the runs --------------------------------------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def _as_it_was(monkeypatch, tmp_path):
    """Each run is in a folder of its own, and imports the example anew."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(EXAMPLES)
    with imports_undone(monkeypatch, EXAMPLES):
        yield


#: A busy machine must not make tuples come twice.
SETTINGS = ("-c", "stormspark.log.dir=logs", "-c", "topology.message.timeout.secs=600")


def run(command, *more, exit_code=0):
    """Type a command of a page, here in this process."""
    _, *arguments = shlex.split(command)
    done = CliRunner().invoke(
        main, [*arguments, "-c", "stormspark.log.dir=logs", *more], catch_exceptions=False
    )
    assert done.exit_code == exit_code, done.output
    return done


def table_of(name, capsys):
    """Type ``python examples/NAME``."""
    capsys.readouterr()
    runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    return capsys.readouterr().out


def said(page, number=0):
    return blocks(page, "text")[number].splitlines()


def lines_of(text, *, like):
    """The lines of an output that look like those of a page, without what `stormspark run` puts before a log line.

    Alerts are without their figures: a busy machine may have a tick between two readings.
    """
    lines = [re.sub(r"^\w+\[\d+\] INFO ", "", line) for line in text.splitlines()]
    return sorted(re.sub(r"(?<=is too hot): .*", "", line) for line in lines if re.match(like, line))


def shown_by(page, *, like):
    return lines_of("\n".join(said(page)), like=like)


#: Each example, with what its lines look like.
PRINTED = {
    "alerts": r"\w+ is ",
    "exactly-once-totals": r"\w+ has spent ",
    "heronpy": r"\w+: \S+ degrees$",
    "join": r"order \d: ",
    "streamparse": r"/\w+: \d+ requests",
}
#: Those whose spouts do not say that they are done. Here they are idle earlier than their users would have it.
ONLY_IDLE, SOON = {"heronpy", "streamparse"}, ("--until-idle", "0.1")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in ONLY_IDLE else name for name in PRINTED]
)
def test_it_prints_what_its_page_shows(name):
    more = SOON if name in ONLY_IDLE else ()
    printed = lines_of(run(run_commands(PAGES[name])[0], *more).output, like=PRINTED[name])
    assert printed == shown_by(PAGES[name], like=PRINTED[name])


@pytest.mark.slow  # delta-rs and pandas are imported
@pytest.mark.parametrize(("name", "file"), [("kafka-to-delta", "kafka_to_delta.py"), ("pv-uv", "pv_uv.py")])
def test_its_table_has_what_its_page_shows(name, file, capsys):
    assert "late" not in run(run_commands(PAGES[name])[0]).output
    table = table_of(file, capsys).splitlines()
    shown = said(PAGES[name])
    assert table[: len(shown)] == shown
    if name == "kafka-to-delta":
        assert sum(int(line.split()[-1]) for line in table) == 30
        assert len(table) == 17


@contextmanager
def prices(monkeypatch):
    """The service of the example, on a port of its own."""
    service = runpy.run_path(str(EXAMPLES / "price_service.py"))["Prices"]
    with ThreadingHTTPServer(("127.0.0.1", 0), service) as server:
        monkeypatch.setenv("PRICES", f"http://127.0.0.1:{server.server_port}/price/")
        monkeypatch.setenv("PRICE_SECS", "100")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.slow  # for the pauses between requests
def test_the_enrichment_gives_up_the_unicorn_alone(monkeypatch):
    page = PAGES["enrichment"]
    with prices(monkeypatch):
        done = run(run_commands(page)[0], exit_code=3)
    assert lines_of(done.output, like="order ") == shown_by(page, like="order ")
    assert "orders: 1 row was given up; see " in done.output
    letters = CliRunner().invoke(main, ["dead-letters", "list", "logs/dead-letters.jsonl"]).output
    assert '[6, "unicorn", 1]' in letters
    assert "1 dead letter" in letters


@pytest.mark.slow
@pytest.mark.long
def test_the_enrichment_outlives_a_service_that_is_not_there(monkeypatch):
    monkeypatch.setenv("PRICES", "http://127.0.0.1:1/price/")
    output = run(run_commands(PAGES["enrichment"])[0], exit_code=3).output
    assert "orders: 8 rows were given up" in output
    assert "no price for 'tea': <urlopen error [Errno 111] Connection refused>" in output


def test_alerts_come_when_something_changes_and_only_then(capsys):
    load_topology(str(EXAMPLES / "alerts.py"))
    alerts = sys.modules["alerts"]
    feeder = FeederSpout(Fields("sensor", "celsius"))
    builder = TopologyBuilder()
    builder.set_spout("readings", feeder)
    builder.set_bolt("watch", alerts.Watch(), 2).fields_grouping("readings", Fields("sensor"))
    builder.set_bolt("notify", alerts.Notify()).global_grouping("watch")
    with LocalCluster(simulated_time=True) as cluster:
        cluster.submit_topology("alerts", {}, builder.create_topology("alerts"))
        cluster.advance_time(5)  # halfway between two ticks
        for celsius in (190.0, 215.0, None, 216.0, *[None] * 8, 190.0, None, 190.0):
            if celsius is not None:
                feeder.feed(("oven", celsius))
            cluster.advance_time(10)
    assert capsys.readouterr().out.splitlines() == [
        "oven is too hot: 215.0 degrees",
        "oven is silent",
        "oven is well: 190.0 degrees",
    ]


def test_a_line_that_is_no_click_is_left_out(tmp_path, capsys):
    load_topology(f"{EXAMPLES / 'kafka_to_delta.py'}:from_files")
    bolt = sys.modules["kafka_to_delta"].Parse()
    collector = RecordingBasicCollector(bolt)
    for line in (
        '{"at": 1, "page": "/tea"}',
        "{",
        "[]",
        '{"at": "x", "page": "/"}',
        '{"at": 2}',
        "3",
        "null",
    ):
        collector.execute(bolt, make_tuple((line,), fields=["line"]))
    assert collector.values() == [(1, "/tea")]
    assert capsys.readouterr().out.count("left out, because it is no click") == 6
