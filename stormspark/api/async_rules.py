"""The rules for async components, and for the arguments of methods, checked when components are added to a topology."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping, Sequence

from stormspark.api.arrow_components import ArrowBolt, ArrowSpout, PandasBolt
from stormspark.api.async_components import AsyncBolt, AsyncSpout
from stormspark.api.batch_kind import kind_of_batch
from stormspark.api.components import BasicBolt, Bolt, Component, Spout, TickTupleAwareBolt
from stormspark.api.source import SourceSpout
from stormspark.api.state import KeepsState, StatefulComponent, kind_of_state
from stormspark.api.windows import WindowedBolt
from stormspark.coroutines import line_of, problem_with_coroutine

__all__ = ["misspelt_settings", "problem_with_coroutines"]

#: The settings of async components.
_SETTINGS_OF_BOLT = ("capacity", "timeout_secs", "ordered", "waits")
_SETTINGS_OF_SPOUT = ("prefetch", "waits")
#: The settings that are flags; the others are numbers.
_FLAGS = ("ordered", "waits")
#: How similar a name must be to a setting's, from 0 to 1. `order` and `ordered` have 0.83.
_SIMILAR = 0.85
#: Names that are less similar, and still mean the setting.
_OTHER_NAMES = {
    **dict.fromkeys(("timeout", "timeout_seconds"), "timeout_secs"),
    **dict.fromkeys(("order", "in_order", "keep_order"), "ordered"),
}

#: The methods, with the arguments that stormspark passes to them.
_START = ("conf", "context", "collector")
_OF_BOLT: dict[str, Sequence[str]] = {
    "prepare": _START,
    "execute": ("tup",),
    "end_of_input": (),
    "cleanup": (),
}
_OF_SPOUT: dict[str, Sequence[str]] = {
    "open": _START,
    "next_tuple": (),
    **dict.fromkeys(("ack", "fail"), ("message_id",)),
    **dict.fromkeys(("activate", "deactivate", "close"), ()),
}
#: Methods of components that are not async. Users might write them as coroutines by mistake. A component may have other
#: coroutines for its own use.
_OF_OTHERS = (
    *("execute", "execute_batch", "execute_frame", "process", "on_tick_tuple", "prepare", "cleanup"),
    *("next_batch", "translate", "is_done", "end_of_input", *_OF_SPOUT),
    *("init_state", "pre_prepare", "pre_commit", "pre_rollback", "pre_save", "post_save", "pre_restore"),
)

#: Methods whose arguments are checked for components that are not async, too.
_WITH_ARGUMENTS = ("open", "prepare", "next_tuple", "execute", "ack", "fail", "close", "cleanup")
_PACKAGE = __name__.partition(".")[0]

_OTHER_KINDS: tuple[type[Component], ...] = (Bolt, BasicBolt, WindowedBolt, ArrowBolt, Spout, SourceSpout)
#: Kinds that have methods of their own.
_SPECIAL_KINDS: tuple[type[Component], ...] = (TickTupleAwareBolt, PandasBolt, ArrowSpout)
_KINDS_WITH_STATE: tuple[type, ...] = (KeepsState, StatefulComponent)


def problem_with_coroutines(component: Component) -> str | None:
    """Return the rule that a component breaks, as a sentence; None if it breaks none.

    An async component must have coroutines as methods, sensible settings, and no second kind of component as a base. It can't
    have state or take part in batches. Any other component must not have coroutines as the methods that stormspark calls, and
    these must take the arguments that they get.
    """
    if isinstance(component, AsyncBolt):
        return (
            _not_coroutines(component, _OF_BOLT)
            or _wrong_arguments(component, _OF_BOLT)
            or _number(component, "capacity")
            or _time(component.timeout_secs)
            or _flag(component, "ordered")
            or _mixture(component, "AsyncBolt")
        )
    if isinstance(component, AsyncSpout):
        return (
            _not_coroutines(component, _OF_SPOUT)
            or _wrong_arguments(component, _OF_SPOUT)
            or _number(component, "prefetch")
            or problem_with_coroutine(component, ("is_done",), "write def is_done")
            or _mixture(component, "AsyncSpout")
        )
    kinds = [
        kind for kind in (*_OTHER_KINDS, *_SPECIAL_KINDS, *_KINDS_WITH_STATE) if isinstance(component, kind)
    ]
    called = [name for name in _OF_OTHERS if any(hasattr(kind, name) for kind in kinds)]
    base = "AsyncSpout" if isinstance(component, Spout | SourceSpout) else "AsyncBolt"
    return problem_with_coroutine(
        component, called, f"derive {type(component).__qualname__} from {base}"
    ) or _wrong_arguments(component, _promised(component), "def")


def _promised(component: Component) -> dict[str, Sequence[str]]:
    """Return the methods that a user has written in place of methods of this package, with the arguments of the latter."""
    promised: dict[str, Sequence[str]] = {}
    for name in _WITH_ARGUMENTS:
        owners = [one for one in type(component).__mro__ if name in vars(one)]
        ours = next((one for one in owners if one.__module__.partition(".")[0] == _PACKAGE), None)
        if ours is None or owners[0] is ours or not inspect.isfunction(vars(ours)[name]):
            continue
        taken = [*inspect.signature(vars(ours)[name]).parameters.values()][1:]
        if all(one.kind is one.POSITIONAL_OR_KEYWORD and one.default is one.empty for one in taken):
            promised[name] = [one.name for one in taken]
    return promised


def misspelt_settings(component: Component) -> tuple[tuple[str, str], ...]:
    """Return the attributes of an async component that are probably misspelt settings, each with the setting.

    An attribute is not misspelt if the same class, a class derived from it, or the object sets the setting, or if its value does
    not fit the setting.

    >>> class Ask(AsyncBolt):
    ...     timeout, capactiy, url = 5, 10, "http://localhost"
    ...     async def execute(self, tup): ...
    ...     def declare_output_fields(self, declarer): ...
    >>> misspelt_settings(Ask())
    (('timeout', 'timeout_secs'), ('capactiy', 'capacity'))
    """
    kind = next((one for one in (AsyncBolt, AsyncSpout) if isinstance(component, one)), None)
    if kind is None:
        return ()
    settings = _SETTINGS_OF_BOLT if kind is AsyncBolt else _SETTINGS_OF_SPOUT
    own = [one for one in type(component).__mro__ if one not in kind.__mro__]
    found: dict[str, str] = {}
    set_by_now: set[str] = set()  # by the object, or by a class that is no base of the one looked at
    for one in (component, *own):
        values = getattr(one, "__dict__", {})
        set_by_now.update(name for name in settings if name in values)
        for name in values:
            if name in settings or name.startswith("_") or name in found:
                continue
            setting = _setting_meant(name, settings)
            fits = setting is not None and _fits(setting, inspect.getattr_static(component, name))
            if setting is not None and fits and setting not in set_by_now:
                found[name] = setting
    return tuple(found.items())


def _setting_meant(name: str, settings: Sequence[str]) -> str | None:
    if (other := _OTHER_NAMES.get(name)) is not None:
        return other if other in settings else None
    close = difflib.get_close_matches(name, settings, 1, _SIMILAR)
    return close[0] if close else None


def _fits(setting: str, value: object) -> bool:
    if setting in _FLAGS:
        return isinstance(value, bool)
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_coroutine(component: Component, name: str) -> bool:
    return inspect.iscoroutinefunction(getattr(component, name, None))


def _wrong_arguments(
    component: Component, methods: Mapping[str, Sequence[str]], define: str = "async def"
) -> str | None:
    """Return what is wrong with the first method that can't be called with the arguments that stormspark passes to it."""
    for name, arguments in methods.items():
        method = getattr(component, name)
        try:
            taken = inspect.signature(method)
            taken.bind(*arguments)
        except ValueError:
            continue  # it is written in C, and has no signature
        except TypeError:
            has_collector = name == "execute" and "collector" in set(taken.parameters).difference(arguments)
            instead = ", and keep the collector that prepare gets" if has_collector else ""
            return (
                f"{name} of class {type(component).__qualname__}{line_of(method)} takes "
                f"{', '.join(taken.parameters) or 'nothing'}: write "
                f"`{define} {name}({', '.join(('self', *arguments))})`{instead}"
            )
    return None


def _not_coroutines(component: Component, names: Iterable[str]) -> str | None:
    wrong = [name for name in names if not _is_coroutine(component, name)]
    if not wrong:
        return None
    must = f"{' and '.join(wrong)} must be {'a coroutine' if len(wrong) == 1 else 'coroutines'}"
    # With a `yield`, `async def` makes a generator, which nobody could await.
    yields = [name for name in wrong if inspect.isasyncgenfunction(getattr(component, name, None))]
    plain = [name for name in wrong if name not in yields]
    write = [f"write {' and '.join(f'`async def {name}`' for name in plain)}"] if plain else []
    emit = [f"{' and '.join(yields)} must not yield; emit by the collector"] if yields else []
    return f"{must}: {', and '.join(write + emit)}"


def _number(component: Component, name: str) -> str | None:
    value = getattr(component, name)
    right = isinstance(value, int) and not isinstance(value, bool) and value > 0
    return None if right else f"{name} must be a whole number above 0, got {value!r}"


def _flag(component: Component, name: str) -> str | None:
    value = getattr(component, name)
    return None if isinstance(value, bool) else f"{name} must be True or False, got {value!r}"


def _time(value: object) -> str | None:
    right = value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value > 0)
    return None if right else f"timeout_secs must be a number of seconds above 0, or None, got {value!r}"


def _mixture(component: Component, base: str) -> str | None:
    other = next((kind.__name__ for kind in _OTHER_KINDS if isinstance(component, kind)), None)
    if other is not None:
        return f"it is both an {base} and a {other}: derive it from one of them"
    if kind_of_state(component) or kind_of_batch(component):
        return f"an {base} can't have state or take part in batches, because its calls may outlast a batch"
    return None
