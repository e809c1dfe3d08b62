"""All that `benchmarks.table` measures, by name: one function for each side of a comparison.

A measurement runs for itself, in a process that it has to itself, and returns figures of which `benchmarks.rows` makes
ratios. Its module is imported when it runs: so a table of a few rows needs only what these rows need, and a
measurement that can't run here says why in its place.

    python -m benchmarks.measurements ours/acked [--seconds 15] [--warmup 15]        # one alone: a JSON line
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

__all__ = ["MEASUREMENTS", "Asked", "UnavailableError", "measure"]

Figures = dict[str, Any]


@dataclass(frozen=True)
class Asked:
    """For how long, and whether only to show that it runs (``smoke``)."""

    seconds: float = 15.0
    warmup: float = 15.0
    smoke: bool = False

    @property
    def engine(self) -> str:
        """Spark. In the smoke form most rows run on the local engine, so that CI need not wait for Spark ten times."""
        return "local" if self.smoke else "spark"


class UnavailableError(Exception):
    """It can't be measured here; the message says why."""


def _word_count(case: str, workers: int, settings: Mapping[str, Any]) -> Callable[[Asked], Figures]:
    def run(asked: Asked) -> Figures:
        from benchmarks import word_count

        engine = "spark" if case == "wordcount_acked" and workers == 2 else asked.engine
        return word_count.run(case, engine, workers, asked.seconds, asked.warmup, dict(settings))

    return run


def _storm(case: str, *options: str, tuned: bool = True, warmups: float = 1) -> Callable[[Asked], Figures]:
    def run(asked: Asked) -> Figures:
        from benchmarks.storm_peer import run_storm

        if asked.smoke:
            msg = "not in the smoke form: it needs Maven"
            raise UnavailableError(msg)
        figures = run_storm(case, asked.seconds, warmups * asked.warmup, *options, tuned=tuned)
        return {**figures, "cores": figures["cpu_s"] / figures["wall_s"]}

    return run


def _bytewax(asked: Asked) -> Figures:
    from benchmarks import bytewax_peer

    if asked.smoke:
        msg = "not in the smoke form: it is installed when it is first asked for"
        raise UnavailableError(msg)
    return bytewax_peer.run(asked.seconds, min(asked.warmup, 5.0))


def _streamparse(workers: int) -> Callable[[Asked], Figures]:
    def run(asked: Asked) -> Figures:
        from benchmarks import streamparse

        return streamparse.run(asked.engine, workers, asked.seconds, asked.warmup, {})

    return run


def _idle_batch(asked: Asked) -> Figures:
    """Both sides alternate in one session: each batch of one stands beside a batch of the other."""
    from benchmarks import idle_batch
    from stormspark.spark import local_session

    plan = idle_batch.planned(2)
    spark = local_session(2)
    warm_up, batches = (0, 1) if asked.smoke else (10, 30)
    if not asked.smoke:
        idle_batch.run_bare(spark, plan, "noop", 0, batches)  # the JVM's own warm-up
    bare = idle_batch.run_bare(spark, plan, "noop", warm_up, batches)
    ours = idle_batch.run_topology(spark, plan, warm_up, batches)
    return {"topology_ms": ours, "bare_ms": bare, "batches": batches, "stages": plan.last_superstep + 1}


def _vectorised(combine: bool) -> Callable[[Asked], Figures]:
    def run(asked: Asked) -> Figures:
        vectorised = import_module("benchmarks.vectorised")
        settings = {
            "engine": asked.engine,
            "workers": 2,
            "ids": "batch",
            "combine": combine,
            "rows": vectorised._ROWS,
            "conf": [],
        }
        figures: Figures = vectorised.run(
            argparse.Namespace(**settings, seconds=asked.seconds, warmup=asked.warmup)
        )
        return figures

    return run


def _bare(form: str) -> Callable[[Asked], Figures]:
    def run(asked: Asked) -> Figures:
        bare_pyspark = import_module("benchmarks.bare_pyspark")
        from stormspark.spark import local_session

        figures: Figures = bare_pyspark.run(local_session(2), form, 2, asked.seconds, asked.warmup)
        return figures

    return run


def _latency(engine: str) -> Callable[[Asked], Figures]:
    def run(asked: Asked) -> Figures:
        if asked.smoke and engine == "spark":
            msg = "not in the smoke form: the local engine's runs the same code"
            raise UnavailableError(msg)
        figures: Figures = import_module("benchmarks.latency").run(engine, asked.seconds, asked.warmup)
        return figures

    return run


#: Java compiles for a minute, which is no part of being idle.
_IDLE_WARMUPS = 4


def _idle_cpu(asked: Asked) -> Figures:
    figures: Figures = import_module("benchmarks.idle_cpu").run(
        asked.seconds, _IDLE_WARMUPS * asked.warmup, asked.engine
    )
    return figures


def _open_trees(asked: Asked) -> Figures:
    from benchmarks import unchanged

    return unchanged.open_trees(5_000) if asked.smoke else unchanged.open_trees(1_000_000, 7)


def _state_keys(asked: Asked) -> Figures:
    from benchmarks import unchanged

    return unchanged.state_keys(20_000) if asked.smoke else unchanged.state_keys(10_000_000, 7)


def _slow_bolt(asked: Asked) -> Figures:
    from benchmarks import slow_bolt

    return slow_bolt.run(asked.engine, asked.seconds if asked.smoke else max(asked.seconds, 60.0))


def _async(capacity: int, latency: float = 0.1) -> Callable[[Asked], Figures]:
    def run(asked: Asked) -> Figures:
        from benchmarks import asynchronous

        return asynchronous.run(asked.engine, capacity, latency, 0.5, asked.seconds, asked.warmup)

    return run


def _asyncio(asked: Asked) -> Figures:
    from benchmarks import asynchronous

    return asynchronous.bare(10_000, 0.1, 0.5, asked.seconds)


def _waiting(case: str, engine: str, workers: int) -> Callable[[Asked], Figures]:
    def run(asked: Asked) -> Figures:
        from benchmarks import waiting

        if asked.smoke and engine == "spark" and workers == 1:
            msg = "not in the smoke form: the local engine's runs the same code"
            raise UnavailableError(msg)
        where = "local" if asked.smoke else engine
        return waiting.run(case, where, workers, asked.seconds, asked.warmup)

    return run


def _storm_waiting(case: str) -> Callable[[Asked], Figures]:
    def run(asked: Asked) -> Figures:
        from benchmarks import waiting

        if asked.smoke:
            msg = "not in the smoke form: it needs Maven"
            raise UnavailableError(msg)
        return waiting.storm(case, asked.seconds, asked.warmup)

    return run


_PENDING = {"topology.max.spout.pending": 1000}
_WAITING = ("waiting", "waiting_chain", "polling")

#: By name: ``side/what``.
MEASUREMENTS: dict[str, Callable[[Asked], Figures]] = {
    "ours/acked": _word_count("wordcount_acked", 2, {}),
    "ours/unacked": _word_count("wordcount_unacked", 2, {}),
    "ours/heron_acked": _word_count("heron_acked", 2, {}),
    "ours/heron_unacked": _word_count("heron_unacked", 2, {}),
    "ours/pending_1000": _word_count("wordcount_acked", 1, _PENDING),
    "ours/streamparse": _streamparse(2),
    "ours/streamparse_one": _streamparse(1),
    "ours/open_trees": _open_trees,
    "ours/state_keys": _state_keys,
    "ours/slow_bolt": _slow_bolt,
    "ours/vectorised": _vectorised(combine=False),
    "ours/vectorised_combined": _vectorised(combine=True),
    "ours/async_1000": _async(1_000),
    "ours/async_10000": _async(10_000),
    "ours/async_10000_of_1_s": _async(10_000, 1.0),
    **{f"ours/{case}": _waiting(case, "spark", 2) for case in _WAITING},
    **{f"ours/{case}_one": _waiting(case, "spark", 1) for case in _WAITING},
    **{f"ours/{case}_local": _waiting(case, "local", 1) for case in _WAITING},
    "ours/latency_local": _latency("local"),
    "ours/idle_cpu": _idle_cpu,
    "both/idle_batch": _idle_batch,
    "both/latency": _latency("spark"),
    "storm/acked": _storm("wordcount_acked"),
    "storm/unacked": _storm("wordcount_unacked"),
    "storm/heron_acked": _storm("heron_acked"),
    "storm/heron_unacked": _storm("heron_unacked"),
    "storm/pending_1000": _storm("wordcount_acked", "--pending", "1000"),
    "storm/pystorm": _storm("pystorm_acked"),
    "storm/idle_spin": _storm("latency", "--rate", "1", tuned=False, warmups=_IDLE_WARMUPS),
    **{f"storm/{case}": _storm_waiting(case) for case in _WAITING},
    "bytewax/unacked": _bytewax,
    "bare/asyncio": _asyncio,
    "bare/map_in_arrow": _bare("python"),
    "bare/sql": _bare("native"),
}


def measure(name: str, asked: Asked) -> Figures:
    """Run one; raises KeyError, `UnavailableError`, or what its code raises."""
    try:
        return MEASUREMENTS[name](asked)
    except FileNotFoundError as error:
        raise UnavailableError(
            str(error)
        ) from error  # there is no Storm peer: the message says how to have one
    except ModuleNotFoundError as error:
        msg = f"there is no module {error.name}"
        raise UnavailableError(msg) from error


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=MEASUREMENTS)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--warmup", type=float, default=15.0)
    parser.add_argument("--smoke", action="store_true")
    args = parser.parse_args()
    try:
        print(json.dumps(measure(args.name, Asked(args.seconds, args.warmup, args.smoke))))
    except UnavailableError as error:
        print(json.dumps({"unavailable": str(error)}))
    sys.stdout.flush()


if __name__ == "__main__":
    main()
