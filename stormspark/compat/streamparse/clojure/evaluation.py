"""Evaluates forms of Clojure: names, literals, special forms, calls of the functions that `core` has, and of the file's own.

A form that needs more, such as a method of a Java object, a macro or a loop, is not an error here. Its value is an `Unknown` with
the form's line. A value that is computed from an `Unknown` is an `Unknown` too. A map, a vector and the functions of the DSL may
contain one, so one unknown setting leaves the rest of a topology readable.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import partial
from typing import Any

from stormspark.compat.streamparse.clojure.core import CORE, call_plain, truthy
from stormspark.compat.streamparse.clojure.forms import (
    Form,
    ListForm,
    MapForm,
    SetForm,
    Symbol,
    VectorForm,
    source_text,
)
from stormspark.compat.streamparse.clojure.values import JavaValue, Keyword, Unknown

__all__ = ["Evaluation", "Function", "Scope"]

#: Names and their values. A scope inside another one is a copy with more names.
Scope = Mapping[str, Any]

#: How many calls are evaluated before the evaluation gives up, and how deep they may be.
_MOST_CALLS, _DEEPEST = 20_000, 60
#: The largest numbers, as in Clojure, and the longest texts and collections.
_MOST_BITS, _LONGEST = 64, 20_000
_SETTING = re.compile(r"(?:Config/)?((?:TOPOLOGY|STORM|NIMBUS|SUPERVISOR|WORKER|UI|DRPC)[-_][A-Z_-]+)$")
_TEXT = 60
#: What functions raise for arguments that they can't handle.
_ERRORS = (TypeError, ValueError, LookupError, AttributeError, ArithmeticError)
#: The last parts of the DSL's namespaces: streamparse.specs, backtype.storm.clojure and backtype.storm.thrift.
_OF_DSL = ("specs/", "clojure/", "thrift/")


class _TooMuchError(Exception):
    """The evaluation takes too many calls, or too deep ones."""


@dataclass(frozen=True, eq=False)
class Function:
    """A function of the file: its name, the parameters and the body of each arity, and the names that it sees."""

    name: str
    arities: tuple[tuple[VectorForm, tuple[Form, ...]], ...]
    scope: Scope
    line: int
    evaluation: Evaluation

    def takes(self, count: int) -> bool:
        """Return whether the function can be called with so many arguments."""
        return any(_takes(parameters, count) for parameters, _ in self.arities)

    def __call__(self, *args: Any) -> Any:
        """Bind the parameters of the arity that takes so many arguments, and evaluate its body."""
        fitting = [one for one in self.arities if _takes(one[0], len(args))]
        if not fitting:
            msg = f"{self.name} can't be called with {len(args)} arguments"
            raise TypeError(msg)
        parameters, body = min(fitting, key=lambda one: _rest(one[0]) is not None)
        scope = dict(self.scope)
        self.evaluation.bind(parameters, args, scope)
        return self.evaluation.last_of(body, scope)


def _rest(parameters: VectorForm) -> int | None:
    """Return how many parameters stand before ``&``; None if there is no ``&``."""
    names = [one.name if isinstance(one, Symbol) else "" for one in parameters.items]
    return names.index("&") if "&" in names else None


def _takes(parameters: VectorForm, count: int) -> bool:
    rest = _rest(parameters)
    return count == len(parameters.items) if rest is None else count >= rest


@dataclass
class Evaluation:
    """Evaluates the forms of one file. ``names`` has what the file has defined so far, and what it uses of the DSL.

    ``dsl`` has the functions of the DSL. Each gets the line of its call, and then the arguments.
    """

    dsl: Mapping[str, Callable[..., Any]]
    names: dict[str, Any] = field(default_factory=dict)
    #: The Java classes that the file imports, by their short names.
    classes: dict[str, str] = field(default_factory=dict)
    #: For each short name of a namespace, the namespace.
    aliases: dict[str, str] = field(default_factory=dict)
    _calls: int = 0
    _depth: int = 0

    def value(self, form: Form, scope: Scope | None = None) -> Any:
        """Return the value of a form."""
        scope = {} if scope is None else scope
        match form:
            case Symbol():
                return self._named(form, scope)
            case VectorForm():
                return tuple(self.value(one, scope) for one in form.items)
            case SetForm():
                return frozenset(self.value(one, scope) for one in form.items)
            case MapForm():
                pairs = [(self.value(key, scope), self.value(one, scope)) for key, one in form.pairs]
                try:
                    return dict(pairs)
                except TypeError:
                    return self._unknown(form, "a key of this map is a map")
            case ListForm():
                return self._list(form, scope) if form.items else ()
        return form

    def last_of(self, forms: Sequence[Form], scope: Scope) -> Any:
        """Evaluate forms, and return the value of the last one."""
        result: Any = None
        for form in forms:
            result = self.value(form, scope)
        return result

    def bind(self, pattern: Form, value: Any, scope: dict[str, Any]) -> None:
        """Bind the names of a parameter list, or of the left side of a ``let``, to the parts of a value."""
        match pattern:
            case Symbol():
                scope[pattern.name] = value
            case VectorForm():
                items = list(pattern.items)
                while items:
                    one = items.pop(0)
                    if isinstance(one, Symbol) and one.name == "&":
                        self.bind(items.pop(0), value if isinstance(value, Unknown) else tuple(value), scope)
                    elif one == Keyword("as"):
                        self.bind(items.pop(0), value, scope)
                    elif isinstance(value, Unknown):
                        self.bind(one, value, scope)
                    else:
                        self.bind(one, value[0] if value else None, scope)
                        value = value[1:] if value else value
            case MapForm():
                self._bind_map(pattern, value, scope)

    def _bind_map(self, pattern: MapForm, value: Any, scope: dict[str, Any]) -> None:
        given = value
        if isinstance(value, tuple):
            given = dict(zip(value[::2], value[1::2], strict=False))
        defaults = next((other for key, other in pattern.pairs if key == Keyword("or")), None)
        otherwise = {key.name: one for key, one in getattr(defaults, "pairs", ()) if isinstance(key, Symbol)}

        def bind(name: Form, key: Any) -> None:
            found = given if isinstance(given, Unknown) else (given or {}).get(key)
            if found is None and isinstance(name, Symbol) and name.name in otherwise:
                found = self.value(otherwise[name.name], scope)
            self.bind(name, found, scope)

        for key, one in pattern.pairs:
            if key == Keyword("as"):
                self.bind(one, value, scope)
            elif key in (Keyword("keys"), Keyword("strs")) and isinstance(one, VectorForm):
                for name in one.items:
                    if isinstance(name, Symbol):
                        bind(name, Keyword(name.name) if key == Keyword("keys") else name.name)
            elif key != Keyword("or"):
                bind(key, self.value(one, scope))

    # -- names ---------------------------------------------------------------------------------------------------

    def _named(self, symbol: Symbol, scope: Scope) -> Any:
        name = symbol.name
        for names in (scope, self.names):
            if name in names:
                return names[name]
        alias, slash, local = name.partition("/")
        if slash and alias:  # the last part of a namespace is enough: clojure.string/join is string/join
            name = f"{self.aliases.get(alias, alias).rpartition('.')[2]}/{local}"
        for namespace in _OF_DSL:
            if (found := self.dsl.get(name.removeprefix(namespace))) is not None:
                return found
        if (found := CORE.get(name) or CORE.get(name.removeprefix("core/"))) is not None:
            return found
        if setting := _SETTING.match(name):
            return setting[1].lower().replace("-", ".").replace("_", ".")
        if name in self.classes:
            return JavaValue(self.classes[name], (), symbol.line)
        java = "it is a name of Java or of another namespace"
        why = java if slash else "neither the file nor the DSL defines this name"
        return Unknown(symbol.line, symbol.name, why)

    # -- lists ---------------------------------------------------------------------------------------------------

    def _list(self, form: ListForm, scope: Scope) -> Any:
        head, *rest = form.items
        if isinstance(head, Symbol) and head.name not in scope and head.name not in self.names:
            special = _SPECIAL.get(head.local)
            if special is not None:
                try:
                    return special(self, form, rest, scope)
                except (IndexError, TypeError, ValueError, AttributeError) as error:
                    return self._unknown(form, f"it is not understood ({type(error).__name__}: {error})")
            if head.name not in CORE and (made := self._java(form, head, rest, scope)) is not None:
                return made
        return self._call(form, self.value(head, scope), [self.value(one, scope) for one in rest])

    def _call(self, form: ListForm, function: Any, args: list[Any]) -> Any:
        if isinstance(function, Unknown):
            if function.line == form.line:
                return Unknown(form.line, _short(form), f"{function.text} is not known: {function.why}")
            return function
        self._calls += 1
        if self._calls > _MOST_CALLS or self._depth > _DEEPEST:
            raise _TooMuchError
        self._depth += 1
        try:
            if getattr(function, "is_dsl", False):
                return function(form.line, *args)
            # Functions such as `apply` and `map` call the DSL without a line.
            args = [partial(one, form.line) if getattr(one, "is_dsl", False) else one for one in args]
            unknown = next((one for one in args if isinstance(one, Unknown)), None)
            if unknown is not None and not isinstance(function, Function) and function not in _MAY_HOLD:
                return unknown
            return _bounded(call_plain(function, *args))
        except _ERRORS as error:
            if (unknown := _unknown_in(args)) is not None:
                return unknown
            return self._unknown(form, f"{type(error).__name__}: {error}")
        finally:
            self._depth -= 1

    def _java(self, form: ListForm, head: Symbol, rest: list[Form], scope: Scope) -> Any:
        """Return the value of a form that makes or changes a Java object; None if the form is another one."""
        name = head.name
        if name == "new" and rest and isinstance(rest[0], Symbol):
            name, rest = f"{rest[0].name}.", rest[1:]
        if name.endswith(".") and len(name) > 1 and not name.startswith("."):
            short = name[:-1]
            args = tuple(self.value(one, scope) for one in rest)
            return JavaValue(self.classes.get(short, short), args, form.line)
        if name.startswith(".") or name == "doto":
            return self._unknown(form, "it calls a method of a Java object")
        return None

    def _unknown(self, form: Form, why: str) -> Unknown:
        return Unknown(getattr(form, "line", 1), _short(form), why)

    def limited(self, form: Form, compute: Callable[[], Any]) -> Any:
        """Compute a value. It is unknown if that takes too long, or raises an error."""
        self._calls = self._depth = 0
        try:
            return compute()
        except (_TooMuchError, RecursionError):
            return self._unknown(form, "evaluating it takes too long")
        except _ERRORS as error:
            return self._unknown(form, f"{type(error).__name__}: {error}")


def _bounded(value: Any) -> Any:
    """Return a value that a function has made. Raises `ArithmeticError` if a number, a text or a collection has become too large.

    Clojure's own numbers end at 64 bits, too. Without a bound, a few calls would make numbers that take hours.
    """
    parts = (value.numerator, value.denominator) if isinstance(value, Fraction) else (value,)
    if any(isinstance(one, int) and one.bit_length() > _MOST_BITS for one in parts):
        msg = "integer overflow"
        raise ArithmeticError(msg)
    if isinstance(value, str | tuple | dict | frozenset) and len(value) > _LONGEST:
        msg = f"its value has more than {_LONGEST:,} parts"
        raise ArithmeticError(msg)
    return value


def _unknown_in(value: Any) -> Unknown | None:
    """Return the first `Unknown` in a value, or in the collections in it."""
    if isinstance(value, Unknown):
        return value
    if isinstance(value, dict):
        value = (*value.keys(), *value.values())
    if not isinstance(value, list | tuple | frozenset):
        return None
    return next((found for one in value if (found := _unknown_in(one)) is not None), None)


def _short(form: Form) -> str:
    text = source_text(form)
    return text if len(text) <= _TEXT else f"{text[: _TEXT - 3]}..."


#: Functions that may get an unknown value and put it into a collection.
_MAY_HOLD = {
    CORE[name]
    for name in "assoc merge hash-map array-map vector vec list concat conj cons into zipmap identity map mapv apply".split()
}


# -- special forms -----------------------------------------------------------------------------------------------


def _def(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    name, *value = rest  # a docstring may stand before the value
    ev.names[name.name] = ev.value(value[-1], scope) if value else None
    return ev.names[name.name]


def _function(ev: Evaluation, name: str, rest: list[Form], scope: Scope, line: int) -> Function:
    """Make a function, with one arity or several ones."""
    while rest and not isinstance(rest[0], VectorForm | ListForm):
        rest = rest[1:]  # a docstring, a map of attributes
    arities = (
        [tuple(rest)]
        if isinstance(rest[0], VectorForm)
        else [one.items for one in rest if isinstance(one, ListForm)]
    )
    if not all(arity and isinstance(arity[0], VectorForm) for arity in arities):
        msg = "it has no list of parameters"
        raise TypeError(msg)
    return Function(name, tuple((arity[0], arity[1:]) for arity in arities), dict(scope), line, ev)


def _defn(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    name, *others = rest
    ev.names[name.name] = made = _function(ev, name.name, others, scope, form.line)
    return made


def _fn(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    if isinstance(rest[0], Symbol):
        rest = rest[1:]
    return _function(ev, "fn", rest, scope, form.line)


def _let(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    bindings, *body = rest
    inner = dict(scope)
    for pattern, value in zip(bindings.items[::2], bindings.items[1::2], strict=True):
        ev.bind(pattern, ev.value(value, inner), inner)
    return ev.last_of(body, inner)


def _do(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    return ev.last_of(rest, scope)


def _chosen(ev: Evaluation, test: Any, yes: Callable[[], Any], no: Callable[[], Any]) -> Any:
    if isinstance(test, Unknown):
        return test
    return yes() if truthy(test) else no()


def _if(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    test, yes, *no = rest
    return _chosen(ev, ev.value(test, scope), lambda: ev.value(yes, scope), lambda: ev.last_of(no, scope))


def _if_not(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    test, no, *yes = rest
    return _chosen(ev, ev.value(test, scope), lambda: ev.last_of(yes, scope), lambda: ev.value(no, scope))


def _when(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    test, *body = rest
    return _chosen(ev, ev.value(test, scope), lambda: ev.last_of(body, scope), lambda: None)


def _when_not(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    test, *body = rest
    return _chosen(ev, ev.value(test, scope), lambda: None, lambda: ev.last_of(body, scope))


def _if_let(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    bindings, *branches = rest
    pattern, expression = bindings.items
    test = ev.value(expression, scope)
    inner = dict(scope)
    ev.bind(pattern, test, inner)
    if form.items[0].local == "when-let":
        return _chosen(ev, test, lambda: ev.last_of(branches, inner), lambda: None)
    yes, *no = branches
    return _chosen(ev, test, lambda: ev.value(yes, inner), lambda: ev.last_of(no, scope))


def _cond(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    for test, value in zip(rest[::2], rest[1::2], strict=True):
        found = ev.value(test, scope)
        if isinstance(found, Unknown):
            return found
        if truthy(found):
            return ev.value(value, scope)
    return None


def _case(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    subject = ev.value(rest[0], scope)
    clauses = rest[1:]
    if isinstance(subject, Unknown):
        return subject
    for one, value in zip(clauses[::2], clauses[1::2], strict=False):
        constants = one.items if isinstance(one, ListForm) else (one,)
        if subject in constants:
            return ev.value(value, scope)
    if len(clauses) % 2:
        return ev.value(clauses[-1], scope)
    msg = "no clause matches"
    raise ValueError(msg)


def _or(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    found: Any = None
    for one in rest:
        found = ev.value(one, scope)
        if truthy(found):
            break
    return found


def _and(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    found: Any = True
    for one in rest:
        found = ev.value(one, scope)
        if isinstance(found, Unknown) or not truthy(found):
            break
    return found


def _thread(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    last = form.items[0].local == "->>"
    made, *steps = rest
    for step in steps:
        items = step.items if isinstance(step, ListForm) else (step,)
        made = ListForm(
            (*items, made) if last else (items[0], made, *items[1:]), getattr(step, "line", form.line)
        )
    return ev.value(made, scope)


def _for(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    bindings, body = rest
    pairs = list(zip(bindings.items[::2], bindings.items[1::2], strict=True))
    made: list[Any] = []

    def loop(at: int, inner: dict[str, Any]) -> None:
        if at == len(pairs):
            made.append(ev.value(body, inner))
            return
        pattern, expression = pairs[at]
        if pattern == Keyword("let"):
            inner = dict(inner)
            for name, value in zip(expression.items[::2], expression.items[1::2], strict=True):
                ev.bind(name, ev.value(value, inner), inner)
            loop(at + 1, inner)
        elif pattern == Keyword("when"):
            if truthy(ev.value(expression, inner)):
                loop(at + 1, inner)
        else:
            values = ev.value(expression, inner)
            for one in _each(values):
                further = dict(inner)
                ev.bind(pattern, one, further)
                loop(at + 1, further)

    loop(0, dict(scope))
    return tuple(made)


def _each(values: Any) -> Iterator[Any]:
    if isinstance(values, Unknown):
        msg = f"{values.text} is not known: {values.why}"
        raise ValueError(msg)
    return iter(values.items() if isinstance(values, dict) else values or ())


def _set(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    """Note that ``(set! (.scheme config) ...)`` or ``(set! (. config scheme) ...)`` changes a Java object."""
    names = [one for one in rest[0].items if isinstance(one, Symbol)]
    for one in names:
        value = ev.value(one, scope)
        if isinstance(value, JavaValue):
            field_name = next(other.name for other in names if other is not one and other.name != ".")
            value.fields_set[field_name.lstrip(".-")] = form.line
    return Unknown(form.line, _short(form), "it changes a Java object")


def _quote(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    if _has_names(rest[0]):
        return Unknown(form.line, _short(form), "it is quoted")
    return ev.value(rest[0], scope)


def _has_names(form: Form) -> bool:
    """Return whether quoting a form makes a difference: whether it has a symbol, or a list that is not empty."""
    match form:
        case Symbol():
            return True
        case ListForm():
            return bool(form.items)
        case VectorForm() | SetForm():
            return any(map(_has_names, form.items))
        case MapForm():
            return any(_has_names(one) for pair in form.pairs for one in pair)
    return False


def _nothing(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
    return None


def _only_clojure(why: str) -> Callable[..., Any]:
    def unknown(ev: Evaluation, form: ListForm, rest: list[Form], scope: Scope) -> Any:
        made = Unknown(form.line, _short(form), why)
        if form.items[0].local.startswith("def") and rest and isinstance(rest[0], Symbol):
            ev.names[rest[0].name] = made
        return made

    return unknown


_LOOPS = "loops are not evaluated"
_WRITTEN_IN_CLOJURE = "this component is written in Clojure"

_SPECIAL: Mapping[str, Callable[[Evaluation, ListForm, list[Form], Scope], Any]] = {
    "def": _def,
    "defonce": _def,
    "defn": _defn,
    "defn-": _defn,
    "fn": _fn,
    "fn*": _fn,
    "let": _let,
    "let*": _let,
    "do": _do,
    "if": _if,
    "if-not": _if_not,
    "when": _when,
    "when-not": _when_not,
    "if-let": _if_let,
    "when-let": _if_let,
    "cond": _cond,
    "case": _case,
    "or": _or,
    "and": _and,
    "->": _thread,
    "->>": _thread,
    "for": _for,
    "quote": _quote,
    "comment": _nothing,
    "declare": _nothing,
    "println": _nothing,
    "set!": _set,
    "loop": _only_clojure(_LOOPS),
    "doseq": _only_clojure(_LOOPS),
    "dotimes": _only_clojure(_LOOPS),
    "defmacro": _only_clojure("macros are not expanded"),
    "defbolt": _only_clojure(_WRITTEN_IN_CLOJURE),
    "defspout": _only_clojure(_WRITTEN_IN_CLOJURE),
    "bolt": _only_clojure(_WRITTEN_IN_CLOJURE),
    "spout": _only_clojure(_WRITTEN_IN_CLOJURE),
    "defrecord": _only_clojure("it makes a Java class"),
    "deftype": _only_clojure("it makes a Java class"),
    "reify": _only_clojure("it makes a Java class"),
    "proxy": _only_clojure("it makes a Java class"),
    "try": _only_clojure("exceptions are not evaluated"),
    "throw": _only_clojure("it raises an error"),
}
