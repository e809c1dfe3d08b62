"""Tells what effect the keys of a legacy configuration have in stormspark: the same as before, none, or another (A20-A25).

`stormspark.storm_keys` lists the keys, and says which of them have no effect in stormspark. This module adds the keys whose
effect differs.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from stormspark.config import KNOWN_KEYS, conf_problems, for_component
from stormspark.porting.findings import Setting, Statement, Unresolved
from stormspark.reporting.consumer_settings import REGISTER
from stormspark.storm_keys import SIZING_KEYS, STORM_KEYS

__all__ = ["DIFFERENT_MEANING", "about_settings"]

#: Keys whose effect in stormspark differs from their effect in Storm or Heron.
DIFFERENT_MEANING: Mapping[str, str] = {
    "topology.workers": "workers are Python processes beside Spark executors; in each, one executor computes at a time",  # A16
    "topology.stmgrs": "Heron's containers become workers here",
    "topology.acker.executors": "0 turns acking off; others only shift task ids, because workers track their own trees",  # E12
    "topology.max.spout.pending": "the limit is per task; Storm's limit is per executor, the value times its tasks",  # B4
    "topology.message.timeout.secs": "a tuple that waits in a queue does not time out, and outages do not count",  # W2
    "topology.tick.tuple.freq.secs": "ticks are only as exact as batches are short, and they need no ack",  # C9
    "topology.tick.tuple.freq.ms": "ticks are only as exact as batches are short, and they need no ack",
    "topology.backpressure.enable": "false has no effect: spouts are slowed down whenever their bolts are behind",  # F7
    "topology.executor.receive.buffer.size": "it limits no queue; the water marks are shares of it",  # F1
    "topology.executor.overflow.limit": "it drops nothing; see stormspark.backpressure.strategy",  # F5
    "topology.disable.loadaware.messaging": "the default is plain round robin here; false brings Storm's load-aware one",  # D6
    "topology.eventlogger.executors": "each worker logs its own events; the number only shifts task ids",  # A18
    "topology.state.provider": "the only provider is a Delta table in the checkpoint folder",  # C36
    "topology.state.provider.config": "the only provider is a Delta table in the checkpoint folder",
    "topology.state.checkpoint.interval.ms": "there is no interval: every batch commits the state, exactly once",  # C37
    "topology.stateful.checkpoint.interval.seconds": "there is no interval: every batch commits the state, exactly once",
    "topology.sleep.spout.wait.strategy.time.ms": "a spout that emits nothing is asked again in the next batch",  # B12
    "topology.spout.recvq.skips": "a spout that emits nothing is asked again in the next batch",
    "topology.droptuples.upon.backpressure": "the tree of a dropped tuple does not time out; it goes on without the tuple",  # F10
}


def about_settings(
    settings: list[Setting], *, strings: bool = False, of_heron: bool = False
) -> Iterator[Statement]:
    """Yield one statement for each setting that is unknown or wrong, or whose effect in stormspark differs or is missing.

    If ``strings`` is true, all values are strings, as in heronpy, so types are not checked. If ``of_heron`` is true, any key may
    be set for a single component.

    >>> from stormspark.porting.findings import Place
    >>> one = Setting("topology.wrokers", 2, Place("WordCount.java", 40))
    >>> [(s.kind, s.text) for s in about_settings([one])]
    [('change', 'topology.wrokers is a key of neither Storm, Heron nor stormspark')]
    """
    for setting in settings:
        yield from _about(setting, strings=strings, of_heron=of_heron)


def _about(setting: Setting, *, strings: bool, of_heron: bool) -> Iterator[Statement]:
    key, value, place = setting.key, setting.value, setting.place
    of = f" of {setting.component!r}" if setting.component else ""
    if key not in KNOWN_KEYS:
        if key.startswith(("topology.", "stormspark.")):
            near = next(iter(difflib.get_close_matches(key, KNOWN_KEYS, 1)), None)
            todo = (
                f"did you mean {near}?"
                if near
                else "remove it, or choose a name without topology. or stormspark."
            )
            yield Statement(
                "change", f"{key}{of} is a key of neither Storm, Heron nor stormspark", place, todo
            )
        return
    if key in STORM_KEYS and (reason := STORM_KEYS[key].useless_because):
        yield Statement("note", f"{key}{of} changes nothing here: {reason}", place)
        return
    if key == REGISTER and isinstance(value, list) and all(isinstance(one, str) for one in value):
        yield Statement(
            "change",
            f"{key}{of} names {', '.join(value)}, of Java",
            place,
            "register a stormspark.MetricsConsumer as module:Class; LoggingMetricsConsumer is there by its name",
        )
        return
    if not strings and not isinstance(value, Unresolved) and (problems := _problems(key, value)):
        yield Statement(
            "change", f"{problems[0]}{of}", place, "correct the value: a wrong one is an error here"
        )
        return
    if (
        setting.component
        and not of_heron
        and key not in for_component({key: value})
        and key not in SIZING_KEYS
    ):
        yield Statement(
            "change",
            f"{key}{of} can't be set for one component and is ignored there, as in Storm",  # A21
            place,
            "set it in the topology's configuration",
        )
        return
    if meaning := DIFFERENT_MEANING.get(key):
        yield Statement("note", f"{key}{of}: {meaning}", place)


def _problems(key: str, value: Any) -> list[str]:
    return [] if value is None else conf_problems({key: value})
