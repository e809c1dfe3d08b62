"""The content of a Flux file as data. Each part has its line. No class has been looked up yet (K13-K17)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stormspark.errors import InvalidTopologyError
from stormspark.flux.document import Located

__all__ = [
    "Grouping",
    "Include",
    "Method",
    "ObjectDefinition",
    "Property",
    "Reference",
    "References",
    "Setting",
    "Stream",
    "TopologyDefinition",
    "Vertex",
    "read_topology",
]


@dataclass(frozen=True)
class Reference:
    """A reference to one object: ``ref: ID``. ID names a component that is declared further up in the file (K14)."""

    id: str
    where: str


@dataclass(frozen=True)
class References:
    """References to several objects: ``reflist: [ID, ...]`` (K14)."""

    items: tuple[Reference, ...]


@dataclass(frozen=True)
class Setting:
    """One value in ``config`` or ``classNames``, with its line."""

    value: Any
    where: str


@dataclass(frozen=True)
class Property:
    """A property of an object. Its value is passed to a setter, or assigned to a public attribute."""

    name: str
    value: Any  # a Reference stands for the object that it names
    where: str


@dataclass(frozen=True)
class Method:
    """A method to call, with its arguments. The factory of an object is also described by a `Method`."""

    name: str
    args: tuple[Any, ...]  # a Reference or References stands for the objects that it names
    where: str


@dataclass(frozen=True)
class ObjectDefinition:
    """How to make an object: its class, its constructor or factory, its properties and the methods to call (K14)."""

    id: str
    class_name: str
    where: str
    class_where: str
    constructor_args: tuple[Any, ...] = ()
    factory: Method | None = None
    properties: tuple[Property, ...] = ()
    config_methods: tuple[Method, ...] = ()


@dataclass(frozen=True)
class Vertex:
    """A spout or a bolt (K15)."""

    object: ObjectDefinition
    parallelism: int = 1
    num_tasks: int | None = None
    on_heap_mb: float | None = None
    off_heap_mb: float | None = None
    cpu: float | None = None
    config: dict[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True)
class Grouping:
    """The grouping of a stream (K16)."""

    type: str
    where: str
    stream: str | None = None
    args: tuple[str, ...] | None = None
    custom_class: ObjectDefinition | None = None


@dataclass(frozen=True)
class Stream:
    """A subscription: ``target`` receives tuples of ``source`` (K16)."""

    source: str
    target: str
    grouping: Grouping
    where: str
    source_where: str
    target_where: str


@dataclass(frozen=True)
class Include:
    """Another file to include. Its definitions are added to the definitions of this file (K17)."""

    file: str
    where: str
    resource: bool = False
    override: bool = False


@dataclass
class TopologyDefinition:
    """The content of a whole file (K13)."""

    file: str
    name: str | None = None
    name_where: str = ""
    config: dict[str, Setting] = field(default_factory=dict)
    components: dict[str, ObjectDefinition] = field(default_factory=dict)
    spouts: dict[str, Vertex] = field(default_factory=dict)
    bolts: dict[str, Vertex] = field(default_factory=dict)
    streams: list[Stream] = field(default_factory=list)
    includes: list[Include] = field(default_factory=list)
    worker_hooks: dict[str, ObjectDefinition] = field(default_factory=dict)
    source: ObjectDefinition | None = None
    source_method: str = "getTopology"
    #: Python classes for the class names in the file: the key ``classNames``, which Storm's Flux does not have (K23).
    class_names: dict[str, Setting] = field(default_factory=dict)


_TOPOLOGY = (
    "name config components spouts bolts streams includes workerHooks topologySource type classNames".split()
)
_OBJECT = "id className constructorArgs properties configMethods factory factoryArgs".split()
_VERTEX = [*_OBJECT, *"parallelism numTasks onHeapMemoryLoad offHeapMemoryLoad cpuLoad config".split()]
_STREAM = "id name from to grouping".split()
_GROUPING = "type streamId args customClass".split()
#: The groupings that a file may name. PARTIAL_KEY is stormspark's own; files for Storm use CUSTOM in its place.
GROUPING_TYPES = "ALL CUSTOM DIRECT FIELDS GLOBAL LOCAL_OR_SHUFFLE NONE PARTIAL_KEY SHUFFLE".split()

_T = TypeVar("_T")


def read_topology(root: Located, file: str) -> TopologyDefinition:
    """Read the definition from the document ``root``. Raises `InvalidTopologyError` with the line of the first mistake."""
    keys = root.mapping("a topology", _TOPOLOGY)
    topology = TopologyDefinition(file)
    if "name" in keys:
        topology.name, topology.name_where = keys["name"].text("name"), keys["name"].where
    if "type" in keys and (kind := keys["type"].text("type")) not in ("storm", "heron"):
        keys["type"].refuse(f"type must be storm or heron, got {kind!r}")  # K22
    topology.config = _config(keys.get("config"), "config")
    topology.class_names = _class_names(keys.get("classNames"))
    topology.components = _by_id("component", _list(keys, "components", _component))
    spouts = _list(keys, "spouts", lambda part: _vertex(part, "a spout"))
    bolts = _list(keys, "bolts", lambda part: _vertex(part, "a bolt"))
    topology.spouts = {v.object.id: v for v in _distinct("spout", spouts)}
    topology.bolts = {v.object.id: v for v in _distinct("bolt", bolts)}
    topology.streams = _list(keys, "streams", _stream)
    topology.includes = _list(keys, "includes", _include)
    topology.worker_hooks = _by_id("worker hook", _list(keys, "workerHooks", _hook))
    if "topologySource" in keys:
        part = keys["topologySource"]
        known = part.mapping("topologySource", [*_OBJECT, "methodName"])
        topology.source = _object(part, known, "topologySource", "topologySource")
        if "methodName" in known:
            topology.source_method = known["methodName"].text("methodName")
    return topology


def _list(keys: dict[str, Located], key: str, read: Callable[[Located], _T]) -> list[_T]:
    return [read(part) for part in keys[key].items(key)] if key in keys else []


def _by_id(kind: str, objects: list[ObjectDefinition]) -> dict[str, ObjectDefinition]:
    return {v.object.id: v.object for v in _distinct(kind, [Vertex(one) for one in objects])}


def _distinct(kind: str, vertices: list[Vertex]) -> Iterable[Vertex]:
    first: dict[str, ObjectDefinition] = {}
    for vertex in vertices:
        one = vertex.object
        before = first.setdefault(one.id, one)
        if before is not one:
            msg = (
                f"{one.where}: the {kind} {one.id!r} is declared at {before.where} already; choose another id"
            )
            raise InvalidTopologyError(msg)
    return vertices


def _config(part: Located | None, what: str) -> dict[str, Setting]:
    entries = part.entries(what) if part else {}
    return {key: Setting(value.value(), where) for key, (value, where) in entries.items()}


def _class_names(part: Located | None) -> dict[str, Setting]:
    entries = part.entries("classNames") if part else {}
    return {
        name: Setting(value.text(f"the Python class for {name!r}"), where)
        for name, (value, where) in entries.items()
    }


def _component(part: Located) -> ObjectDefinition:
    return _object(part, part.mapping("a component", _OBJECT), "a component")


def _hook(part: Located) -> ObjectDefinition:
    keys = part.mapping("a worker hook", _OBJECT)
    name = keys["className"].text("className") if "className" in keys else None
    return _object(part, keys, "a worker hook", name)  # Storm's hooks need no id


def _vertex(part: Located, what: str) -> Vertex:
    keys = part.mapping(what, _VERTEX)
    definition = _object(part, keys, what)
    named = f"{what.removeprefix('a ')} {definition.id!r}"

    def amount(key: str) -> float | None:
        """Return the number under ``key``; None for a negative number, which in Storm means that nothing is set."""
        value = keys[key].number(f"{named}: {key}") if key in keys else -1
        return None if value < 0 else value

    tasks = keys["numTasks"].whole(f"{named}: numTasks") if "numTasks" in keys else -1
    return Vertex(
        definition,
        parallelism=keys["parallelism"].whole(f"{named}: parallelism") if "parallelism" in keys else 1,
        num_tasks=None if tasks < 0 else tasks,
        on_heap_mb=amount("onHeapMemoryLoad"),
        off_heap_mb=amount("offHeapMemoryLoad"),
        cpu=amount("cpuLoad"),
        config=_config(keys.get("config"), f"{named}: config"),
    )


def _object(part: Located, keys: dict[str, Located], what: str, id: str | None = None) -> ObjectDefinition:
    if "id" in keys:
        id = keys["id"].text(f"the id of {what}")
    if id is None:
        part.refuse(f"{what} needs an id")
    named = what if id == what else f"{what.removeprefix('a ')} {id!r}"
    if "className" not in keys:
        part.refuse(f"{named} needs a className")
    factory = None
    if "factory" in keys:
        factory = Method(
            keys["factory"].text(f"{named}: factory"),
            _arguments(keys.get("factoryArgs"), f"{named}: factoryArgs"),
            keys["factory"].where,
        )
    elif "factoryArgs" in keys:
        keys["factoryArgs"].refuse(f"{named} has factoryArgs without a factory")
    constructor_args = _arguments(keys.get("constructorArgs"), f"{named}: constructorArgs")
    if factory and constructor_args:
        keys["factory"].refuse(f"{named} has constructorArgs and a factory: which of them makes it?")
    return ObjectDefinition(
        id,
        keys["className"].text(f"{named}: className"),
        part.where,
        keys["className"].where,
        constructor_args,
        factory,
        tuple(_list(keys, "properties", lambda one: _property(one, named))),
        tuple(_list(keys, "configMethods", lambda one: _method(one, named))),
    )


def _arguments(part: Located | None, what: str) -> tuple[Any, ...]:
    return tuple(_argument(one) for one in part.items(what)) if part else ()


def _argument(part: Located) -> Any:
    """Read an argument. As in Storm, only the argument itself can be a reference. In a list or mapping, ``ref`` is plain data."""
    match part.sole_entry():
        case "ref", id_:
            return Reference(id_.text("ref"), id_.where)
        case "reflist", ids:
            return References(tuple(Reference(one.text("an id"), one.where) for one in ids.items("reflist")))
    return part.value()


def _property(part: Located, named: str) -> Property:
    keys = part.mapping(f"a property of {named}", ["name", "value", "ref"])
    if "name" not in keys:
        part.refuse(f"a property of {named} needs a name")
    name = keys["name"].text(f"{named}: the name of a property")
    if ("value" in keys) == ("ref" in keys):
        part.refuse(f"property {name!r} of {named} needs either a value or a ref")
    value = Reference(keys["ref"].text("ref"), keys["ref"].where) if "ref" in keys else keys["value"].value()
    return Property(name, value, part.where)


def _method(part: Located, named: str) -> Method:
    keys = part.mapping(f"a config method of {named}", ["name", "args"])
    if "name" not in keys:
        part.refuse(f"a config method of {named} needs a name")
    name = keys["name"].text(f"{named}: the name of a config method")
    return Method(name, _arguments(keys.get("args"), f"{named}: the args of {name}"), part.where)


def _stream(part: Located) -> Stream:
    keys = part.mapping("a stream", _STREAM)
    for key in ("from", "to", "grouping"):
        if key not in keys:
            part.refuse(f"a stream needs '{key}'")
    source, target = keys["from"].text("from"), keys["to"].text("to")
    grouping = _grouping(keys["grouping"], f"the stream from {source!r} to {target!r}")
    return Stream(source, target, grouping, part.where, keys["from"].where, keys["to"].where)


def _grouping(part: Located, named: str) -> Grouping:
    keys = part.mapping(f"the grouping of {named}", _GROUPING)
    if "type" not in keys:
        part.refuse(f"the grouping of {named} needs a type: one of {', '.join(GROUPING_TYPES)}")
    kind = keys["type"].text("type").upper()
    if kind not in GROUPING_TYPES:
        keys["type"].refuse(
            f"{named}: there is no grouping {kind!r}; choose one of {', '.join(GROUPING_TYPES)}"
        )
    args = keys["args"].items(f"{named}: args") if "args" in keys else None
    if kind in ("FIELDS", "PARTIAL_KEY") and args is None:
        part.refuse(f"{named}: a {kind} grouping needs the names of its fields: args: [...]")
    custom = None
    if kind == "CUSTOM":
        if "customClass" not in keys:
            part.refuse(f"{named}: a CUSTOM grouping needs a customClass with its className")
        one = keys["customClass"]
        what = f"the customClass of {named}"
        custom = _object(one, one.mapping(what, _OBJECT), what, what)
    return Grouping(
        kind,
        part.where,
        keys["streamId"].text("streamId") if "streamId" in keys else None,
        None if args is None else tuple(one.text("the name of a field") for one in args),
        custom,
    )


def _include(part: Located) -> Include:
    keys = part.mapping("an include", ["resource", "file", "override"])
    if "file" not in keys:
        part.refuse("an include needs a file")
    return Include(
        keys["file"].text("the file of an include"),
        part.where,
        "resource" in keys and keys["resource"].flag("resource"),
        "override" in keys and keys["override"].flag("override"),
    )
