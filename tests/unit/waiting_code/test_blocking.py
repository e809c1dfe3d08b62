"""`blocking_call` finds what blocks the event loop of async components, and raises no false alarm."""

from __future__ import annotations

import asyncio
import importlib
import inspect
import re
import sqlite3
import subprocess
import time
from collections.abc import Callable
from functools import partial, wraps
from time import sleep as nap
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from stormspark import AsyncBolt, AsyncSpout, TopologyBuilder
from stormspark.plan import advice, plan_topology
from stormspark.testing import TestWordSpout
from stormspark.waiting_code import blocking_call


def bolt(execute: Any, **more: Any) -> AsyncBolt:
    """An async bolt with this method, and with more members."""
    made: AsyncBolt = type("Mine", (AsyncBolt,), {"execute": execute, "__module__": __name__, **more})()
    return made


def ask() -> None:
    """Wait."""
    time.sleep(1)


def library(name: str, text: str) -> ModuleType:
    """A module that is installed."""
    module = ModuleType(name)
    exec(compile(text, f"/usr/lib/python3/site-packages/{name}.py", "exec"), module.__dict__)
    return module


requests = library(
    "requests",
    """
import time
def get(url): time.sleep(1)
class Session:
    def get(self, url): time.sleep(1)
""",
)
aclient = library(
    "aclient",
    """
import time
def connect(): time.sleep(1)
class Client:
    async def connect(self): time.sleep(1)
def retried(function):
    async def again(*arguments): return await function(*arguments)
    again.__wrapped__ = function
    return again
""",
)
psycopg = library("psycopg", "class AsyncConnection:\n    @classmethod\n    async def connect(cls): pass\n")


class Pool:
    """A helper of the user's."""

    def __init__(self) -> None:
        self.session = requests.Session()

    def fetch(self) -> None:
        """Ask."""
        self.session.get("http://x")


class MySession(requests.Session):  # type: ignore[misc, name-defined]
    """Extends a client."""


class Base(AsyncBolt):
    """Waits for its subclasses."""

    async def execute(self, tup: Any) -> None:
        """Wait."""
        time.sleep(1)


class Sub(Base):
    """Calls what it overrides."""

    async def execute(self, tup: Any) -> None:
        """Go on."""
        await super().execute(tup)


class Quiet(Base):
    """Calls nothing."""

    async def execute(self, tup: Any) -> None:
        """Do nothing."""


def in_a_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of the user's."""

    @wraps(function)
    async def later(*arguments: Any) -> Any:
        return await asyncio.to_thread(function, *arguments)

    return later


def logged(function: Callable[..., Any]) -> Callable[..., Any]:
    """A decorator of the user's, which calls what it decorates."""

    @wraps(function)
    async def and_logged(*arguments: Any) -> Any:
        return await function(*arguments)

    return and_logged


async def sleeps(self: Any, tup: Any) -> None:
    time.sleep(1)


async def naps(self: Any, tup: Any) -> None:
    nap(1)


async def sleeps_for_all(self: Any, tup: Any) -> None:
    time.sleep(*tup)


async def leads_on(self: Any, tup: Any) -> None:
    ask()


async def helps_itself(self: Any, tup: Any) -> None:
    await self.later()


async def begins_a_task(self: Any, tup: Any) -> None:
    self.task = asyncio.create_task(self.later())


async def has_inner(self: Any, tup: Any) -> None:
    async def inner() -> None:
        time.sleep(1)

    await asyncio.gather(inner(), inner())


async def in_a_loop(self: Any, tup: Any) -> None:
    return [self.helper() for _ in tup]  # type: ignore[return-value]


async def reads(self: Any, tup: Any) -> None:
    with open("/dev/null", encoding="utf-8") as file:
        file.read()


async def runs(self: Any, tup: Any) -> None:
    subprocess.run(["true"], check=True)


async def opens(self: Any, tup: Any) -> None:
    sqlite3.connect(":memory:")


async def imports(self: Any, tup: Any) -> None:
    import boto3  # type: ignore[import-not-found]

    boto3.client("s3")


async def imports_a_part(self: Any, tup: Any) -> None:
    import cassandra.cluster  # type: ignore[import-not-found]

    cassandra.cluster.Cluster()


async def imports_from_a_part(self: Any, tup: Any) -> None:
    from cassandra.cluster import Cluster

    Cluster()


async def gets(self: Any, tup: Any) -> None:
    requests.get("http://x")


async def fetches(self: Any, tup: Any) -> None:
    self.pool.fetch()


async def gets_with_its_own(self: Any, tup: Any) -> None:
    self.session.get("http://x")


async def makes_its_own(self: Any, tup: Any) -> None:
    MySession()


async def calls_a_part(self: Any, tup: Any) -> None:
    self.part()


async def helper(self: Any) -> None:
    time.sleep(1)


def plain_helper(self: Any) -> None:
    time.sleep(1)


async def nothing(self: Any, *arguments: Any) -> None: ...


@pytest.mark.parametrize(
    ("component", "found"),
    [
        (bolt(sleeps), "execute calls time.sleep"),
        (bolt(naps), "calls nap, and so time.sleep"),
        (bolt(sleeps_for_all), "calls time.sleep"),
        (bolt(leads_on), "leads to ask, which calls time.sleep"),
        (bolt(helps_itself, later=helper), "leads to helper, which calls time.sleep"),
        (bolt(helps_itself, later=staticmethod(helper)), "leads to helper, which calls time.sleep"),
        (bolt(begins_a_task, later=helper), "leads to helper, which calls time.sleep"),
        (bolt(has_inner), "calls time.sleep"),
        (bolt(in_a_loop, helper=plain_helper), "leads to plain_helper, which calls time.sleep"),
        (bolt(reads), "calls open"),
        (bolt(runs), "calls subprocess.run"),
        (bolt(opens), "calls sqlite3.connect"),
        (bolt(nothing, prepare=opens), "calls sqlite3.connect"),
        (bolt(imports), "calls boto3.client"),
        (bolt(imports_a_part), "calls cassandra.cluster.Cluster"),
        (bolt(imports_from_a_part), "calls cassandra.cluster.Cluster"),
        (bolt(gets), "calls requests.get"),
        (bolt(fetches, pool=Pool()), "leads to Pool.fetch, which calls self.session.get, and so requests.Session"),
        (bolt(gets_with_its_own, session=MySession()), "calls self.session.get, and so requests.Session"),
        (bolt(makes_its_own), "calls MySession, and so requests.Session"),
        (bolt(calls_a_part, part=partial(partial(time.sleep, 1))), "calls self.part, and so time.sleep"),
        (bolt(nothing, prepare=logged(nothing), fail=logged(sleeps)), "leads to sleeps, which calls time.sleep"),
        (bolt(logged(leads_on)), "execute leads to ask, which calls time.sleep"),
        (bolt(logged(logged(sleeps))), "leads to sleeps, which calls time.sleep"),
        (bolt(aclient.retried(sleeps)), "calls time.sleep"),
        (Sub(), "leads to Base.execute, which calls time.sleep"),
    ],
)  # fmt: skip
def test_what_blocks_the_loop_is_named_with_its_line(component: AsyncBolt, found: str) -> None:
    said = str(blocking_call(component))
    assert found in said
    assert re.search(r"^(execute|prepare|fail) .*\(test_blocking\.py:\d+\)$", said)


# -- no false alarm --------------------------------------------------------------------------------------------------


async def passes_on(self: Any, tup: Any) -> None:
    loop = asyncio.get_running_loop()
    await asyncio.to_thread(time.sleep, 1)
    await asyncio.to_thread(self.helper)
    await asyncio.to_thread(lambda: time.sleep(1))
    await asyncio.to_thread(partial(requests.get, "http://x"))
    await asyncio.to_thread(function=ask) if tup else None  # type: ignore[call-arg]
    await loop.run_in_executor(None, time.sleep, 1)
    await loop.run_in_executor(None, self.pool.fetch)
    await loop.run_in_executor(*(None, ask))


async def defines_work(self: Any, tup: Any) -> None:
    def work() -> None:
        time.sleep(1)

    await asyncio.to_thread(work)


async def awaits(self: Any, tup: Any) -> None:
    await asyncio.sleep(1)
    await asyncio.wait_for(asyncio.open_connection("x", 1), 1)
    async with self.lock, self.pool.acquire() as connection:
        await connection.fetchall()
        await connection.execute("select 1").fetchone()
    self.queue.put_nowait(1)
    await self.task.result().wait()
    time.monotonic()
    print(tup)


async def uses_an_async_library(self: Any, tup: Any) -> None:
    aclient.connect()
    await aclient.Client().connect()
    await psycopg.AsyncConnection.connect()
    await self.client.connect()


async def counts(self: Any, tup: Any) -> None:
    self.sleeps = [time.sleep, ask, self.helper]
    tup[0].sleep(1)


@pytest.mark.parametrize(
    "component",
    [
        bolt(passes_on, helper=plain_helper, pool=Pool()),
        bolt(in_a_thread(sleeps)),
        bolt(helps_itself, later=in_a_thread(plain_helper)),
        bolt(defines_work),
        bolt(awaits, lock=asyncio.Lock()),
        bolt(uses_an_async_library, client=aclient.Client()),
        bolt(counts, helper=plain_helper),
        bolt(nothing, prepare=reads),
        bolt(nothing, helper=plain_helper, later=helper),
        bolt(helps_itself, later=SimpleNamespace()),
        Quiet(),
    ],
)
def test_what_runs_elsewhere_or_awaits_is_no_call_that_blocks(component: AsyncBolt) -> None:
    assert blocking_call(component) is None


def test_the_many_names_of_a_long_function_do_not_matter() -> None:
    """The arguments of its instructions are longer."""
    names = "\n".join(f"    tup.n{number}; N{number}" for number in range(300))
    space: dict[str, Any] = {"__name__": __name__, "time": time}
    exec(f"async def execute(self, tup):\n{names}\n    time.sleep(1)\n", space)
    assert "calls time.sleep" in str(blocking_call(bolt(space["execute"])))


# -- advice ----------------------------------------------------------------------------------------------------------


class Ticker(AsyncSpout):
    """Sleeps, and reads a file."""

    async def open(self, conf: Any, context: Any, collector: Any) -> None:
        with open("/dev/null", encoding="utf-8") as file:
            file.read()

    async def next_tuple(self) -> None:
        time.sleep(1)

    def declare_output_fields(self, declarer: Any) -> None:
        pass


def planned(made: Any, **conf: Any) -> list[str]:
    """The advice on a topology with this component."""
    builder = TopologyBuilder()
    if isinstance(made, AsyncSpout):
        builder.set_spout("mine", made).add_configurations(conf)
    else:
        builder.set_spout("words", TestWordSpout())
        builder.set_bolt("mine", made).shuffle_grouping("words").add_configurations(conf)
    return advice(plan_topology(builder.create_topology("blocks")))


def test_advice_names_the_line_and_what_to_write() -> None:
    [one] = planned(Ticker())
    assert re.match(
        r".*test_blocking\.py:\d+: spout 'mine': next_tuple calls time\.sleep \(test_blocking\.py:\d+\), which blocks the event "
        r"loop: until it returns, all async tasks of its worker stand still.*; write await asyncio\.sleep\(\.\.\.\)",
        one,
    )
    [one] = planned(bolt(gets))
    assert "use an async client, or write await asyncio.to_thread(...)" in one


def test_a_setting_ends_the_advice() -> None:
    assert planned(bolt(sleeps), **{"stormspark.executor.threads": "never"}) == []


def test_the_components_of_the_benchmarks_get_no_advice() -> None:
    asynchronous = importlib.import_module("benchmarks.asynchronous")
    found = [
        blocking_call(object.__new__(cls))
        for cls in vars(asynchronous).values()
        if isinstance(cls, type) and issubclass(cls, AsyncBolt | AsyncSpout) and not inspect.isabstract(cls)
    ]
    assert set(found) == {None}
