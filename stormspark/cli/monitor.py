"""Prints what a component emits, every few seconds, as ``storm monitor`` does (J1)."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from stormspark.cli.reach import Reach
from stormspark.errors import TopologyNotAliveError
from stormspark.likely_names import nearest, no_component
from stormspark.operations.client import Driver

__all__ = ["monitor"]


def monitor(
    reach: Reach,
    interval: float,
    component: str | None,
    stream: str,
    watch: str,
    times: int | None,
    *,
    as_json: bool,
    clock: Callable[[], float] = time.time,
    sleep: Callable[[float], None] = time.sleep,
) -> int:
    """Print a line per ``interval`` seconds, ``times`` lines or until the topology ends, and return the exit code.

    ``watch`` is ``emitted`` or ``transferred``. Without a component, print the names of all. With ``as_json``, each line is an
    object. Raises `TopologyNotAliveError` if there is no such topology, component or stream.
    """
    driver = reach.driver()
    answer = driver.about("emits")
    if component is None:
        _print_components(answer, as_json=as_json)
        return 0
    streams = _of(answer, component)["streams"]
    if stream not in streams:
        of = f"it has {', '.join(map(repr, streams))}" if streams else "it emits nothing"
        msg = f"component {component!r} has no stream {stream!r}{nearest(stream, streams) or f'; {of}'}"
        raise TopologyNotAliveError(msg)
    if not as_json:
        sys.stdout.write(
            f"topology\tcomponent\tparallelism\tstream\ttime-diff ms\t{watch}\tthroughput (Kt/s)\n"
        )
    with contextlib.suppress(KeyboardInterrupt):  # that is how it ends
        _print_lines(
            driver,
            answer,
            interval,
            component,
            stream,
            watch,
            times,
            as_json=as_json,
            clock=clock,
            sleep=sleep,
        )
    return 0


def _print_lines(
    driver: Driver,
    answer: dict[str, Any],
    interval: float,
    component: str,
    stream: str,
    watch: str,
    times: int | None,
    *,
    as_json: bool,
    clock: Callable[[], float],
    sleep: Callable[[float], None],
) -> None:
    last_at = began = clock()
    last, number = 0, 0
    while True:
        now, found = clock(), _of(answer, component)
        total = found["streams"].get(stream, {}).get(watch, 0)
        millis, count = round((now - last_at) * 1000), total - last
        # As in Storm, the first line has all that was counted before, and no time.
        thousands = count / millis if count and millis else 0.0
        line = {
            "topology": answer["name"],
            "component": component,
            "parallelism": found["executors"],
            "stream": stream,
            "timeDiffMs": millis,
            watch: count,
            "throughput": thousands,
        }
        sys.stdout.write((json.dumps(line) if as_json else "\t".join(map(str, line.values()))) + "\n")
        sys.stdout.flush()
        last_at, last, number = now, total, number + 1
        if number == times:
            return
        sleep(interval - (clock() - began) % interval)
        answer = driver.about("emits")


def _of(answer: dict[str, Any], component: str) -> dict[str, Any]:
    components: dict[str, dict[str, Any]] = answer["components"]
    if component not in components:
        raise TopologyNotAliveError(no_component(answer["name"], component, components))
    return components[component]


def _print_components(answer: dict[str, Any], *, as_json: bool) -> None:
    names = list(answer["components"])
    if as_json:
        sys.stdout.write(json.dumps({"components": names}) + "\n")
        return
    line = "------------------"
    heading = f"Available components for {answer['name']} :"
    sys.stdout.write(
        "\n".join([heading, line, *names, line, "Please use -m to specify one component"]) + "\n"
    )
