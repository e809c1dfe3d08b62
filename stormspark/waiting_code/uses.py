"""Finds what the code of a function uses: the names in its bytecode, and the values of these names. No code is called."""

from __future__ import annotations

import dis
import sys
from collections.abc import Iterator, Mapping
from importlib.util import resolve_name
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple

__all__ = ["NOT_DEFINED", "UNKNOWN", "NotImported", "Use", "module_dict", "uses"]


class _Mark:
    """A value that user code can't have."""


#: Stands for a value that is known only when the code runs: an argument, an item, a result.
UNKNOWN: Final = _Mark()
#: Stands for the value of a name to which nothing is assigned so far.
NOT_DEFINED: Final = _Mark()


class NotImported(NamedTuple):
    """Stands for a module that the code imports, and that this process has not imported so far."""

    module: str


class Use(NamedTuple):
    """One use of a value (``root``), or of ``root.a``, ``root.a.b`` and so on, where ``attributes`` has the names."""

    root: object
    #: The name of the value in the code; empty if it has none.
    name: str
    attributes: tuple[str, ...]
    #: Whether the last attribute is called as a method.
    called: bool
    line: int | None


#: The meaning of a local name: a value, the value's name, and attributes of the value.
_Meaning = tuple[object, str, tuple[str, ...]]

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
_CONSTANTS = {"LOAD_CONST", "LOAD_SMALL_INT"}
#: The instructions with which ``import a.b as c`` moves the imported module on the stack.
_MOVES = {"SWAP", "POP_TOP", "COPY", "EXTENDED_ARG"}


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
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=False)
    local = {name: (_content(cell), name, ()) for name, cell in cells}
    return _uses(function.__code__, function.__globals__, local)


def _content(cell: CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        return UNKNOWN  # the cell is empty until the enclosing function assigns a value


def _uses(code: CodeType, names: Mapping[str, Any], around: Mapping[str, _Meaning]) -> Iterator[Use]:
    local = dict(around)
    constants: list[Any] = [None, None]
    importing: tuple[object, str] | None = None
    #: The value that the last instruction has loaded, and the attributes that were loaded from it so far.
    loaded: _Meaning | None = None
    called = False
    line: int | None = code.co_firstlineno
    for instruction, op, name in _instructions(code):
        if op in _ATTRIBUTES:
            root, root_name, attributes = loaded or (UNKNOWN, "", ())
            loaded = root, root_name, (*attributes, name)
            called = _is_call(instruction)
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
            yield Use(*loaded, called, line)
            loaded, called = None, False
        importing = None
        line = _line(instruction) or line
        if op in _CONSTANTS:
            constants = [constants[1], name]
        elif op == "IMPORT_NAME":
            importing = _imported(name, constants, names)
            if type(importing[0]) is NotImported:
                yield Use(*importing, (), False, line)
        elif op in _GLOBALS:
            loaded = local[name] if name in local else (_global(name, names), name, ())
        elif op in _LOCALS and name in local:
            loaded = local[name]
        elif op in {"STORE_NAME", "STORE_GLOBAL"}:
            local[name] = UNKNOWN, name, ()
    if loaded is not None:
        yield Use(*loaded, called, line)
    for constant in code.co_consts:
        if type(constant) is CodeType:
            yield from _uses(constant, names, local)


def _instructions(code: CodeType) -> Iterator[tuple[dis.Instruction, str, Any]]:
    """Yield each instruction with its name and its argument. Yield an instruction of `_PAIRS` twice, once for each half."""
    for instruction in dis.get_instructions(code):
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
