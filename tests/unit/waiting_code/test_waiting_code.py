"""`why_it_may_wait` finds the code that may wait, wherever a component has it from, and lets pass what only computes."""

from __future__ import annotations

import gc
import importlib
import inspect
import re
import sys
import threading
import types
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from textwrap import dedent, indent
from typing import Any

import cloudpickle
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tests.unit.worker.components
from benchmarks import (
    asynchronous,
    durable_acker,
    exactly_once,
    idle_batch,
    latency,
    replay_recording,
    scale_cases,
    streamparse,
    topologies,
    unchanged,
    vectorised,
)
from stormspark import BasicBolt, Fields
from stormspark.api import Component
from stormspark.api.lambdas import LambdaBolt
from stormspark.compat.heronpy.components import Bolt as HeronpyBolt
from stormspark.compat.heronpy.delegates import Blueprint
from stormspark.compat.heronpy.tasks import HeronBolt
from stormspark.compat.streamparse import load
from stormspark.compat.streamparse.bolt import Bolt as PystormBolt
from stormspark.compat.streamparse.bolt_adapter import BoltAdapter
from stormspark.flux import samples
from stormspark.streamlet.bolts import FilterBolt, MapBolt, Operation, ReduceByKeyBolt, SplitBolt
from stormspark.waiting_code import why_it_may_wait
from tests.imports import imports_undone

Make = Callable[..., Any]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    """A user's project: writes modules, imports the last one, and makes an instance of its class `Mine`."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def make(bolts: str, *arguments: Any, **helpers: str) -> Any:
        for name, text in {**helpers, "my_bolts": bolts}.items():
            (tmp_path / f"{name}.py").write_text(dedent(text), encoding="utf-8")
        importlib.invalidate_caches()
        return importlib.import_module("my_bolts").Mine(*arguments)

    with imports_undone(monkeypatch, under=tmp_path):
        yield make


def bolt(body: str, before: str = "") -> str:
    """A module with a bolt whose `execute` is ``body``, and ``before`` above it."""
    return (
        f"from stormspark import BasicBolt\n{dedent(before)}\nclass Mine(BasicBolt):\n"
        f"    def execute(self, tup, collector):\n{indent(dedent(body), ' ' * 8)}\n"
    )


DECORATED = """
import functools, time
def deco(f):
    @functools.wraps(f)
    def g(): return f()
    return g
@deco
def decorated(): time.sleep(1)
"""
WITH_METACLASS = """
import time
class Meta(type):
    def __call__(cls): time.sleep(1)
class Client(metaclass=Meta): pass
"""
WITH_FACTORY = """
import dataclasses, time
@dataclasses.dataclass
class Point: x: int = dataclasses.field(default_factory=lambda: time.sleep(1))
"""
WITH_PROPERTY = """
import time
class Client:
    @property
    def x(self): time.sleep(1)
CLIENT = Client()
"""
WITH_MISSING = """
import time
class Client(dict):
    def __missing__(self, k): time.sleep(1)
CLIENT = Client()
"""
WITH_CLIENT = """
import time, weakref
class Client:
    def get(self): time.sleep(1)
CLIENT = Client()
"""
NUMPY_AROUND = """
import time
import numpy as np
def slow(x): time.sleep(1)
UFUNC = np.frompyfunc(slow, 1, 1)
ARRAY = np.array([(1, [slow])], dtype=[("n", int), ("x", object)])
class Mine(np.ndarray): pass
OF_A_CLASS = np.array([slow]).view(Mine)
"""
QUICK_AROUND = """
import weakref
import numpy as np
class Client:
    def get(self): return 1
CLIENT = Client()
CLIENTS = weakref.WeakValueDictionary(a=CLIENT); SEEN = weakref.WeakSet([CLIENT]); REF = weakref.ref(CLIENT)
GONE = weakref.ref(Client())
UFUNC = np.frompyfunc(lambda x: x, 1, 1); ADD = np.add
ARRAY = np.array(["a", None, 1], dtype=object); NUMBERS = np.zeros(3)
"""
RECORDS = """
from dataclasses import dataclass, field; from enum import Enum
from typing import NamedTuple
@dataclass(frozen=True)
class Point:
    x: int
    y: int = 3
    z: list = field(default_factory=list)
class Colour(Enum): RED = 1
class Pair(NamedTuple):
    a: int
    b: int
"""
FUNCTIONS = """
import functools
@functools.lru_cache
def cached(x): return x
@functools.singledispatch
def one(x): return x
"""
MANAGED = """
import contextlib
class Oops(Exception): pass
@contextlib.contextmanager
def managed(): yield 1
"""
GENERIC = """
from typing import Generic, TypeVar, Protocol
T = TypeVar('T')
class Q(Protocol):
    def x(self): ...
class G(Generic[T]):
    def __init__(self, x: T): self.x = x
"""


# -- what may wait ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "before", "used"),
    [
        ("time.sleep(1)", "import time", "time.sleep"),
        ("t.sleep(1)", "import time as t", "time.sleep"),
        ("sleep(1)", "from time import sleep", "time.sleep"),
        ("nap(1)", "from time import sleep as nap", "time.sleep"),
        ("import time; time.sleep(1)", "", "time.sleep"),
        ("from time import sleep; sleep(1)", "", "time.sleep"),
        ("import os.path as p; p.exists('x')", "", "posixpath.exists"),
        ("clock = time; clock.sleep(1)", "import time", ".sleep"),
        ("getattr(time, 'sl' + 'eep')(1)", "import time", "time"),
        ("open('x')", "", "open"),
        ("input()", "", "input"),
        ("eval('1')", "", "eval"),
        ("__import__('time').nap(1)", "", "__import__"),
        ("__builtins__['open']('x')", "", "__builtins__"),
        ("os.listdir('.')", "import os", "os.listdir"),
        ("os.path.exists('.')", "import os", "exists"),
        ("Path('x').exists()", "from pathlib import Path", "pathlib.Path"),
        ("subprocess.run(['ls'])", "import subprocess", "subprocess.run"),
        ("run(['ls'])", "from subprocess import run", "subprocess.run"),
        ("sqlite3.connect('x')", "import sqlite3", "sqlite3.connect"),
        ("socket.create_connection(('x', 1))", "import socket", "socket.create_connection"),
        ("urllib.request.urlopen('x')", "import urllib.request", "urllib.request.urlopen"),
        ("sys.stdin.read()", "import sys", "sys.stdin"),
        ("threading.Lock()", "import threading", "threading.Lock"),
        ("asyncio.run(None)", "import asyncio", "asyncio.run"),
        ("queue.Queue()", "import queue", "queue.Queue"),
        ("importlib.import_module('time').sleep(1)", "import importlib", "importlib.import_module"),
        ("sys.modules['subprocess'].run()", "import sys", "sys.modules"),
        ("globals()['f' + 'etch']()", "import time\ndef fetch(): time.sleep(1)", "globals"),
        ("__import__, breakpoint; breakpoint()", "", "__import__"),
        ("Client()", WITH_METACLASS, "time.sleep"),
        ("STEP(tup)", "import time\nclass Step:\n    def __call__(self, tup): time.sleep(1)\nSTEP = Step()", "time.sleep"),
        ("ENCODER.encode(tup)", "import json, time; ENCODER = json.JSONEncoder(default=lambda x: time.sleep(1))", "time.sleep"),
        ("Point()", WITH_FACTORY, "time.sleep"),
        ("tup[0].connect()", "", ".connect"),
        ("with LOCK: pass", "import threading; LOCK = threading.Lock()", "LOCK"),
        ("LOCAL.x = 1", "import threading; LOCAL = threading.local()", "LOCAL"),
        ("VARIABLE.get()", "import contextvars; VARIABLE = contextvars.ContextVar('x')", "VARIABLE"),
        ("CONNECTION.query()", "import socket; CONNECTION = socket.socket(); CONNECTION.close()", "CONNECTION"),
        ("np.load('x')", "import numpy as np", "numpy.load"),
        ("load('x')", "from numpy import load", "load"),
        ("pd.read_csv('x')", "import pandas as pd", "pandas.read_csv"),
        ("pq.read_table('x')", "import pyarrow.parquet as pq", "pyarrow.parquet.read_table"),
        ("orm.create_engine('x')", "import sqlalchemy as orm", "create_engine"),
        ("STEPS['slow'](1)", "import time; STEPS = {'slow': time.sleep}", "time.sleep"),
        ("NESTED[0][1]['x'](1)", "import time; NESTED = [(1, {'x': [time.sleep]})]", "time.sleep"),
        ("fetch()", "import time\ndef fetch(): time.sleep(1)", "time.sleep"),
        ("fetch()", "import time\ndef fetch(nap=time.sleep): nap(1)", "time.sleep"),
        ("fetch()", "import time\ndef fetch(*, nap=time.sleep): nap(1)", "time.sleep"),
        ("(lambda: [time.sleep(n) for n in tup])()", "import time", "time.sleep"),
        ("a()", "import time\ndef a(): b()\ndef b(): a(); time.sleep(1)", "time.sleep"),
        ("wait_a_bit()", "import time; from functools import partial; wait_a_bit = partial(time.sleep, 1)", "time.sleep"),
        ("list(map(NAPS, tup))", "import time; NAPS = lambda n: time.sleep(n)", "time.sleep"),
        ("next(NUMBERS)", "import time\ndef numbers():\n    time.sleep(1)\n    yield 1\nNUMBERS = numbers()", "time.sleep"),
        ("Client().get()", "import time\nclass Client:\n    def get(self): time.sleep(1)", "time.sleep"),
        ("Client.get()", "import time\nclass Client:\n    @staticmethod\n    def get(): time.sleep(1)", "time.sleep"),
        ("Client.get()", "import time\nclass Client:\n    @classmethod\n    def get(cls): time.sleep(1)", "time.sleep"),
        ("CLIENT.x", WITH_PROPERTY, "time.sleep"),
        ("CLIENT[1]", WITH_MISSING, "time.sleep"),
        ("Client().x", WITH_PROPERTY.replace("@property", "@__import__('functools').cached_property"), "time.sleep"),
        ("Inner().get()", "import socket\nclass Client(socket.socket): pass\nclass Inner: get = Client", "Inner, and so"),
        ("Job().go()", "import threading\nclass Job(threading.Thread): pass", "threading.Thread"),
        ("tup.values[0].recv(10)", "", ".recv"),
        ("tup.values[0].result()", "", ".result"),
        ("self.context.shared_executor.map(1)", "", ".shared_executor"),
        ("self.context.get_resource('db').query()", "", ".get_resource"),
        ("missing.query()", "", "missing.query, and so what is not defined so far"),
        ("import not_imported_yet", "", "not_imported_yet, and so a module that is not imported so far"),
        ("cached()", "import functools, time\n@functools.lru_cache\ndef cached(): time.sleep(1)", "time.sleep"),
        ("managed()", "import contextlib, time\n@contextlib.contextmanager\ndef managed(): yield time.sleep(1)", "time.sleep"),
        ("one()", "import functools, time\n@functools.singledispatch\ndef one(x): time.sleep(1)", "time.sleep"),
        ("decorated()", DECORATED, "time.sleep"),
        ("REF().get()", WITH_CLIENT + "REF = weakref.ref(CLIENT)", "time.sleep"),
        ("PROXY.get()", WITH_CLIENT + "PROXY = weakref.proxy(CLIENT)", "weakref.ProxyType"),
        ("CLIENTS['a'].get()", WITH_CLIENT + "CLIENTS = weakref.WeakValueDictionary(a=CLIENT)", "time.sleep"),
        ("[one.get() for one in CLIENTS]", WITH_CLIENT + "CLIENTS = weakref.WeakSet([CLIENT])", "time.sleep"),
        ("GET()()", WITH_CLIENT + "GET = weakref.WeakMethod(CLIENT.get)", "time.sleep"),
        ("UFUNC(tup[0])", NUMPY_AROUND, "time.sleep"),
        ("ARRAY[0]['x'][0](1)", NUMPY_AROUND, "time.sleep"),
        ("OF_A_CLASS[0](1)", NUMPY_AROUND, "time.sleep"),
        ("pickle.loads(tup[0])", "import pickle", "_pickle.loads, which may run any code"),
        ("loads(tup[0])", "from cloudpickle import loads", "_pickle.loads, which may run any code"),
        ("getattr(pickle, 'lo' + 'ads')(tup[0])", "import pickle", "pickle"),
        ("inspect.currentframe().f_globals['slow']()", "import inspect", ".f_globals"),
        ("f.__globals__['slow']()", "def f(): pass", ".__globals__"),
        ("[one for one in gc.get_objects()]", "import gc", "gc.get_objects"),
        ("import os, time\ndef late():\n    time.sleep(1)\nlate()", "", "time.sleep"),
    ],
)  # fmt: skip
def test_what_may_wait_is_named_with_its_line(project: Make, body: str, before: str, used: str) -> None:
    why = why_it_may_wait(project(bolt(body, before)))
    assert why is not None and used in why
    assert re.search(r"^execute .*\(\w+\.py:\d+\)$", why)


def test_the_reason_names_the_line_of_the_use(project: Make) -> None:
    mine = project(bolt("word = tup[0]\ntime.sleep(\n    1\n)", "import time"))
    assert why_it_may_wait(mine) == "execute uses time.sleep (my_bolts.py:6)"


@pytest.mark.parametrize(
    ("body", "before", "shown"),
    [
        ("open('x')", "", "open"),
        ("io.open('x')", "import io", "open"),
        ("read('x')", "read = open", "read, and so open"),
        ("eval('1')", "", "eval"),
        ("builtins.input()", "import builtins", "input"),
    ],
)
def test_what_is_built_into_python_is_named_as_users_write_it(
    project: Make, body: str, before: str, shown: str
) -> None:
    why = why_it_may_wait(project(bolt(body, before)))
    assert re.match(rf"execute uses {shown} \(my_bolts\.py:\d+\)", str(why))


def test_what_runs_only_when_the_topology_is_built_is_not_followed(project: Make) -> None:
    mine = project(
        """
        import time
        from stormspark import BasicBolt, Fields
        class Mine(BasicBolt):
            def execute(self, tup, collector): collector.emit(tup.values)
            def declare_output_fields(self, declarer):
                time.sleep(0.1)
                declarer.declare(Fields("word"))
        """
    )
    assert why_it_may_wait(mine) is None


def test_helpers_in_other_modules_are_followed(project: Make) -> None:
    helpers = "import time\ndef fetch():\n    return time.sleep(1)\n"
    mine = project(bolt("helpers.fetch()", "import helpers"), helpers=helpers)
    assert why_it_may_wait(mine) == "execute leads to fetch, which uses time.sleep (helpers.py:3)"


def test_names_of_a_star_import_are_followed(project: Make) -> None:
    helpers = "import time\ndef fetch():\n    return time.sleep(1)\n"
    assert "time.sleep" in str(
        why_it_may_wait(project(bolt("fetch()", "from helpers import *"), helpers=helpers))
    )


def test_packages_and_relative_imports_are_followed(project: Make, tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "__init__.py").write_text("", encoding="utf-8")
    (tmp_path / "acme" / "_time.py").write_text("from time import sleep as nap\n", encoding="utf-8")
    (tmp_path / "acme" / "inner.py").write_text(
        "import acme._time\ndef f():\n    from . import _time as t\n    t.nap(1)\n", encoding="utf-8"
    )
    mine = project(bolt("acme.inner.f()", "import acme.inner"))
    assert (
        why_it_may_wait(mine)
        == "execute leads to f, which uses acme._time.nap, and so time.sleep (inner.py:4)"
    )


def test_a_users_module_may_begin_with_an_underscore(project: Make) -> None:
    mine = project(bolt("f()", "from _math import f"), _math="import time\ndef f(): time.sleep(1)\n")
    assert "time.sleep" in str(why_it_may_wait(mine))


def test_a_module_that_is_passed_on_is_followed_as_a_whole(project: Make) -> None:
    mine = project(bolt("print(helpers)", "import helpers"), helpers="import time\ndef f(): time.sleep(1)\n")
    assert why_it_may_wait(mine) == "execute uses helpers, and so time (my_bolts.py:5)"


def test_a_client_that_is_written_in_python_leads_to_its_socket(project: Make) -> None:
    client = """
        import socket
        class Redis:
            def __init__(self, host="localhost"):
                self.host, self.connection = host, None
            def get(self, key):
                return self.send("GET", key)
            def send(self, *words):
                if self.connection is None:
                    self.connection = socket.create_connection((self.host, 6379))
    """
    why = why_it_may_wait(
        project(bolt("R.get(tup[0])", "import fake_redis\nR = fake_redis.Redis()"), fake_redis=client)
    )
    assert why == "execute leads to Redis, whose send uses socket.create_connection (fake_redis.py:10)"


def test_a_client_that_is_only_made_is_not_said_to_be_called(project: Make) -> None:
    client = "import time\nclass Client:\n    def get(self): time.sleep(1)\n"
    text = bolt("self.client.get()", "import clients") + (
        "    def prepare(self, conf, context):\n        self.client = clients.Client()\n"
    )
    why = why_it_may_wait(project(text, clients=client))
    assert why == "prepare leads to Client, whose get uses time.sleep (clients.py:3)"


@pytest.mark.parametrize(
    "body",
    [
        "def prepare(self, conf, context): self.sleep = time.sleep",
        "def __init__(self): self.sleep = time.sleep",
        "def __init__(self): self.steps = {'slow': [partial(time.sleep, 1)]}",
        "def __init__(self): self.lazy = lambda: time.sleep(1)",
        "sleep = time.sleep",
        "sleep = staticmethod(time.sleep)",
        "steps = (1, time.sleep)",
        "slow = property(lambda self: time.sleep(1))",
        "def cleanup(self): super().cleanup(); time.sleep(1)",
        "async def later(self): time.sleep(1)",
        "def numbers(self): yield time.sleep(1)",
        "class Inner:\n    def go(self): time.sleep(1)",
    ],
)
def test_what_the_instance_and_its_class_have_is_followed(project: Make, body: str) -> None:
    head = "import time\nfrom functools import partial\nfrom stormspark import BasicBolt\n"
    text = (
        f"{head}class Mine(BasicBolt):\n    def execute(self, tup, collector): pass\n{indent(body, '    ')}\n"
    )
    assert "time.sleep" in str(why_it_may_wait(project(text)))


def test_base_classes_and_mixins_are_followed(project: Make) -> None:
    text = bolt("self.fetch()", "import time\nclass Base:\n    def fetch(self): time.sleep(1)\n")
    mine = project(text.replace("class Mine(BasicBolt)", "class Mine(Base, BasicBolt)"))
    assert why_it_may_wait(mine) == "fetch uses time.sleep (my_bolts.py:4)"


class Takes(BasicBolt):
    """Holds what it is given."""

    def __init__(self, held: Any) -> None:
        self.held = held

    def execute(self, tup: Any, collector: Any) -> None:
        collector.emit((self.held,))


def test_a_component_without_attributes_keeps_its_fast_ones() -> None:
    """CPython gives an object whose ``__dict__`` was read a dict, and its attributes are slower from then on."""
    mine, other = object.__new__(Takes), object.__new__(Takes)
    why_it_may_wait(mine)
    mine.held = other.held = [1]
    assert [type(one) for one in gc.get_referents(mine)] == [type(one) for one in gc.get_referents(other)]


class Slotted(BasicBolt):
    """Holds what it is given, in a slot."""

    __slots__ = ("held",)

    def __init__(self, held: Any) -> None:
        self.held = held

    def execute(self, tup: Any, collector: Any) -> None:
        pass


def test_the_attribute_that_holds_a_lock_is_named() -> None:
    why = why_it_may_wait(Takes([{1: types.SimpleNamespace(mutex=threading.Lock())}]))
    assert why == "its held.mutex has _thread.lock"
    assert why_it_may_wait(Slotted(threading.Lock())) == "it has _thread.lock"


def test_a_thousand_strings_are_no_reason() -> None:
    assert why_it_may_wait(Takes({str(number): number for number in range(200_000)})) is None


def test_more_than_can_be_looked_through_may_wait() -> None:
    assert "too many" in str(why_it_may_wait(Takes([[number] for number in range(100_001)])))


def test_a_loop_of_objects_is_looked_at_once() -> None:
    held: list[Any] = []
    held.append(held)
    assert why_it_may_wait(Takes(held)) is None


# -- what only computes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "before"),
    [
        ("collector.emit((math.sqrt(tup[0]), json.dumps(tup[1])))", "import json, math"),
        ("print(tup); logging.getLogger('x').info('%s', tup)", "import logging"),
        ("LOG.warning('x')", "import logging; LOG = logging.getLogger(__name__)"),
        ("WORD.findall(tup[0])", "import re; WORD = re.compile('x')"),
        ("time.time(); time.monotonic(); datetime.datetime.now()", "import datetime, time"),
        ("random.random(); choice([1]); R.random()", "import random; from random import choice, Random; R = Random(1)"),
        ("os.path.join('a', 'b'); basename('a/b'); os.environ['x']; os.getpid()", "import os; from os.path import basename"),
        ("from os import environ; environ.get('x')", ""),
        ("import hashlib, uuid; uuid.uuid4(); hashlib.sha256(b'x').hexdigest()", ""),
        ("sys.stderr.write('x'); sys.maxsize", "import sys"),
        ("StringIO().getvalue()", "from io import StringIO"),
        ("quote('x')", "from urllib.parse import quote"),
        ("np.array([1]).sum(); np.random.default_rng(1); dot", "import numpy as np; from numpy import dot"),
        ("pd.DataFrame({'a': [1]}).groupby('a').sum()", "import pandas as pd"),
        ("pa.array([1]); pc.sum(tup[0])", "import pyarrow as pa, pyarrow.compute as pc"),
        ("TABLE['x'](1); FIRST(tup)", "import operator; TABLE = {'x': str.upper}; FIRST = operator.itemgetter(0)"),
        ("self.time = self.input = self.open = 1; self.result; tup.wait", ""),
        ("tup.values[0].get(1); tup.x.join(','); tup.x.read(); tup.x.send(1); tup.x.execute()", ""),
        ("Point(1, 2); Colour.RED.name; Pair(1, 2).a", RECORDS),
        ("LAZY.x", "import functools\nclass Lazy:\n    @functools.cached_property\n    def x(self): return 1\nLAZY = Lazy()"),
        ("P(1, 2)", "from collections import namedtuple; P = namedtuple('P', 'x y')"),
        ("cached(1); one(1)", FUNCTIONS),
        ("with managed(): raise Oops('x')", MANAGED),
        ("G(1)", GENERIC),
        ("Counter(tup); heapq.heappush([], 1); deque(maxlen=3)", "import heapq; from collections import Counter, deque"),
        ("super().cleanup(); type(self).__name__; [x for x in tup]; {**{}}; f'{tup!r}'", ""),
        ("Decimal('1') + Fraction(1, 2)", "from decimal import Decimal; from fractions import Fraction"),
        ("helpers.count(tup)", "import types; helpers = types.SimpleNamespace(count=len)"),
        ("try:\n    import json\nexcept ImportError as error:\n    raise ValueError from error\njson.dumps(1)", ""),
        ("REF().get(); GONE(); CLIENTS['a'].get(); list(SEEN)", QUICK_AROUND),
        ("UFUNC(1); ADD(1, 2); ARRAY[0]; NUMBERS[0]", QUICK_AROUND),
        ("pickle.dumps(tup[0]); gc.collect()", "import gc, pickle"),
        ("match tup:\n    case [1, x]: pass\n    case str(): pass", ""),
    ],
)  # fmt: skip
def test_what_only_computes_has_no_reason(project: Make, body: str, before: str) -> None:
    assert why_it_may_wait(project(bolt(body, before))) is None


def test_a_users_module_may_have_the_name_of_one_of_pythons(
    project: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    mine = project(
        bolt("colorsys.mix()", "import colorsys"), colorsys="import time\ndef mix(): time.sleep(1)\n"
    )
    assert "time.sleep" in str(why_it_may_wait(mine))


def components_of(module: types.ModuleType) -> Iterator[type]:
    for value in vars(module).values():
        if isinstance(value, type) and value.__module__ == module.__name__ and issubclass(value, Component):
            yield value


COMPUTING = [
    durable_acker, exactly_once, idle_batch, latency, replay_recording, scale_cases, topologies, unchanged, vectorised, samples,
]  # fmt: skip


@pytest.mark.parametrize(
    "component",
    [cls for module in COMPUTING for cls in components_of(module) if not inspect.isabstract(cls)],
    ids=lambda cls: cls.__name__,
)
def test_the_components_of_benchmarks_and_samples_only_compute(component: type) -> None:
    assert why_it_may_wait(object.__new__(component)) is None


def test_a_benchmark_of_waiting_waits() -> None:
    assert (
        why_it_may_wait(asynchronous.Waits(1, 0.1, 0.5)) == "execute uses asyncio.sleep (asynchronous.py:55)"
    )


def test_the_usual_components_of_tests_compute() -> None:
    assert why_it_may_wait(tests.unit.worker.components.Script([("a",)])) is None


# -- front-ends ------------------------------------------------------------------------------------------------------

OPERATION = Operation("map", "here.py:1")


def slowly(element: Any) -> Any:
    """A user's function that waits."""
    threading.Event().wait(element)
    return element


def test_functions_of_streamlets_are_followed() -> None:
    assert why_it_may_wait(MapBolt(OPERATION, lambda n: n + 1)) is None
    assert why_it_may_wait(FilterBolt(OPERATION, str.isalpha)) is None
    assert why_it_may_wait(ReduceByKeyBolt(OPERATION, lambda a, b: a + b)) is None
    for slow in (slowly, lambda n: slowly(n + 1), partial(slowly, 1)):
        assert "threading.Event" in str(why_it_may_wait(MapBolt(OPERATION, slow)))
    assert "threading.Event" in str(why_it_may_wait(SplitBolt(OPERATION, {"a": bool, "b": slowly})))


def test_functions_of_lambda_bolts_are_followed() -> None:
    assert why_it_may_wait(LambdaBolt(lambda tup, collector: None, Fields("x"))) is None
    assert "threading.Event" in str(
        why_it_may_wait(LambdaBolt(lambda tup, collector: slowly(tup), Fields("x")))
    )


def test_streamparse_components_are_followed_through_their_adapter() -> None:
    class Slow(PystormBolt):
        def process(self, tup):
            slowly(tup)

    class Count(PystormBolt):
        def process(self, tup):
            self.logger.info("%s", tup)
            self.emit([tup.values[0]])

    assert why_it_may_wait(BoltAdapter(Count, {})) is None
    assert str(why_it_may_wait(BoltAdapter(Slow, {}))).startswith(
        "process leads to slowly, which uses threading.Event"
    )


def test_the_streamparse_components_of_the_benchmark_only_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    with imports_undone(monkeypatch):
        for declaration in load(streamparse.TOPOLOGY, environment="one").components.values():
            assert why_it_may_wait(cloudpickle.loads(declaration.pickled)) is None


def test_heronpy_components_are_followed_through_their_delegates() -> None:
    class Slow(HeronpyBolt):
        def process(self, tup):
            slowly(tup)

    class Count(HeronpyBolt):
        def process(self, tup):
            self.emit([tup.values[0]])

    def made(component: type) -> HeronBolt:
        return HeronBolt(Blueprint("x", component, {}, frozenset(), {}, {}, {}), {})

    assert why_it_may_wait(made(Count)) is None
    assert "threading.Event" in str(why_it_may_wait(made(Slow)))


# -- what a component says itself ------------------------------------------------------------------------------------


class SaysFalse(BasicBolt):
    waits = False

    def execute(self, tup: Any, collector: Any) -> None:
        slowly(tup)


class SaysTrue(BasicBolt):
    waits = True

    def execute(self, tup: Any, collector: Any) -> None:
        pass


def test_a_declaration_wins() -> None:
    assert why_it_may_wait(SaysFalse()) is None
    assert why_it_may_wait(SaysTrue()) == "its class says so (waits = True)"
    one: Any = SaysFalse()
    one.waits = True
    assert why_it_may_wait(one) == "its class says so (waits = True)"


def test_a_method_named_waits_declares_nothing() -> None:
    class Waits(BasicBolt):
        def waits(self) -> bool:
            return True

        def execute(self, tup: Any, collector: Any) -> None:
            pass

    assert why_it_may_wait(Waits()) is None


# -- horrors ---------------------------------------------------------------------------------------------------------


class RaisingMeta(type):
    """Raises whatever is asked of its classes."""

    def __getattribute__(cls, name: str) -> Any:
        raise AssertionError(name)

    def __hash__(cls) -> int:
        raise AssertionError("hash")

    def __eq__(cls, other: object) -> bool:
        raise AssertionError("eq")

    def __instancecheck__(cls, one: object) -> bool:
        raise AssertionError("isinstance")

    def __subclasscheck__(cls, one: object) -> bool:
        raise AssertionError("issubclass")


class Raises:
    """Raises whatever is done to it."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)

    __getattr__ = __eq__ = __hash__ = __bool__ = __len__ = __iter__ = __repr__ = __getattribute__  # type: ignore[assignment]


class OwnDict:
    """Has a __dict__ that runs code."""

    @property
    def __dict__(self) -> Any:  # type: ignore[override]
        raise AssertionError


class RaisingDict(dict):  # type: ignore[type-arg]
    """A dict whose methods raise."""

    def _raise(self, *args: Any) -> Any:
        raise AssertionError

    __getitem__ = __iter__ = __len__ = __contains__ = get = items = keys = values = _raise


class RaisingModule(types.ModuleType):
    """A module that raises when it is used."""

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(name)


class RaisingDescriptor:
    """Raises where it is read."""

    def __get__(self, one: object, cls: Any = None) -> Any:
        raise AssertionError


class WithDescriptor:
    """Has an attribute that raises."""

    attribute = RaisingDescriptor()
    __class__ = property(lambda self: 1 / 0)  # type: ignore[assignment]


Horror: Any = RaisingMeta("Horror", (), {})
_with_dict: Any = type("WithDict", (), {})()
_with_dict.__dict__ = RaisingDict(x=1)
HORRORS: list[Any] = [
    object(), None, 1, Raises(), Horror, object.__new__(Horror) if False else type.__call__(Horror), OwnDict(), RaisingDict(x=1),
    RaisingModule("raising"), RaisingDescriptor(), WithDescriptor(), _with_dict, types.ModuleType("empty"), sys, sys._getframe(),
    (number for number in range(3)), memoryview(b"x"), types.FunctionType((lambda: missing).__code__, {}), type, object, super,  # type: ignore[name-defined]  # noqa: F821
    types.CellType(), types.MethodType(len, []), threading.current_thread(), iter([]), re.compile("x"), Ellipsis, lambda: None,
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(HORRORS)))
def test_nothing_of_the_users_is_called(number: int) -> None:
    for component in (HORRORS[number], Takes(HORRORS[number]), Takes([HORRORS[number]])):
        why = why_it_may_wait(component)
        assert why is None or "can't be looked through" not in why


@given(
    st.recursive(
        st.one_of(st.none(), st.integers(), st.text(), st.sampled_from(range(len(HORRORS)))),
        lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(), inner), st.tuples(inner)),
    ),
    st.sampled_from(range(len(HORRORS))),
)
def test_it_raises_for_nothing(held: Any, horror: int) -> None:
    why = why_it_may_wait(Takes((held, HORRORS[horror])))
    assert why is None or why
