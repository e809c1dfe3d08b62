"""Reads a Clojure file into forms, by the reader of basilisp, a Clojure for Python.

Only this module knows basilisp. The reader keeps no order of a map's keys, so `MapForm` has them by their places in the file.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from stormspark.compat.streamparse.clojure.values import ClojureError, Keyword
from stormspark.errors import UnsupportedEnvironmentError

__all__ = ["Form", "ListForm", "MapForm", "SetForm", "Symbol", "VectorForm", "read_forms", "source_text"]


@dataclass(frozen=True)
class Symbol:
    """A name in the source."""

    name: str
    line: int

    @property
    def local(self) -> str:
        """The name without its namespace.

        >>> Symbol("specs/python-bolt-spec", 1).local, Symbol("/", 1).local
        ('python-bolt-spec', '/')
        """
        return self.name.rpartition("/")[2] or self.name


@dataclass(frozen=True)
class ListForm:
    """A form in parentheses."""

    items: tuple[Form, ...]
    line: int


@dataclass(frozen=True)
class VectorForm:
    """A form in brackets."""

    items: tuple[Form, ...]
    line: int


@dataclass(frozen=True)
class MapForm:
    """A form in braces."""

    pairs: tuple[tuple[Form, Form], ...]
    line: int


@dataclass(frozen=True)
class SetForm:
    """A set, such as ``#{1 2}``."""

    items: tuple[Form, ...]
    line: int


#: A form is a `Symbol`, a `ListForm`, a `VectorForm`, a `MapForm` or a `SetForm`. Strings, numbers, booleans, nil, regular
#: expressions and keywords stand for themselves.
Form: TypeAlias = Any

#: Quotes of word processors, and what is left of them in a file with another encoding.
_CURLY = re.compile("[\u2018\u2019\u201c\u201d\ufffd]")
#: A character, a comment, a string, or a regular expression, whose text is the group.
_LITERAL = re.compile(r'\\.|;[^\n]*|#"((?:\\.|[^"\\])*)"|"(?:\\.|[^"\\])*"', re.DOTALL)
_OPENING = re.compile(r"^[(\[{]", re.MULTILINE)


def read_forms(text: str) -> Iterator[Form]:
    r"""Yield the forms at the top of a file.

    Raises `ClojureError` if the text is not Clojure. Raises `UnsupportedEnvironmentError` if basilisp is not installed.

    >>> [form.line for form in read_forms("(ns a)\n; b\n(def c [1 2])")]
    [1, 3]
    """
    try:
        from basilisp.lang import reader, runtime
    except ImportError as error:
        msg = "reading Clojure (.clj) needs basilisp: pip install 'stormspark[clojure]'"
        raise UnsupportedEnvironmentError(msg) from error
    begun = 1
    _prepare_reader()
    try:
        for form in reader.read(io.StringIO(_readable(text)), default_data_reader_fn=_tagged):
            made = _form(form, begun)
            begun = _line(form, begun)
            yield made
    except reader.UnexpectedEOFError as error:
        # The reader names the end of the file. The form that is not closed is the last one that begins at the left margin.
        lines = [text.count("\n", 0, found.start()) + 1 for found in _OPENING.finditer(text)]
        problem = f"the form that begins here is not closed ({error.message}): a parenthesis, bracket or quote is missing"
        raise ClojureError(max([begun, *lines]), problem) from error
    except reader.SyntaxError as error:
        hint = (
            ', perhaps of a typographic quote: Clojure\'s strings are in "..."'
            if _CURLY.search(str(error.message))
            else ""
        )
        raise ClojureError(error.line or begun, f"{error.message}{hint}") from error
    except (runtime.RuntimeException, AssertionError, ValueError, RecursionError) as error:
        raise ClojureError(begun, f"basilisp can't read this form, or the one after it: {error}") from error


def _readable(text: str) -> str:
    r"""Write regular expressions of Java that Python does not understand as calls, on the same lines. Their value is unknown.

    >>> print(_readable(r'''(f "#" #"[a-z]" #"\p{Alpha}+")  ; #"\p"'''))
    (f "#" #"[a-z]" (re-pattern "\\p{Alpha}+"))  ; #"\p"
    """

    def call(found: re.Match[str]) -> str:
        pattern = found[1]
        if pattern is None:
            return found[0]
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError):
            quoted = pattern.replace("\\", "\\\\").replace('\\\\"', '\\"')
            return f'(re-pattern "{quoted}")'
        return found[0]

    return _LITERAL.sub(call, text)


def _tagged(tag: Any, form: Any) -> Any:
    """Return what stands for a form behind a tag of a library, such as ``#foo/bar``: a call whose value is unknown."""
    from basilisp.lang import list as lists
    from basilisp.lang import symbol

    return lists.list([symbol.symbol("tagged-literal"), str(tag), form])


def _prepare_reader() -> None:
    """Set the namespace in which the reader looks up names in ``#(...)``. Without it, the reader knows none."""
    from basilisp.lang import runtime

    if runtime.Var.find(runtime.NS_VAR_SYM) is None:
        runtime.init_ns_var()


def _line(form: Any, otherwise: int) -> int:
    from basilisp.lang import reader

    meta = getattr(form, "meta", None)
    line = meta.val_at(reader.READER_LINE_KW) if meta is not None else None
    return line if isinstance(line, int) else otherwise


def _column(form: Any) -> int:
    from basilisp.lang import reader

    meta = getattr(form, "meta", None)
    column = meta.val_at(reader.READER_COL_KW) if meta is not None else None
    return column if isinstance(column, int) else 0


def _form(form: Any, around: int) -> Form:
    """Return a form of basilisp as one of this module. ``around`` is the line of the form around it."""
    from basilisp.lang import keyword, symbol
    from basilisp.lang import list as lists
    from basilisp.lang import map as maps
    from basilisp.lang import set as sets
    from basilisp.lang import vector as vectors

    line = _line(form, around)
    if isinstance(form, symbol.Symbol):
        name = f"{form.ns}/{form.name}" if form.ns else form.name
        # The reader writes @x and 'x with the names of basilisp's own functions.
        return Symbol(name.removeprefix("basilisp.core/"), line)
    if isinstance(form, keyword.Keyword):
        return Keyword(f"{form.ns}/{form.name}" if form.ns else form.name)
    if isinstance(form, vectors.PersistentVector):
        return VectorForm(tuple(_form(one, line) for one in form), line)
    if isinstance(form, maps.PersistentMap):
        pairs = sorted(form.items(), key=lambda pair: _place(pair, line))
        return MapForm(tuple((_form(key, line), _form(value, line)) for key, value in pairs), line)
    if isinstance(form, sets.PersistentSet):
        return SetForm(tuple(_form(one, line) for one in sorted(form, key=str)), line)
    if isinstance(form, lists.PersistentList) or hasattr(form, "first"):
        return ListForm(tuple(_form(one, line) for one in form), line)
    return form


def _place(pair: tuple[Any, Any], line: int) -> tuple[int, int, str]:
    """Return where a pair of a map stands in the file. Strings and numbers have no place, so their order is alphabetical."""
    for one in pair:
        if getattr(one, "meta", None) is not None:
            return _line(one, line), _column(one), ""
    return line, 0, str(pair[0])


def source_text(form: Form) -> str:
    """Return a form as source text, on one line.

    >>> [source_text(form) for form in read_forms('(f {"a" :b}  [nil true])')]
    ['(f {"a" :b} [nil true])']
    """
    match form:
        case Symbol():
            return form.name
        case ListForm():
            return f"({' '.join(map(source_text, form.items))})"
        case VectorForm():
            return f"[{' '.join(map(source_text, form.items))}]"
        case SetForm():
            return "#{" + " ".join(map(source_text, form.items)) + "}"
        case MapForm():
            pairs = (f"{source_text(key)} {source_text(value)}" for key, value in form.pairs)
            return "{" + ", ".join(pairs) + "}"
        case bool():
            return str(form).lower()
        case None:
            return "nil"
        case str():
            return '"' + form + '"'
        case re.Pattern():
            return f'#"{form.pattern}"'
    return str(form)
