import logging

import pytest

from stormspark import flux
from stormspark.errors import InvalidTopologyError, TopologyNotFoundError

SHARED = """
name: shared
config: {topology.workers: 2, shared.key: shared}
components:
- {id: fields, className: org.apache.storm.tuple.Fields, constructorArgs: [[word]]}
spouts:
- {id: words, className: org.apache.storm.testing.TestWordSpout}
bolts:
- {id: count, className: org.apache.storm.testing.TestWordCounter}
streams:
- {from: words, to: count, grouping: {type: SHUFFLE}}
"""


@pytest.fixture
def load_including(write):
    def load(text, shared=SHARED, name="shared.yaml", **options):
        write(shared, name)
        return flux.load(write(text), **options)

    return load


def test_an_included_file_adds_what_is_not_there(load_including):
    """K17: components, spouts, bolts, streams, settings and the name."""
    topology = load_including("includes: [{file: shared.yaml}]")
    assert (topology.name, sorted(topology.components)) == ("shared", ["count", "words"])
    assert topology.conf == {"topology.workers": 2, "shared.key": "shared"}


def test_what_is_there_already_wins(load_including, caplog):
    """K17: without override the file's own definitions stay, and the others are told as ignored."""
    with caplog.at_level(logging.WARNING):
        topology = load_including("""
            name: own
            config: {topology.workers: 3}
            bolts:
            - {id: count, className: org.apache.storm.testing.TestGlobalCount}
            includes:
            - {file: shared.yaml}
            """)
    assert (topology.name, topology.conf["topology.workers"]) == ("own", 3)
    assert topology.components["count"].type_name == "TestGlobalCount"
    assert (
        "topology.yaml:6: the bolt 'count' of shared.yaml is ignored, because it is defined already"
        in caplog.text
    )
    assert "the setting 'topology.workers' of shared.yaml is ignored" in caplog.text


def test_an_include_may_override(load_including):
    """K17: with override: true what is included replaces, the name too, and keeps the place of what it replaces."""
    topology = load_including("""
        name: own
        config: {topology.workers: 3, own.key: own}
        bolts:
        - {id: count, className: org.apache.storm.testing.TestGlobalCount}
        includes:
        - {file: shared.yaml, override: true}
        """)
    assert topology.name == "shared"
    assert topology.conf == {"topology.workers": 2, "own.key": "own", "shared.key": "shared"}
    assert topology.components["count"].type_name == "TestWordCounter"


def test_streams_are_added_always(load_including):
    """K17: override or not, streams of both files are there."""
    topology = load_including("""
        name: own
        bolts:
        - {id: more, className: org.apache.storm.testing.TestGlobalCount}
        streams:
        - {from: count, to: more, grouping: {type: SHUFFLE}}
        includes: [{file: shared.yaml}]
        """)
    assert list(topology.components) == ["words", "more", "count"]


def test_includes_go_one_level_deep(load_including, caplog):
    """K17: what an included file includes is not followed, nor are its hooks and its source; all of it is told."""
    topology = load_including(
        "includes: [{file: shared.yaml}]",
        SHARED + "includes: [{file: nowhere.yaml}]\nworkerHooks: [{className: nowhere.Hook}]\n",
    )
    assert topology.worker_hooks == ()
    assert "shared.yaml: includes of an included file are ignored, as in Storm" in caplog.text
    assert "shared.yaml: workerHooks of an included file are ignored" in caplog.text


def test_a_resource_is_looked_for_in_the_folders_above(write):
    """K17: resource: true means Java's class path; here it is the file's folder and those above it."""
    write(SHARED, "main/resources/configs/shared.yaml")
    including = "includes: [{resource: true, file: /configs/shared.yaml}]"
    assert flux.load(write(including, "main/resources/configs/deep/t.yaml")).name == "shared"
    assert flux.load(write(including, "main/resources/t.yaml")).name == "shared"


def test_a_file_may_stand_in_the_current_folder(write, monkeypatch, tmp_path):
    """K17: as in Storm, where nothing is beside the YAML."""
    write(SHARED, "here/shared.yaml")
    file = write("includes: [{file: shared.yaml}]", "there/t.yaml")
    with pytest.raises(
        InvalidTopologyError, match=r"t.yaml:1: the included file 'shared.yaml' is not at .* or .*"
    ):
        flux.load(file)
    monkeypatch.chdir(tmp_path / "here")
    assert flux.load(file).name == "shared"


def test_variables_are_replaced_in_included_files_too(load_including, write):
    """Variables are replaced in included files too (K17, K18)."""
    properties = write("who = them", "a.properties")
    shared = SHARED.replace("name: shared", "name: ${who}")
    assert load_including("includes: [{file: shared.yaml}]", shared, filter_file=properties).name == "them"


def test_a_missing_file_is_reported_with_the_line(refused):
    """K17: where it was looked for."""
    message = refused("name: t\nincludes:\n- {resource: true, file: /nowhere.yaml}\n", 3)
    assert "the included file '/nowhere.yaml' is not in" in message
    assert "in the folders above it" in message


def test_what_is_wrong_in_an_included_file_has_its_own_line(load_including):
    """K17: file and line of the included file."""
    with pytest.raises(InvalidTopologyError, match=r"shared\.yaml:2: a topology has no key 'bots'"):
        load_including("includes: [{file: shared.yaml}]", "name: t\nbots: []\n")


def test_no_file_and_a_folder(tmp_path):
    """K19: what the command line names is not there, or is no file."""
    with pytest.raises(TopologyNotFoundError, match=r"nope\.yaml does not exist"):
        flux.load(tmp_path / "nope.yaml")
    with pytest.raises(TopologyNotFoundError, match="is a folder; name a file in it"):
        flux.load(tmp_path)


def test_bytes_that_are_no_text(tmp_path):
    """K13: a file that is no UTF-8."""
    (tmp_path / "t.yaml").write_bytes(b"name: \xff\xfe")
    with pytest.raises(InvalidTopologyError, match="can't be read: 'utf-8' codec"):
        flux.load(tmp_path / "t.yaml")
