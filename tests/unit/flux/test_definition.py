import pytest

from stormspark.errors import InvalidTopologyError
from stormspark.flux.definition import Reference, References, read_topology
from stormspark.flux.document import parsed


def read(text):
    return read_topology(parsed(text, "t.yaml"), "t.yaml")


def refused(text):
    with pytest.raises(InvalidTopologyError) as caught:
        read(text)
    return str(caught.value)


def test_all_keys_of_a_topology_are_read():
    """K13-K17: every key of the original, each where it belongs."""
    topology = read("""
name: all
type: storm
config: {topology.workers: 2, nested: {a: [1]}}
components:
- {id: c, className: C, constructorArgs: [1, {ref: b}, {reflist: [b, b]}, {ref: b, x: 1}, [{ref: b}]]}
spouts:
- id: s
  className: S
  factory: make
  factoryArgs: [x]
  parallelism: 2
  numTasks: 4
  onHeapMemoryLoad: 100
  offHeapMemoryLoad: 50
  cpuLoad: 10
  config: {a: b}
bolts:
- id: b
  className: B
  properties: [{name: p, value: 1}, {name: q, ref: c}]
  configMethods: [{name: m, args: [{ref: c}]}, {name: n}]
streams:
- {id: x, name: ignored, from: s, to: b, grouping: {type: fields, args: [w], streamId: other}}
- {from: s, to: b, grouping: {type: CUSTOM, customClass: {className: G, constructorArgs: [1]}}}
includes: [{resource: true, file: f.yaml, override: true}, {file: g.yaml}]
workerHooks: [{className: H}, {id: h, className: H}]
classNames: {com.acme.B: mine.B}
""")
    assert (topology.name, topology.config["nested"].value) == ("all", {"a": [1]})
    at = Reference("b", "t.yaml:6")
    assert topology.components["c"].constructor_args == (
        1,
        at,
        References((at, at)),
        {"ref": "b", "x": 1},
        [{"ref": "b"}],
    )
    spout = topology.spouts["s"]
    assert (spout.parallelism, spout.num_tasks, spout.on_heap_mb, spout.off_heap_mb, spout.cpu) == (
        2,
        4,
        100,
        50,
        10,
    )
    assert spout.config["a"].value == "b" and spout.object.factory.args == ("x",)
    bolt = topology.bolts["b"].object
    assert [(p.name, p.value) for p in bolt.properties] == [("p", 1), ("q", Reference("c", "t.yaml:21"))]
    assert [(m.name, len(m.args), m.where) for m in bolt.config_methods] == [
        ("m", 1, "t.yaml:22"),
        ("n", 0, "t.yaml:22"),
    ]
    fields, custom = (stream.grouping for stream in topology.streams)
    assert (fields.type, fields.args, fields.stream) == ("FIELDS", ("w",), "other")
    assert (custom.type, custom.custom_class.class_name) == ("CUSTOM", "G")
    assert [(i.file, i.resource, i.override) for i in topology.includes] == [
        ("f.yaml", True, True),
        ("g.yaml", False, False),
    ]
    assert list(topology.worker_hooks) == ["H", "h"]
    assert topology.class_names["com.acme.B"].value == "mine.B"


def test_below_zero_counts_as_not_set():
    """K15: Storm's -1 for loads and tasks is its way to say nothing."""
    bolt = read("bolts: [{id: b, className: B, numTasks: -1, cpuLoad: -1, onHeapMemoryLoad: -1}]").bolts["b"]
    assert (bolt.num_tasks, bolt.cpu, bolt.on_heap_mb, bolt.parallelism) == (None, None, None, 1)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("nmae: x", "1: a topology has no key 'nmae': did you mean 'name'?"),
        ("- a", "1: a topology must be a mapping, got a list"),
        ("type: spark", "1: type must be storm or heron, got 'spark'"),
        ("name: [a]", "1: name must be a string, got a list"),
        ("config: [a]", "1: config must be a mapping, got a list"),
        ("spouts: {a: b}", "1: spouts must be a list, got a mapping"),
        ("spouts:\n- id: s", "2: spout 's' needs a className"),
        ("spouts:\n- className: S", "2: a spout needs an id"),
        (
            "spouts:\n- id: s\n  className: S\n  paralelism: 2",
            "4: a spout has no key 'paralelism': did you mean 'parallelism'?",
        ),
        (
            "bolts:\n- id: b\n  className: B\n  parallelism: two",
            "4: bolt 'b': parallelism must be a whole number, got 'two'",
        ),
        (
            "bolts:\n- id: b\n  className: B\n  constructorArgs: x",
            "4: bolt 'b': constructorArgs must be a list, got 'x'",
        ),
        (
            "bolts:\n- {id: b, className: B}\n- {id: b, className: B}",
            "3: the bolt 'b' is declared at t.yaml:2 already",
        ),
        (
            "components:\n- {id: c, className: C, factoryArgs: [1]}",
            "2: component 'c' has factoryArgs without a factory",
        ),
        (
            "components:\n- {id: c, className: C, factory: f, constructorArgs: [1]}",
            "2: component 'c' has constructorArgs and a factory",
        ),
        (
            "components:\n- {id: c, className: C, properties: [{name: p}]}",
            "2: property 'p' of component 'c' needs either a value or a ref",
        ),
        (
            "components:\n- {id: c, className: C, properties: [{name: p, value: 1, ref: c}]}",
            "2: property 'p' of component 'c' needs either",
        ),
        (
            "components:\n- {id: c, className: C, properties: [{value: 1}]}",
            "2: a property of component 'c' needs a name",
        ),
        (
            "components:\n- {id: c, className: C, configMethods: [{nam: m}]}",
            "2: a config method of component 'c' has no key 'nam'",
        ),
        (
            "components:\n- {id: c, className: C, configMethods: [{args: []}]}",
            "2: a config method of component 'c' needs a name",
        ),
        (
            "components:\n- {id: c, className: C, constructorArgs: [ref: [a]]}",
            "2: ref must be a string, got a list",
        ),
        (
            "components:\n- {id: c, className: C, constructorArgs: [reflist: a]}",
            "2: reflist must be a list, got 'a'",
        ),
        ("streams:\n- {from: a, to: b}", "2: a stream needs 'grouping'"),
        ("streams:\n- {to: b, grouping: {type: ALL}}", "2: a stream needs 'from'"),
        (
            "streams:\n- {from: a, to: b, grouping: {}}",
            "2: the grouping of the stream from 'a' to 'b' needs a type",
        ),
        (
            "streams:\n- {from: a, to: b, grouping: {type: SHUFLE}}",
            "2: the stream from 'a' to 'b': there is no grouping 'SHUFLE'",
        ),
        (
            "streams:\n- {from: a, to: b, grouping: {type: FIELDS}}",
            "2: the stream from 'a' to 'b': a FIELDS grouping needs the names of its",
        ),
        (
            "streams:\n- {from: a, to: b, grouping: {type: CUSTOM}}",
            "2: the stream from 'a' to 'b': a CUSTOM grouping needs a customClass",
        ),
        (
            "streams:\n- {from: a, to: b, grouping: {type: ALL, stream: x}}",
            "2: the grouping of the stream from 'a' to 'b' has no key 'stream': did you mean 'streamId'?",
        ),
        ("includes:\n- {resource: true}", "2: an include needs a file"),
        ("includes:\n- {file: a, override: perhaps}", "2: override must be true or false, got 'perhaps'"),
        ("workerHooks:\n- {id: h}", "2: worker hook 'h' needs a className"),
        ("topologySource: {methodName: m}", "1: topologySource needs a className"),
        ("topologySource: {className: c, parallelism: 1}", "1: topologySource has no key 'parallelism'"),
        ("classNames: {a: [b]}", "1: the Python class for 'a' must be a string"),
    ],
)
def test_what_does_not_belong_there_is_refused(text, told):
    """K13-K17: unknown keys with a near one, missing keys, wrong types, ids that stand twice; each with its line."""
    assert refused(text).startswith(f"t.yaml:{told}")
