"""How soon a mistake that happens on Spark is told.

    python -m benchmarks.mistakes [NAME ...]

Runs the mistakes of ``tests/mistakes`` that start Spark, each in a process and a folder of its own. With NAMEs, it runs only
those whose names contain one of them. ``--all`` also runs those that keep Spark from starting.

*told* is the time from the start of the process until a line has the first of the row's sentences, and *end* the time until the
process has ended. A mistake is told in time if it is told within 15 seconds.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, chdir, nullcontext
from pathlib import Path

from tests.kafka_broker import KafkaBroker
from tests.mistakes.mistakes import MISTAKES, Mistake
from tests.mistakes.prepared import full_disk, prepared

_IN_TIME_SECS = 15.0
_HEAD = "| mistake | told, s | end, s | exit code |"


def measure(mistake: Mistake, broker: str) -> tuple[float | None, float, int]:
    """Return the seconds until the mistake is told, None if it never is; those until the end; and the exit code."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        command = prepared(mistake, broker)
        first = mistake.says[0].replace("THE_FILE", mistake.file)
        with full_disk(Path("full")) if mistake.on_full_disk else nullcontext():
            began, told = time.monotonic(), None
            with subprocess.Popen(
                [sys.executable, "-m", "stormspark", *command],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                env={**os.environ, **mistake.environment, "PYTHONUNBUFFERED": "1"},
            ) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    if told is None and first in " ".join(line.split()):
                        told = time.monotonic() - began
            return told, time.monotonic() - began, process.returncode


def _is_on_spark(mistake: Mistake, *, all_of_them: bool) -> bool:
    runs = mistake.command[0] == "run" and "local" not in mistake.command
    return mistake.on_spark or (all_of_them and runs)


def main() -> None:
    """Measure and print one row after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--all", action="store_true", help="also those for which Spark does not start")
    options = parser.parse_args()
    chosen = [
        mistake
        for mistake in MISTAKES
        if _is_on_spark(mistake, all_of_them=options.all)
        and (not options.names or any(name in mistake.name for name in options.names))
    ]
    late = 0
    print(_HEAD, "| --- | ---: | ---: | ---: |", sep="\n")
    with ExitStack() as stack:
        broker = ""
        if any(mistake.with_broker for mistake in chosen):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            broker = stack.enter_context(KafkaBroker(folder)).bootstrap
        for mistake in chosen:
            told, end, code = measure(mistake, broker)
            late += told is None or told > _IN_TIME_SECS
            wrong = "" if code == mistake.code else f" (not {mistake.code})"
            seconds = "never" if told is None else f"{told:.1f}"
            print(f"| {mistake.name} | {seconds} | {end:.1f} | {code}{wrong} |", flush=True)
    sys.exit(f"told late or never: {late}" if late else 0)


if __name__ == "__main__":
    main()
