"""Folders with several kinds of projects, bad input, the report and the command."""

import json
import subprocess
import sys

import pytest
from click.testing import CliRunner

from stormspark.cli import main
from stormspark.config import KNOWN_KEYS
from stormspark.errors import TopologyNotFoundError
from stormspark.porting.findings import Place, Setting, Unresolved
from stormspark.porting.keys import DIFFERENT_MEANING, about_settings
from stormspark.porting.project import read_project
from stormspark.porting.report import as_json, as_markdown
from tests.unit.porting.reading import COMPONENTS, IMPORTS, read_files, reported
from tests.unit.porting.test_flux_reading import TOPOLOGY as FLUX
from tests.unit.porting.test_python_reading import COMPONENTS as PYTHON
from tests.unit.porting.test_python_reading import WORD_COUNT

pytest.importorskip("tree_sitter_java")

JAVA = f"""package com.acme;{IMPORTS}
public class Words {{
    public static void main(String[] args) throws Exception {{
        TopologyBuilder builder = new TopologyBuilder();
        builder.setSpout("lines", new Lines(), Integer.parseInt(args[0]));
        StormSubmitter.submitTopology("words|java", new Config(), builder.createTopology());
    }}
}}
{COMPONENTS}"""
ALL = {
    "java/src/com/acme/Words.java": JAVA,
    "python/topologies/word_count.py": WORD_COUNT,
    **{f"python/{name}": text for name, text in PYTHON.items()},
    "flux/words.yaml": FLUX,
    ".venv/lib/x.py": "import streamparse\nprint 'old'",
    "node_modules/a.py": "import streamparse\nprint 'old'",
}


def port(*arguments):
    return CliRunner().invoke(main, ["port", *map(str, arguments)], catch_exceptions=False)


def test_a_folder_may_hold_several_projects(tmp_path):
    findings = read_files(tmp_path, ALL)
    assert [(one.name, one.front_end) for one in findings.topologies] == [
        ("word_count", "streamparse"),
        ("words", "flux"),
        ("words|java", "java"),
    ]
    assert findings.files == {"streamparse": 4, "flux": 1, "java": 1}
    assert not reported(findings, "unread", "can't parse"), (
        "virtual environments and packages are not looked at"
    )


def test_one_file_is_read_with_its_neighbours(tmp_path):
    read_files(tmp_path, ALL)
    (tmp_path / "java/src/com/acme/Other.java").write_text(JAVA.replace("Words", "Other"))
    for file in ("java/src/com/acme/Words.java", "python/topologies/word_count.py", "flux/words.yaml"):
        findings, _ = read_project(tmp_path / file)
        [topology] = findings.topologies
        assert not reported(topology, "unread", "not in the project")
        assert topology.place.file.endswith(file.rpartition("/")[2])


def test_whether_it_does_the_same_is_never_claimed(tmp_path):
    for topology in read_files(tmp_path, ALL).topologies:
        [unchecked] = [one for one in topology.statements if one.grade == "not checked"]
        assert "does the same" in unchecked.text
        assert {one.grade for one in topology.statements} == {"parsed", "not checked"}


def test_nothing_is_run(tmp_path):
    """The modules raise when they are imported, and would write a file before that."""
    marker = tmp_path / "imported"
    evil = f"open({str(marker)!r}, 'w')\nraise SystemExit\n"
    files = {
        name: evil + text if name.endswith(".py") and "__init__" not in name else text
        for name, text in ALL.items()
    }
    read_files(tmp_path, files)
    assert not marker.exists()


@pytest.mark.parametrize("files", [{}, {"notes.txt": "x", "setup.py": "print(1)", "compose.yaml": "a: 1"}])
def test_what_is_no_project_is_refused(tmp_path, files):
    with pytest.raises(
        TopologyNotFoundError,
        match=r"no file of streamparse, heronpy, Petrel, Flux, storm.py or Storm's Java",
    ):
        read_files(tmp_path, files)
    done = port(tmp_path)
    assert done.exit_code == 2 and "name the project's folder" in done.stderr


def test_a_path_that_is_not_there(tmp_path):
    done = port(tmp_path / "nowhere")
    assert done.exit_code == 2 and "nowhere does not exist" in done.stderr


def test_links_that_lead_nowhere_and_large_files_are_named(tmp_path):
    read_files(tmp_path, ALL)
    for name in ("java/Gone.java", "python/gone.py", "flux/gone.yaml"):
        (tmp_path / name).symlink_to(tmp_path / "nowhere")
    (tmp_path / "java/Large.java").write_text("//" + "x" * 2_000_001)
    findings, _ = read_project(tmp_path)
    named = {str(one.place) for one in reported(findings, "unread", "can't be read|skipped")}
    assert named == {"java/Gone.java:1", "python/gone.py:1", "flux/gone.yaml:1", "java/Large.java:1"}
    assert len(findings.topologies) == 3


def test_the_report_in_markdown(tmp_path):
    report = as_markdown(read_files(tmp_path, ALL))
    assert "- *not checked*: nothing was checked." in report
    assert "| spout lines | Lines | ? | (line, number); errors(reason); asked(task) direct |" in report
    assert "## words|java (java/src/com/acme/Words.java:" in report
    assert r"| words\|java | java, " in report
    assert "### Could not be made out" in report and "### Runs unchanged" in report


def test_the_report_in_json(tmp_path):
    found = json.loads(as_json(read_files(tmp_path, ALL)))
    java = found["topologies"][-1]
    assert java["components"][0]["parallelism"] is None
    assert java["statements"][0]["place"] == {"file": "java/src/com/acme/Words.java", "line": 13}
    assert found["files"] == {"streamparse": 4, "flux": 1, "java": 1}


def test_the_command_prints_and_writes(tmp_path):
    read_files(tmp_path, ALL)
    out = tmp_path / "out" / "new"
    done = port(tmp_path, "--out", out)
    assert done.exit_code == 0
    assert "the parallelism of spout 'lines' can't be made out" in done.stdout
    assert sorted(file.name for file in out.iterdir()) == ["report.md", "words.py"]
    assert f"wrote {out / 'words.py'}" in done.stdout
    assert json.loads(port(tmp_path, "--json").stdout)["topologies"][0]["name"] == "word_count"


def test_a_skeleton_that_somebody_works_on_is_kept(tmp_path):
    read_files(tmp_path, ALL)
    out = tmp_path / "out"
    port(tmp_path, "--out", out)
    (out / "words.py").write_text("mine = 1\n")
    port(tmp_path, "--out", out)
    assert (out / "words.py").read_text() == "mine = 1\n"
    assert "port nextTuple" in (out / "words.new.py").read_text()


def test_a_folder_that_cannot_be_written(tmp_path):
    read_files(tmp_path, ALL)
    done = port(tmp_path, "--out", tmp_path / "flux" / "words.yaml" / "out")
    assert done.exit_code == 2 and "can't be written" in done.stderr


@pytest.mark.slow
def test_importing_shows_the_plan_and_what_goes_wrong(tmp_path):
    """In a process of its own, with the grade that says so."""
    good = (
        FLUX.partition("components:")[0]
        + """
spouts:
- {id: words, className: org.apache.storm.testing.TestWordSpout, parallelism: 2}
bolts:
- {id: count, className: org.apache.storm.testing.TestWordCounter}
streams:
- {from: words, to: count, grouping: {type: SHUFFLE}}
"""
    )
    for name, text in {"good.yaml": good, "bad.yaml": FLUX, "Words.java": JAVA}.items():
        (tmp_path / name).write_text(text)
    command = [sys.executable, "-m", "stormspark.cli", "port", str(tmp_path), "--json", "--import"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    bad, good_found, java = json.loads(done.stdout)["topologies"]
    [cannot] = [one for one in bad["statements"] if one["grade"] == "imported"]
    assert cannot["kind"] == "change" and "com.acme.CountBolt" in cannot["text"]
    [can] = [one for one in good_found["statements"] if one["grade"] == "imported"]
    assert can["kind"] == "runs" and good_found["plan"].startswith(
        "topology words: 2 components, 3 tasks, 2 workers"
    )
    assert java["plan"] == "" and not [one for one in java["statements"] if one["grade"] == "imported"]


# -- keys --------------------------------------------------------------------------------------------------------


def about(key, value=1, component="", **options):
    return [
        (one.kind, one.text)
        for one in about_settings([Setting(key, value, Place("a", 1), component)], **options)
    ]


def test_keys_are_known_useless_different_or_wrong():
    """Each in a sentence; what means the same needs none."""
    assert about("my.own") == [] and about("topology.debug", True) == []
    assert about("topology.kryo.register", [])[0][0] == "note"
    assert about("topology.workers", 2)[0][0] == "note"
    [(kind, text)] = about("topology.workers", "two")
    assert kind == "change" and "must be int, got 'two'" in text
    assert about("topology.debug", "true", strings=True) == []
    assert about("topology.workers", Unresolved("args[0]"))[0][0] == "note"
    [(kind, text)] = about("topology.message.timeout.secs", 3, "count")
    assert kind == "change" and "ignored there, as in Storm" in text


def test_keys_with_another_meaning_exist():
    assert DIFFERENT_MEANING.keys() <= KNOWN_KEYS


def test_storms_own_sources_are_not_taken_for_users(tmp_path):
    """A project that has a copy of Storm's classes: what they do is known, and is not read out of them."""
    builder = "package org.apache.storm.topology; public class TopologyBuilder { public void setSpout(String id, Object o) {} }"
    findings = read_files(tmp_path, {"storm/TopologyBuilder.java": builder, "acme/Words.java": JAVA})
    [topology] = findings.topologies
    assert [one.id for one in topology.components] == ["lines"]
    assert reported(findings, "note", "the sources of org.apache.storm itself were left out")
