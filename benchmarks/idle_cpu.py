"""CPU that a topology uses while it has nothing to do, in cores.

    python -m benchmarks.idle_cpu [--engine spark] [--rate 0] [--seconds 30] [--warmup 30] [--rounds 1]

Three components; the spout never emits, or ``--rate`` sentences a second, which is what Storm's peer can do (its ``latency`` case
with ``--rate 1``). Counted are the driver, Spark's JVM, its Python processes and the workers; on the local engine this process.
Prints one JSON line for each round.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import Any

from benchmarks import idle_batch, latency
from benchmarks.cpu import CpuMeter, machine_busy
from benchmarks.word_count import running_on

_FIRST_BATCH_SECS = 120.0


def run(
    seconds: float, warmup: float, engine: str = "spark", rate: float = 0, conf: dict[str, Any] | None = None
) -> dict[str, Any]:
    """Measure once: ``cores`` is what all processes used together."""
    meter = CpuMeter()
    workers = 2 if engine == "spark" else 1
    topology = latency.build(rate, workers) if rate else idle_batch.build()
    settings = {"topology.workers": workers, **(conf or {})}
    with running_on(engine, topology, settings) as running:
        deadline = time.monotonic() + _FIRST_BATCH_SECS
        while not running.statistics().batches:
            if running.wait(0.05) or time.monotonic() > deadline:
                raise running.error or TimeoutError(f"no batch ended within {_FIRST_BATCH_SECS:g} s")
        time.sleep(warmup)
        cpu, machine, batches, began = (
            meter.read(),
            machine_busy(),
            running.statistics().batches,
            time.monotonic(),
        )
        time.sleep(seconds)
        wall = time.monotonic() - began
        used = {kind: after - cpu[kind] for kind, after in meter.read().items()}
        ended = running.statistics().batches - batches
    whole = sum(used.values())
    return {
        "case": "idle_cpu",
        "engine": f"stormspark-{engine}",
        "workers": workers,
        "rate": rate,
        "cores": round(whole / wall, 4),
        "jvm_cores": round(used["jvm"] / wall, 4),
        "python_cores": round(used["python"] / wall, 4),
        "batches_per_s": round(ended / wall, 2),
        "cpu_ms_per_batch": round(whole / ended * 1000, 1) if ended else None,
        "wall_s": round(wall, 2),
        "other_cpu_s": round(max(0.0, machine_busy() - machine - whole), 2),
    }


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--engine", choices=("spark", "local"), default="spark")
    parser.add_argument("--rate", type=float, default=0, help="sentences a second")
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--warmup", type=float, default=30)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    for _ in range(options.rounds):
        figures = run(options.seconds, options.warmup, options.engine, options.rate)
        print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
