"""Of what a class overrides, the search for code that waits reads only what other code reaches (A16)."""

from __future__ import annotations

from contextlib import suppress
from textwrap import dedent, indent
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormspark.waiting_code import known_to_wait, look_through, why_it_may_wait

BASE = """
import inspect, time
from functools import cached_property, partial
from stormspark import BasicBolt

def slow(): time.sleep(1)

class Base(BasicBolt):
    def execute(self, tup, collector): time.sleep(1)
    def other(self, tup): pass
    @property
    def client(self): time.sleep(1)
    @staticmethod
    def fetch(key): time.sleep(1)
    @classmethod
    def made(cls): time.sleep(1)
    def slow_too(self): slow()
"""
ALL_OVERRIDDEN = """
    def execute(self, tup, collector): pass
    client = fetch = made = slow_too = None
"""


def made(text: str, name: str = "Mine") -> Any:
    """An instance of a class of a module."""
    module: dict[str, Any] = {"__name__": "my_bolts"}
    exec(compile(text, "my_bolts.py", "exec"), module)
    return module[name]()


def mine(body: str, before: str = "", bases: str = "Base") -> Any:
    """An instance of `Mine`, which overrides everything that waits, and then has ``body``."""
    return made(
        f"{BASE}{dedent(before)}\nclass Mine({bases}):{ALL_OVERRIDDEN}\n{indent(dedent(body), '    ')}\n"
    )


@pytest.mark.parametrize(
    "body",
    [
        "",
        "def __init__(self): super().__init__()",
        "def prepare(self, conf, context): super(Mine, self).prepare(conf, context)",
        "def execute(self, tup, collector): super().other(tup)",
        "def execute(self, tup, collector): Base.other(self, tup)",
        "def execute(self, tup, collector): [super(Mine, self).other(one) for one in tup]",
        "def execute(self, tup, collector): print(self.__class__.__name__, type(self).__qualname__)",
        "def execute(self, tup, collector): __class__.other(self, tup)",
        "def execute(self, tup, collector): self.execute(tup, collector); type(self).fetch(1)",
    ],
)
def test_what_is_overridden_and_not_called_is_no_reason(body: str) -> None:
    assert why_it_may_wait(mine(body)) is None
    assert known_to_wait(mine(body)) is None


@pytest.mark.parametrize(
    "body",
    [
        "def execute(self, tup, collector): super().execute(tup, collector)",
        "def execute(self, tup, collector): super(Mine, self).execute(tup, collector)",
        "def execute(self, tup, collector): return [super(Mine, self).execute(one, collector) for one in tup]",
        "def execute(self, tup, collector): super(type(self), self).execute(tup, collector)",
        "def execute(self, tup, collector): super(__class__, self).execute(tup, collector)",
        "def execute(self, tup, collector):\n    def later(): super(Mine, self).execute(tup, collector)\n    later()",
        "def execute(self, tup, collector):\n    def later(me): super().execute(tup, collector)\n    later(self)",
        "def execute(self, tup, collector): Base.execute(self, tup, collector)",
        "def execute(self, tup, collector): partial(Base.execute, self)(tup, collector)",
        "def execute(self, tup, collector): getattr(super(), 'execute')(tup, collector)",
        "def execute(self, tup, collector):\n    parent = super()\n    parent.execute(tup, collector)",
        "def execute(self, tup, collector):\n    above = super\n    above(Mine, self).execute(tup, collector)",
        "def execute(self, tup, collector): getattr(Base, 'execute')(self, tup, collector)",
        "def execute(self, tup, collector): vars(Base)['execute'](self, tup, collector)",
        "def execute(self, tup, collector): type(self).__mro__[1].execute(self, tup, collector)",
        "def execute(self, tup, collector): type(self).__bases__[0].execute(self, tup, collector)",
        "def execute(self, tup, collector): self.__class__.__base__.execute(self, tup, collector)",
        "def execute(self, tup, collector): type(self).mro()[1].execute(self, tup, collector)",
        "def execute(self, tup, collector): inspect.getmro(type(self))[1].execute(self, tup, collector)",
        "def execute(self, tup, collector): Base().execute(tup, collector)",
        "def execute(self, tup, collector): super().fetch(1)",
        "def execute(self, tup, collector): Base.fetch(1)",
        "def execute(self, tup, collector): super().made()",
        "def execute(self, tup, collector): Base.made()",
        "def execute(self, tup, collector): super().client.get(1)",
        "def execute(self, tup, collector): Base.client.fget(self)",
        "def execute(self, tup, collector): super().slow_too()",
        "@property\ndef client(self): return super().client",
        "@cached_property\ndef client(self): return super().client",
        "client = Base.client",
        "parent = Base",
        "@Base.client.setter\ndef client(self, value): pass",
        "@classmethod\ndef made(cls): return super().made()",
        "@staticmethod\ndef fetch(key): return Base.fetch(key)",
        "def __init__(self): self.parent = super()\ndef execute(self, tup, collector): self.parent.execute(tup, collector)",
    ],
)
def test_what_is_overridden_and_called_is_a_reason(body: str) -> None:
    assert "time.sleep (my_bolts.py:" in str(why_it_may_wait(mine(body)))
    assert "time.sleep (my_bolts.py:" in str(known_to_wait(mine(body)))


def test_a_function_of_the_module_may_call_the_base_class() -> None:
    helper = "def parent(me, tup): super(type(me), me).execute(tup, None)"
    assert why_it_may_wait(mine("def execute(self, tup, collector): parent(self, tup)", helper)) is not None


def test_super_alone_is_followed_from_class_to_class_in_their_order() -> None:
    """`A.execute` calls the one of `B`, which does not call that of `Base`. With `C` between them, `C` waits."""
    mixins = """
        class A:
            def execute(self, tup, collector): super().execute(tup, collector)
        class B:
            def execute(self, tup, collector): pass
        class C:
            def execute(self, tup, collector): time.sleep(2)
    """
    without_own = f"{BASE}{dedent(mixins)}\nclass Mine({{}}):\n    client = fetch = made = slow_too = None\n"
    assert why_it_may_wait(made(without_own.format("A, B, Base"))) is None
    assert why_it_may_wait(made(without_own.format("B, A, Base"))) is None
    assert (
        why_it_may_wait(made(without_own.format("A, C, B, Base")))
        == "execute uses time.sleep (my_bolts.py:24)"
    )
    assert why_it_may_wait(made(without_own.format("A, Base"))) == "execute uses time.sleep (my_bolts.py:9)"


def test_an_object_of_the_base_class_itself_is_read_in_whole() -> None:
    held = mine("helper = None\ndef __init__(self): self.helper = Base()")
    assert why_it_may_wait(held) == "execute uses time.sleep (my_bolts.py:9)"


def test_a_class_attribute_that_is_overridden_is_no_reason() -> None:
    held = "class Holds(Base):\n    lock = time.sleep\n    execute = client = fetch = made = slow_too = None"
    assert why_it_may_wait(mine("lock = None", held, "Holds")) is None
    assert why_it_may_wait(mine("", held, "Holds")) == "its lock has time.sleep"


def test_advice_on_waits_false_does_not_name_what_is_overridden() -> None:
    assert look_through(mine("waits = False")) == (None, None)
    says_so = look_through(
        mine("waits = False\ndef execute(self, tup, collector): super().execute(tup, collector)")
    )
    assert says_so == (None, "execute uses time.sleep (my_bolts.py:9)")


CLASSES = ("K0", "K1", "K2", "K3")
METHODS = ("m0", "m1", "m2")


@st.composite
def hierarchies(draw: st.DrawFn) -> str:
    """A module with classes whose methods call one another, by ``self``, ``super`` and classes' names. One method sleeps."""
    lines = ["import time", "begins = len"]
    sleeper = draw(st.sampled_from(CLASSES[:-1])), draw(st.sampled_from(METHODS))
    for number, cls in enumerate(CLASSES):
        above = draw(st.lists(st.sampled_from(CLASSES[:number]), unique=True, max_size=2)) if number else []
        lines.append(f"class {cls}({', '.join(sorted(above, reverse=True))}):\n    pass")
        for method in METHODS:
            named = st.sampled_from(CLASSES[: number + 1])
            calls = st.one_of(
                st.builds("{}.{}()".format, st.sampled_from(("self", "super()")), st.sampled_from(METHODS)),
                st.builds("super({}, self).{}()".format, named, st.sampled_from(METHODS)),
                st.builds("{}.{}(self)".format, named, st.sampled_from(METHODS)),
            )
            asleep = (cls, method) == sleeper
            called: list[str] = ["time.sleep(1)"] if asleep else draw(st.lists(calls, max_size=2))
            if draw(st.booleans()) or called:
                lines.append(f"    def {method}(self):\n        begins()")
            lines += [
                f"        try: {call}\n        except (AttributeError, TypeError): pass" for call in called
            ]
    return "\n".join(lines)


class _EnoughError(Exception):
    """Ends a call: it has slept, or it goes on for too long."""


@pytest.mark.slow
@given(hierarchies())
def test_whatever_sleeps_when_it_is_called_has_a_reason(text: str) -> None:
    try:
        component = made(text, CLASSES[-1])
    except TypeError:
        return  # no order of the classes is possible
    reason = why_it_may_wait(component)
    slept: list[float] = []
    begun: list[int] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        raise _EnoughError

    def begins() -> None:
        begun.append(1)
        if len(begun) > 100:
            raise _EnoughError

    for method in METHODS:
        function = getattr(type(component), method, None)
        if function is not None:
            function.__globals__.update(time=SimpleNamespace(sleep=sleep), begins=begins)
            with suppress(_EnoughError):
                begun.clear()
                function(component)
    assert reason is not None or not slept
