"""Finds what the code of a function uses: the names in its bytecode, and the values of these names. No code is called."""

from __future__ import annotations

import dis
import inspect
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from importlib.util import resolve_name
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

__all__ = [
    "ANY_PARENT",
    "NOT_DEFINED",
    "UNKNOWN",
    "NotImported",
    "ParentOf",
    "Use",
    "calls",
    "module_dict",
    "uses",
]


class _Mark:
    """A value that user code can't have."""


#: Stands for a value that is known only when the code runs: an argument, an item, a result.
UNKNOWN: Final = _Mark()
#: Stands for the value of a name to which nothing is assigned so far.
NOT_DEFINED: Final = _Mark()
#: Stands for ``super`` if the code does anything else with it than to call it and to take an attribute of the result.
ANY_PARENT: Final = _Mark()


class NotImported(NamedTuple):
    """Stands for a module that the code imports, and that this process has not imported so far."""

    module: str


class ParentOf(NamedTuple):
    """Stands for the result of ``super()`` in a method of a class, or of ``super(cls, ...)``."""

    #: The class; `UNKNOWN` if the code does not show it.
    cls: object


class Use(NamedTuple):
    """One use of a value (``root``), or of ``root.a``, ``root.a.b`` and so on, where ``attributes`` has the names."""

    root: object
    #: The name of the value in the code; empty if it has none.
    name: str
    attributes: tuple[str, ...]
    #: Whether the value is called at once, or its last attribute as a method.
    called: bool
    line: int | None


#: The meaning of a local name: a value, the value's name, and attributes of the value.
_Meaning = tuple[object, str, tuple[str, ...]]
#: An instruction, its name, and its argument.
_Step = tuple[dis.Instruction, str, Any]

_ATTRIBUTES = {"LOAD_ATTR", "LOAD_METHOD", "LOAD_SUPER_ATTR"}
_GLOBALS = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"}
_LOCALS = set(
    "LOAD_FAST LOAD_FAST_BORROW LOAD_FAST_CHECK LOAD_DEREF LOAD_CLASSDEREF LOAD_FROM_DICT_OR_DEREF".split()
)
_STORES = {"STORE_FAST", "STORE_DEREF", "STORE_NAME", "STORE_GLOBAL"}
#: Later versions of Python have single instructions that do the work of two.
_PAIRS = {
    "LOAD_FAST_LOAD_FAST": ("LOAD_FAST", "LOAD_FAST"),
    "LOAD_FAST_BORROW_LOAD_FAST_BORROW": ("LOAD_FAST", "LOAD_FAST"),
    "STORE_FAST_LOAD_FAST": ("STORE_FAST", "LOAD_FAST"),
    "STORE_FAST_STORE_FAST": ("STORE_FAST", "STORE_FAST"),
}
#: The instructions around a call of ``super`` that have no meaning here.
_AROUND_CALLS = {"PUSH_NULL", "PRECALL", "NOP"}
#: Whether Python loads a function that is called before the mark of a call, and not after it.
_MARK_IS_BEHIND = sys.version_info >= (3, 13)
#: The names of code that runs where it is written.
_RUNS_IN_PLACE = {"<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>"}
_IS_ASYNC = inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_CONSTANTS = {"LOAD_CONST", "LOAD_SMALL_INT"}
#: The instructions with which ``import a.b as c`` moves the imported module on the stack.
_MOVES = {"SWAP", "POP_TOP", "COPY"}


def module_dict(module: ModuleType) -> dict[str, Any]:
    """Return the names of a module. This imports nothing, even if the module is a lazy one, which Python imports at its first
    use.
    """
    found: dict[str, Any] = vars(ModuleType)["__dict__"].__get__(module)
    return found


def uses(function: FunctionType) -> Iterator[Use]:
    """Yield what a function and the functions inside of it use.

    >>> import time
    >>> def late():
    ...     return time.time() > 5
    >>> [(use.name, use.attributes) for use in uses(late)]
    [('time', ('time',))]
    """
    return _uses(function.__code__, function.__globals__, _enclosed(function))


def calls(function: FunctionType, bound: object = UNKNOWN) -> Iterator[Use]:
    """Yield what a function calls by name while it runs. ``bound`` is the object whose method it is.

    What the function passes on as a value is no call of its own. Nor are the calls in a function that is defined inside of it,
    unless that is a coroutine function.

    >>> import time
    >>> def late(put_off):
    ...     put_off(time.sleep, 1)
    ...     put_off(lambda: time.sleep(1))
    ...     return time.time() > 5
    >>> [(use.name, use.attributes) for use in calls(late)]
    [('time', ('time',))]
    """
    code, local = function.__code__, _enclosed(function)
    if bound is not UNKNOWN and code.co_argcount:
        first = code.co_varnames[0]
        local[first] = bound, first, ()
    return (use for use in _uses(code, function.__globals__, local, _runs_too) if use.called)


def _runs_too(code: CodeType) -> bool:
    """Return whether code inside of a function runs with it: a comprehension, or a coroutine function, which is awaited there."""
    return code.co_name in _RUNS_IN_PLACE or bool(code.co_flags & _IS_ASYNC)


def _enclosed(function: FunctionType) -> dict[str, _Meaning]:
    """Return the values that a function has from the functions around it."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    return {name: (_content(cell), name, ()) for name, cell in cells}


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return UNKNOWN  # the cell is empty until the enclosing function assigns a value


def _uses(
    code: CodeType,
    names: Mapping[str, Any],
    around: Mapping[str, _Meaning],
    enters: Callable[[CodeType], bool] = lambda code: True,
) -> Iterator[Use]:
    local = dict(around)
    constants: list[Any] = [None, None]
    importing: tuple[object, str] | None = None
    #: The value that the last instruction has loaded, and the attributes that were loaded from it so far.
    loaded: _Meaning | None = None
    called = marked = loads_marked = False
    line: int | None = code.co_firstlineno
    steps = list(_instructions(code))
    go_on_at = 0
    for at, (instruction, op, name) in enumerate(steps):
        if at < go_on_at:
            continue
        if op in _ATTRIBUTES:
            root, root_name, attributes = loaded or (UNKNOWN, "", ())
            loaded = root, root_name, (*attributes, name)
            called = marked or _is_call(instruction)
            line = _line(instruction) or line
            continue
        if op == "IMPORT_FROM" and importing is not None:
            attributes = loaded[2] if loaded is not None else ()
            loaded = *importing, (*attributes, name)
            continue
        if op in _STORES and importing is not None:
            local[name], loaded = loaded or (*importing, ()), None
            continue
        if importing is not None and op in _MOVES:
            continue
        if loaded is not None:
            yield Use(*loaded, called or (_MARK_IS_BEHIND and op == "PUSH_NULL"), line)
            loaded = None
        # A mark that comes first belongs to the value that is loaded next, or to the last attribute of this value.
        called = marked = loads_marked or (op == "LOAD_GLOBAL" and bool((instruction.arg or 0) & 1))
        loads_marked = op == "PUSH_NULL" and not _MARK_IS_BEHIND
        importing = None
        line = _line(instruction) or line
        if op in _CONSTANTS:
            constants = [constants[1], name]
        elif op == "IMPORT_NAME":
            importing = _imported(name, constants, names)
            if type(importing[0]) is NotImported:
                yield Use(*importing, (), False, line)
        elif op in _GLOBALS:
            loaded = _meaning(op, name, local, names)
            if loaded is not None and loaded[0] is super:
                parent, go_on_at = _parent(steps, at + 1, local, names)
                loaded, marked = (parent, "", ()), False
        elif op in _LOCALS:
            loaded = _meaning(op, name, local, names)
        elif op in {"STORE_NAME", "STORE_GLOBAL"}:
            local[name] = UNKNOWN, name, ()
    if loaded is not None:
        yield Use(*loaded, called, line)
    for constant in code.co_consts:
        if type(constant) is CodeType and enters(constant):
            yield from _uses(constant, names, local, enters)


def _meaning(op: str, name: str, local: Mapping[str, _Meaning], names: Mapping[str, Any]) -> _Meaning | None:
    """Return the meaning of a name that an instruction loads. None if it is a local variable, whose value nobody knows."""
    if name in local:
        return local[name]
    return (_global(name, names), name, ()) if op in _GLOBALS else None


def _parent(
    steps: Sequence[_Step], at: int, local: Mapping[str, _Meaning], names: Mapping[str, Any]
) -> tuple[object, int]:
    """Return what stands for the result of ``super``, which the instruction before ``at`` has loaded, and where to go on.

    This is a `ParentOf` if an attribute of ``super()`` or of ``super(cls, self)`` follows. Then the code goes on at this
    attribute. Otherwise it is `ANY_PARENT`, and the code goes on at ``at``.
    """
    given: list[_Step] = []
    called = False
    for here in range(at, len(steps)):
        op = steps[here][1]
        if op in _ATTRIBUTES and (called or op == "LOAD_SUPER_ATTR") and len(given) in {0, 2}:
            meaning = _meaning(*given[0][1:], local, names) if given else local.get("__class__")
            return ParentOf(UNKNOWN if meaning is None or meaning[2] else meaning[0]), here
        if (op in _GLOBALS or op in _LOCALS) and not called:
            given.append(steps[here])
        elif op == "CALL" and not called:
            called = True
        elif op not in _AROUND_CALLS:
            break
    return ANY_PARENT, at


def _instructions(code: CodeType) -> Iterator[_Step]:
    """Yield each instruction with its name and its argument. Yield an instruction of `_PAIRS` twice, once for each half.

    Leave out those that only extend the argument of the next one.
    """
    for instruction in dis.get_instructions(code):
        if instruction.opname == "EXTENDED_ARG":
            continue
        pair = _PAIRS.get(instruction.opname)
        if pair is None:
            yield instruction, instruction.opname, instruction.argval
        else:
            for op, name in zip(pair, instruction.argval, strict=True):
                yield instruction, op, name


def _line(instruction: dis.Instruction) -> int | None:
    return instruction.positions.lineno if instruction.positions is not None else None


def _is_call(instruction: dis.Instruction) -> bool:
    """Return whether the attribute is loaded as a method that is called at once."""
    if instruction.opname == "LOAD_ATTR":
        return sys.version_info >= (3, 12) and bool((instruction.arg or 0) & 1)
    return instruction.opname == "LOAD_METHOD" or bool((instruction.arg or 0) & 1)


def _global(name: str, names: Mapping[str, Any]) -> object:
    if name in names:
        return names[name]
    builtins = names.get("__builtins__", NOT_DEFINED)
    if issubclass(type(builtins), ModuleType):
        builtins = module_dict(builtins)
    return builtins.get(name, NOT_DEFINED) if type(builtins) is dict else NOT_DEFINED


def _imported(name: str, constants: list[Any], names: Mapping[str, Any]) -> tuple[object, str]:
    """Return the module that an import statement puts on the stack, and its name, without importing it."""
    level, taken = constants
    if level:
        name = resolve_name("." * level + name, names.get("__package__") or "")
    if sys.modules.get(name) is None:
        return NotImported(name), name
    if not taken:
        name = name.partition(".")[0]
    return sys.modules.get(name, NotImported(name)), name
