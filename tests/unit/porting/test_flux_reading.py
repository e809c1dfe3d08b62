"""Flux files: read by the reader that runs them; classes are looked for without importing them."""

from tests.unit.porting.reading import graph_read, line_of, read_files, reported

TOPOLOGY = """
name: "words"
config:
  topology.workers: 2
  topology.kryo.register: []
  my.dir: ${some.dir}
components:
- id: "fields"
  className: "backtype.storm.tuple.Fields"
  constructorArgs: [["word"]]
spouts:
- id: "words"
  className: "org.apache.storm.testing.TestWordSpout"
  parallelism: 2
bolts:
- id: "count"
  className: "com.acme.CountBolt"
  parallelism: 3
  numTasks: 6
  config: {topology.message.timeout.secs: 5}
- id: "python"
  className: "components.Printer"
- id: "registered"
  className: "com.acme.Registered"
- id: "alone"
  className: "org.apache.storm.testing.TestWordCounte"
streams:
- {from: "words", to: "count", grouping: {type: FIELDS, args: ["word"]}}
- {from: "count", to: "python", grouping: {type: SHUFFLE, streamId: "errors"}}
- {from: "count", to: "registered", grouping: {type: CUSTOM, customClass: {className: "com.acme.Grouping", constructorArgs: [1]}}}
"""
BESIDE = {
    "components.py": "raise RuntimeError('nobody imports this')\nclass Printer: pass\n",
    "flux_classes.py": "import stormspark.flux\nstormspark.flux.register('com.acme.Registered', list)\n",
}


def test_a_flux_file(tmp_path):
    """Components, parallelism, tasks, streams and settings."""
    [topology] = read_files(tmp_path, {"words.yaml": TOPOLOGY, **BESIDE}).topologies
    components, edges = graph_read(topology)
    assert (topology.name, topology.front_end) == ("words", "flux")
    assert components == {
        "words": ("spout", 2, 2),
        "count": ("bolt", 3, 6),
        "python": ("bolt", 1, 1),
        "registered": ("bolt", 1, 1),
        "alone": ("bolt", 1, 1),
    }
    assert edges == {
        ("words", "default", "count", "fields", "word"),
        ("count", "errors", "python", "shuffle", ""),
        ("count", "default", "registered", "custom", ""),
    }
    assert reported(topology, "note", "bolt 'alone' subscribes to nothing")
    assert reported(topology, "note", "topology.kryo.register changes nothing")
    assert reported(
        topology, "change", "topology.message.timeout.secs of 'count' can't be set for one component"
    )
    [substituted] = reported(topology, "note", "a value is substituted")
    assert substituted.todo == "run with --filter"


def test_classes_are_known_or_not(tmp_path):
    """Of Storm, registered, of the project; what nothing stands for is named with its line."""
    [topology] = read_files(tmp_path, {"words.yaml": TOPOLOGY, **BESIDE}).topologies
    runs = [one.text for one in reported(topology, "runs", ".")]
    assert {text.partition(":")[0] for text in runs} == {
        "component 'fields'",
        "spout 'words'",
        "bolt 'python'",
        "bolt 'registered'",
    }
    assert len(reported(topology, "change", "no Python is known for the class")) == 3
    [count] = reported(topology, "change", "com.acme.CountBolt")
    assert str(count.place) == f"words.yaml:{line_of(tmp_path, 'CountBolt', 'words.yaml')}"
    assert "classNames:" in count.todo
    [near] = reported(topology, "change", "TestWordCounte")
    assert near.todo.startswith("did you mean org.apache.storm.testing.TestWordCounter?")


def test_a_setting_that_filter_gives_is_no_wrong_value(tmp_path):
    """Only a run with ``--filter`` knows the value."""
    source = TOPOLOGY.replace("my.dir: ${some.dir}", "topology.max.spout.pending: ${pending}")
    [topology] = read_files(tmp_path, {"words.yaml": source, **BESIDE}).topologies
    assert not reported(topology, "change", "topology.max.spout.pending")
    [substituted] = reported(topology, "note", "pending: ..pending")
    assert substituted.todo == "run with --filter"


def test_a_file_that_is_wrong_is_named_and_others_are_read(tmp_path):
    findings = read_files(
        tmp_path,
        {
            "good.yaml": TOPOLOGY,
            "bad.yaml": "name: x\nspouts:\n- id: a\n  className: !!python/object:os.system x\n",
            "compose.yml": "services:\n  db:\n    image: x\n",
        },
    )
    assert [one.name for one in findings.topologies] == ["words"]
    [bad] = reported(findings, "unread", "tag")
    assert str(bad.place) == "bad.yaml:4"
    assert findings.files == {"flux": 2}
