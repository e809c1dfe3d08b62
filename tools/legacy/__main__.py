"""Tries each topology of each project in a folder of checkouts: does it load, does it run, and how many tuples went through?

    python -m tools.legacy FOLDER [--only NAME] [--seconds 8] [--limit 120] [--no-spark] [--json FILE]

Nothing is fetched. Each project is copied into a temporary folder first, and runs there in a process of its own, without the
caller's environment variables. But it runs with the caller's rights: don't try projects whose code you have not looked at.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from tools.legacy.gallery import print_table
from tools.legacy.projects import NotReadError, candidates, checkouts, copied
from tools.legacy.trials import Limits, Trial, tried


def main() -> int:
    """Run the command line. Returns 2 if there is nothing to try."""
    parser = argparse.ArgumentParser(prog="python -m tools.legacy", description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="each folder in it is a checkout of a project")
    parser.add_argument(
        "--only", action="append", default=[], metavar="NAME", help="only projects with NAME in their names"
    )
    parser.add_argument("--seconds", type=float, default=8, help="how long each topology runs on each engine")
    parser.add_argument("--limit", type=float, default=120, help="after how many seconds a process is ended")
    parser.add_argument("--no-spark", action="store_true", help="only the local engine")
    parser.add_argument(
        "--json",
        type=Path,
        metavar="FILE",
        help="write the results into this file too; - prints them instead",
    )
    asked = parser.parse_args()
    if not asked.folder.is_dir():
        parser.error(f"{asked.folder} is no folder: name a folder with checkouts of projects")
    projects = [
        one
        for one in checkouts(asked.folder)
        if not asked.only or any(name in one.name for name in asked.only)
    ]
    if not projects:
        parser.error(f"{asked.folder} has no projects: each folder in it should be a checkout")
    trials = []
    for project in projects:
        for trial in _trials(project, Limits(asked.seconds, asked.limit), spark=not asked.no_spark):
            print(
                f"{trial.project}: {trial.topology}: {trial.loads} {trial.local} {trial.spark}",
                file=sys.stderr,
            )
            trials.append(trial)
    text = json.dumps([asdict(trial) for trial in trials], indent=1)
    if asked.json is not None and str(asked.json) == "-":
        print(text)
        return 0
    if asked.json is not None:
        asked.json.write_text(text + "\n")
    print_table(trials)
    return 0


def _trials(project: Path, limits: Limits, *, spark: bool) -> Iterator[Trial]:
    with tempfile.TemporaryDirectory(prefix="legacy-", ignore_cleanup_errors=True) as folder:
        home = Path(folder, "home")
        home.mkdir()
        copy = copied(project, Path(folder))
        try:
            found = list(candidates(copy, home))
        except NotReadError as error:
            yield Trial(project.name, "-", "-", errors=[str(error)])
            return
        if not found:
            yield Trial(project.name, "-", "-", errors=["no topology was found"])
        for candidate in found:
            yield tried(copy, candidate, home, limits, spark=spark)


if __name__ == "__main__":
    sys.exit(main())
