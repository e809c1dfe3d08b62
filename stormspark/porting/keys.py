"""What a legacy configuration's keys do here: the same, nothing, or something else (A20-A25).

Which keys there are and which can mean nothing is `stormspark.storm_keys`; this adds those that work but mean something else.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from typing import Any

from stormspark.config import KNOWN_KEYS, conf_problems, for_component
from stormspark.porting.findings import Setting, Statement, Unresolved
from stormspark.storm_keys import SIZING_KEYS, STORM_KEYS

__all__ = ["DIFFERENT_MEANING", "about_settings"]

#: Keys that are read here and mean something else than in Storm or Heron.
DIFFERENT_MEANING: Mapping[str, str] = {
    "topology.workers": "workers are Python processes beside Spark's executors; one runs its tasks on one thread",
    "topology.stmgrs": "Heron's containers are workers here",
    "topology.acker.executors": "0 turns acking off; others only shift task ids, because workers track their own trees (E12)",
    "topology.max.spout.pending": "the limit is of a task; Storm's is of an executor, the value times its tasks (B4)",
    "topology.message.timeout.secs": "a tuple that waits in a queue does not time out, and outages do not count (W2)",
    "topology.tick.tuple.freq.secs": "ticks are as exact as batches are short, and need no ack (C9)",
    "topology.tick.tuple.freq.ms": "ticks are as exact as batches are short, and need no ack (C9)",
    "topology.backpressure.enable": "false switches nothing off: spouts are slowed down while their bolts are behind (F7)",
    "topology.executor.receive.buffer.size": "it bounds no queue; it is what shares of water marks count in (F1)",
    "topology.executor.overflow.limit": "nothing is dropped; see stormspark.backpressure.strategy (F5)",
    "topology.disable.loadaware.messaging": "plain round robin is the default here; false brings Storm's load-aware shuffle (D6)",
    "topology.eventlogger.executors": "there are no event loggers; the number shifts task ids (A18)",
    "topology.state.provider": "there is one provider, a Delta table in the checkpoint folder (C36)",
    "topology.state.provider.config": "there is one provider, a Delta table in the checkpoint folder (C36)",
    "topology.state.checkpoint.interval.ms": "no interval: state is committed with every batch, exactly once (C37)",
    "topology.stateful.checkpoint.interval.seconds": "no interval: state is committed with every batch, exactly once (C37)",
    "topology.sleep.spout.wait.strategy.time.ms": "a spout that emits nothing is asked again in the next batch (B12)",
    "topology.spout.recvq.skips": "a spout that emits nothing is asked again in the next batch (B12)",
    "topology.droptuples.upon.backpressure": "the tree of a dropped tuple does not time out, it goes on without it (F10)",
}


def about_settings(
    settings: list[Setting], *, texts: bool = False, of_heron: bool = False
) -> Iterator[Statement]:
    """A statement for each key that is unknown, wrong, without effect, or means something else.

    ``texts``: values are texts where they are submitted, as in Heron, so their types say nothing.

    >>> from stormspark.porting.findings import Place
    >>> one = Setting("topology.wrokers", 2, Place("WordCount.java", 40))
    >>> [(s.kind, s.text) for s in about_settings([one])]
    [('change', 'topology.wrokers is a key of neither Storm, Heron nor stormspark')]
    """
    for setting in settings:
        yield from _about(setting, texts=texts, of_heron=of_heron)


def _about(setting: Setting, *, texts: bool, of_heron: bool) -> Iterator[Statement]:
    key, value, place = setting.key, setting.value, setting.place
    of = f" of {setting.component!r}" if setting.component else ""
    if key not in KNOWN_KEYS:
        if key.startswith(("topology.", "stormspark.")):
            near = next(iter(difflib.get_close_matches(key, KNOWN_KEYS, 1)), None)
            todo = f"did you mean {near}?" if near else "drop it, or give it a name of your own"
            yield Statement(
                "change", f"{key}{of} is a key of neither Storm, Heron nor stormspark", place, todo
            )
        return
    if key in STORM_KEYS and (reason := STORM_KEYS[key].useless_because):
        yield Statement("note", f"{key}{of} changes nothing here: {reason}", place)
        return
    if not texts and not isinstance(value, Unresolved) and (problems := _problems(key, value)):
        yield Statement(
            "change", f"{problems[0]}{of}", place, "give it that type: here a wrong one is an error"
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
            f"{key}{of} can't be set for one component and is ignored there, as in Storm (A21)",
            place,
            "set it in the topology's configuration",
        )
        return
    if meaning := DIFFERENT_MEANING.get(key):
        yield Statement("note", f"{key}{of}: {meaning}", place)


def _problems(key: str, value: Any) -> list[str]:
    return [] if value is None else conf_problems({key: value})
