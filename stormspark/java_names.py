"""Java's names of Storm's methods, which people who know Storm write by habit, and the names that the methods have here."""

from __future__ import annotations

import re
from collections.abc import Iterator

__all__ = ["meant", "methods_in_java", "python_name"]

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
#: A Java tuple has a method for each type of value, by position and by field.
_VALUE = re.compile(r"get(String|Integer|Long|Double|Float|Short|Byte|Boolean|Binary|Value)(ByField)?")
_ABSTRACT = re.compile(r"Can't instantiate abstract class (\w+) .*?abstract methods? ('?\w+'?(?:, '?\w+'?)*)")
_PACKAGE = __name__.partition(".")[0]


def python_name(name: str) -> str:
    """Return a name in the style of Python.

    >>> python_name("declareOutputFields")
    'declare_output_fields'
    """
    return _HUMP.sub("_", name).lower()


def meant(error: BaseException) -> str:
    """Return what the user probably meant by a name that does not exist, as a question; an empty string if that is not known.

    >>> from stormspark import TopologyBuilder
    >>> try:
    ...     TopologyBuilder().setSpout("words", None)
    ... except AttributeError as error:
    ...     meant(error)
    'did you mean set_spout?'
    """
    if isinstance(error, AttributeError) and error.name:
        name = _attribute(error.obj, error.name)
    elif isinstance(error, TypeError):
        name = _abstract_method(error)
    else:
        return ""
    return f"did you mean {name}?" if name else ""


def methods_in_java(component: object) -> Iterator[tuple[str, str]]:
    """Iterate over the methods of a user's component that have a Java name of Storm's, and that nothing calls here.

    Each comes with its name here. A method that the user's class has under both names is left out.

    >>> from stormspark import Bolt
    >>> class Split(Bolt):
    ...     __module__ = "words"
    ...     def prepare(self, conf, context, collector): ...
    ...     def execute(self, tup): ...
    ...     def declareOutputFields(self, declarer): ...
    >>> list(methods_in_java(Split()))
    [('declareOutputFields', 'declare_output_fields')]
    """
    kind = type(component)
    for base in kind.__mro__:
        if base.__module__.partition(".")[0] == _PACKAGE:
            return
        for java in vars(base):
            name = python_name(java)
            if name != java and _is_of_this_package(getattr(kind, name, None)):
                yield java, name


def _is_of_this_package(method: object) -> bool:
    return callable(method) and str(getattr(method, "__module__", "")).partition(".")[0] == _PACKAGE


def _attribute(obj: object, java: str) -> str:
    kind = obj if isinstance(obj, type) else type(obj)
    if kind.__module__.partition(".")[0] != _PACKAGE:
        return ""
    name = python_name(java)
    if (value := _VALUE.fullmatch(java)) and hasattr(kind, "source_task"):
        return 'tup["field"]' if value[2] else "tup.values[0]"
    found = next((one for one in (name, name.removeprefix("get_")) if one != java and hasattr(obj, one)), "")
    is_method = callable(getattr(kind, found, None)) if found else False
    return f"{found}, without brackets" if found and found != name and not is_method else found


def _abstract_method(error: TypeError) -> str:
    """Return the method that a class lacks, if the class has it under its Java name."""
    match = _ABSTRACT.match(str(error))
    frame = error.__traceback__
    if match is None or frame is None:
        return ""
    while frame.tb_next is not None:
        frame = frame.tb_next
    kind = {**frame.tb_frame.f_globals, **frame.tb_frame.f_locals}.get(match[1])
    lacks = match[2].replace("'", "").split(", ")
    in_java = {python_name(java): java for java in dir(kind) if python_name(java) != java}
    return next((f"{name} by {in_java[name]}" for name in lacks if name in in_java), "")
