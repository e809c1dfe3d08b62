"""The pages that come from docstrings, and the page of the command line. They are made at each build, so they are never old."""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterator
from typing import NamedTuple

import click

__all__ = ["API", "ApiPage", "comment_above", "made_pages", "names_on"]


class ApiPage(NamedTuple):
    """A page about names that belong together."""

    name: str
    title: str
    #: A sentence or two about when one needs them.
    begin: str
    #: Modules, each with its names: all that it offers if none are given.
    modules: tuple[tuple[str, str], ...]


API = (
    ApiPage(
        "topologies",
        "Building topologies",
        "A builder collects spouts and bolts, and makes a topology of them.",
        (
            ("stormspark", "TopologyBuilder Topology Config Fields GlobalStreamId CustomStreamGrouping"),
            ("stormspark.api", "SpoutDeclarer BoltDeclarer OutputFieldsDeclarer StreamDeclaration"),
        ),
    ),
    ApiPage(
        "components",
        "Spouts and bolts",
        "The classes from which components inherit, the tuples that they get, and the collectors through which they emit.",
        (
            ("stormspark", "Spout Bolt BasicBolt TickTupleAwareBolt Tuple"),
            ("stormspark", "SpoutOutputCollector OutputCollector BasicOutputCollector"),
            ("stormspark", "FailedException ReportedFailedException"),
        ),
    ),
    ApiPage(
        "windows",
        "Windows",
        "Bolts that execute many tuples at once, those of a window.",
        (("stormspark", "WindowedBolt StatefulWindowedBolt TupleWindow Count Duration"),),
    ),
    ApiPage(
        "state",
        "State",
        "State that outlives processes, and a look at it from outside.",
        (
            ("stormspark", "StatefulBolt StatefulComponent TwoPhaseStatefulComponent KeyValueState state"),
            ("stormspark.map_state", ""),
            ("stormspark.map_state.sql", ""),
        ),
    ),
    ApiPage(
        "arrow-and-async",
        "Vectorised and async components",
        "Components that take and emit Arrow or pandas batches, and components whose methods are coroutines.",
        (
            ("stormspark", "ArrowBolt ArrowSpout PandasBolt AsyncBolt AsyncSpout ROW_BY_ROW"),
            ("stormspark.api", "ArrowOutputCollector ArrowSpoutOutputCollector PandasOutputCollector"),
            ("stormspark.api", "AsyncOutputCollector AsyncSpoutOutputCollector"),
        ),
    ),
    ApiPage(
        "contexts",
        "Contexts, hooks and metrics",
        "What a component can ask about the topology, and how to count what it does.",
        (
            ("stormspark", "TopologyContext TaskHook WorkerHook EventLogger MetricsConsumer TaskInfo"),
            (
                "stormspark.api",
                "BoltAckInfo BoltExecuteInfo BoltFailInfo EmitInfo SpoutAckInfo SpoutFailInfo",
            ),
            ("stormspark.metrics.metric", ""),
        ),
    ),
    ApiPage(
        "connectors",
        "Sources and sinks",
        "Spouts that read Kafka, files, Delta tables and DataFrames, and bolts that write.",
        (
            ("stormspark.connectors", ""),
            (
                "stormspark.connectors.kafka",
                "DefaultRecordTranslator KafkaSpoutConfigBuilder RecordTranslator",
            ),
            ("stormspark.api", "ExponentialBackoff"),
            ("stormspark.connectors.jdbc_bolt", ""),
            ("stormspark.connectors.redis_bolt", ""),
        ),
    ),
    ApiPage(
        "running",
        "Running topologies",
        "Topologies start on Spark or on the local engine, and both give the same kind of handle.",
        (
            (
                "stormspark.spark",
                "submit SparkTopology local_session with_delta session_cores running_topologies",
            ),
            ("stormspark.local", "submit LocalTopology LocalCluster SimulatedClock running_topologies"),
        ),
    ),
    ApiPage(
        "testing",
        "Testing",
        "Storm's test kit: feeders, recorders, and runs to the end.",
        (("stormspark.testing", ""),),
    ),
    ApiPage(
        "front-ends",
        "Streamlets, transactional topologies, other languages, Flux",
        "What Storm and Heron offer beside spouts and bolts.",
        (
            ("stormspark.streamlet", ""),
            ("stormspark.transactional", ""),
            ("stormspark.multilang", ""),
            ("stormspark.flux", ""),
        ),
    ),
    ApiPage(
        "errors",
        "Errors",
        "All errors of stormspark have one ancestor, so one ``except`` catches them.",
        (("stormspark.errors", ""),),
    ),
)

#: Ancestors whose methods everybody knows.
_KNOWN = "object, Exception, dict, tuple, Mapping, MutableMapping, Enum, ABC"


def names_on(page: ApiPage) -> Iterator[tuple[str, str]]:
    """Yield the module and the name of each object on the page, each object once."""
    seen: set[int] = set()
    for module, names in page.modules:
        offered = importlib.import_module(module)
        for name in names.split() or offered.__all__:
            if id(getattr(offered, name)) not in seen:
                seen.add(id(getattr(offered, name)))
                yield module, name


def made_pages() -> dict[str, str]:
    """Return the pages by the names of their files."""
    pages: dict[str, str] = {}
    seen: set[int] = set()
    for page in API:
        pages[f"reference/api/{page.name}.rst"] = "\n".join(_api_page(page, seen))
    pages["reference/api/index.rst"] = _rst_title("API") + (
        "From the docstrings of what users import. Their examples run in the tests.\n"
        "Ids in brackets, such as (A1), are rows of :doc:`the parity table </reference/parity>`.\n\n"
        ".. toctree::\n   :maxdepth: 2\n\n" + "".join(f"   {page.name}\n" for page in API)
    )
    pages["reference/commands.md"] = "\n".join(_commands())
    return pages


def _api_page(page: ApiPage, seen: set[int]) -> Iterator[str]:
    yield _rst_title(page.title) + page.begin + "\n"
    shown = ""
    for module, name in names_on(page):
        found = getattr(importlib.import_module(module), name)
        if id(found) in seen:
            continue
        seen.add(id(found))
        if module != shown:
            shown = module
            yield f"{module}\n{'-' * len(module)}\n\n.. currentmodule:: {module}\n"
        if isinstance(found, type) and found.__name__ == name:
            kind = "exception" if issubclass(found, BaseException) else "class"
            yield f".. auto{kind}:: {name}\n   :inherited-members: {_KNOWN}\n"
        elif inspect.isroutine(found):
            yield f".. autofunction:: {name}\n"
        else:
            value = f"   :value: {found!r}\n" if isinstance(found, str) else ""
            yield f".. py:data:: {name}\n{value}\n   {comment_above(name, found)}\n"


def comment_above(name: str, found: object) -> str:
    """Return what stands above the line that sets a name. ``autodoc`` would show the docstring of the value's class.

    >>> comment_above("CLASSES_FILE", importlib.import_module("stormspark.flux").CLASSES_FILE)  # doctest: +ELLIPSIS
    'The name of a Python file in the folder of the YAML file. It is imported before class names are looked up, so ...'
    """
    for module in [*sys.modules.values()]:
        if module.__name__.startswith("stormspark.") and getattr(module, name, None) is found:
            above = re.search(rf"(?m)((?:^#:.*\n)+){name}\b[^\n]*=", inspect.getsource(module))
            if above:
                return " ".join(line.removeprefix("#:").strip() for line in above[1].splitlines())
    msg = f"{name} has no comment: write one that begins with '#:' above the line that sets it"
    raise ValueError(msg)


def _rst_title(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n\n"


def _commands() -> Iterator[str]:
    from stormspark.cli import main

    yield "# Commands\n\nWhat `stormspark COMMAND --help` says.\n"
    for name, command in sorted(main.commands.items()):
        if not command.hidden:
            yield from _command(f"stormspark {name}", command, "##")


def _command(name: str, command: click.Command, mark: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, max_content_width=88, terminal_width=88)
    yield f"{mark} {name}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below, one in command.commands.items():
            yield from _command(f"{name} {below}", one, f"{mark}#")
