"""Plans and runs one topology by stormspark's command line."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tools.legacy.processes import Done, message, stormspark
from tools.legacy.projects import Candidate

__all__ = ["Limits", "Trial", "tried"]

#: ``quiet``: it ran, and no component emitted anything. ``port``: its components are Java, of which there are only skeletons.
Outcome = Literal["yes", "no", "quiet", "port", "-"]
#: What the methods of a skeleton raise.
_TO_PORT = "NotImplementedError: port "
#: How much longer a topology runs on Spark, where it waits for workers and for the first batch.
_SPARK_STARTS_SECS = 15
#: How many characters of the beginning and of the end of a line of `Trial.errors` are kept.
_FIRST, _LAST = 400, 300


@dataclass(frozen=True)
class Limits:
    """How many seconds a topology runs, and after how many seconds its process is ended."""

    run_secs: float
    most_secs: float


@dataclass
class Trial:
    """What became of a topology."""

    project: str
    topology: str
    kind: str
    place: str = ""
    loads: Outcome = "-"
    local: Outcome = "-"
    spark: Outcome = "-"
    #: The tuples that each component has emitted and executed, in the last run that worked.
    tuples: dict[str, dict[str, int]] = field(default_factory=dict)
    #: Why something did not work, a line for each. A component's own error is here too, though the topology goes on.
    errors: list[str] = field(default_factory=list)


def tried(project: Path, candidate: Candidate, home: Path, limits: Limits, *, spark: bool) -> Trial:
    """Plan a topology, then run it on the local engine, then on Spark. The first failure is the last step."""
    trial = Trial(project.name, candidate.name, candidate.kind, candidate.place)
    if not candidate.arguments:
        trial.errors.append(candidate.why)
        return trial
    folder = Path(candidate.arguments[0].partition(".py:")[0]).parent
    done = stormspark(["explain", *candidate.arguments], home, limits.most_secs, folder)
    if done.code != 0:
        trial.loads = "no"
        trial.errors.append(_why(done, limits))
    else:
        trial.loads = "yes"
    for engine in ["local", *(["spark"] if spark else [])] if trial.loads == "yes" else []:
        outcome = _run(trial, candidate, home, limits, engine, folder)
        setattr(trial, engine, outcome)
        if outcome in ("no", "port"):
            break
    # The project is a copy in a temporary folder, whose name says nothing.
    root = str(project.resolve())
    trial.errors = [_shortened(error.replace(f"{root}/", "").replace(root, ".")) for error in trial.errors]
    return trial


def _run(
    trial: Trial, candidate: Candidate, home: Path, limits: Limits, engine: str, folder: Path
) -> Outcome:
    figures = home / f"{engine}.json"
    figures.unlink(missing_ok=True)
    seconds = limits.run_secs + (_SPARK_STARTS_SECS if engine == "spark" else 0)
    options = ["--engine", engine, "--seconds", str(seconds), "--json", str(figures)]
    if engine == "spark":
        options += ["--master", "local[2]"]
    done = stormspark(["run", *candidate.arguments, *options], home, limits.most_secs, folder)
    if done.code != 0:
        trial.errors.append(_why(done, limits))
        return "port" if _TO_PORT in trial.errors[-1] else "no"
    try:
        components: dict[str, dict[str, Any]] = json.loads(figures.read_text())["components"]
    except (OSError, ValueError, KeyError):
        trial.errors.append(f"{engine}: no figures were written")
        return "no"
    trial.tuples = {
        name: {what: one[what] for what in ("emitted", "executed")} for name, one in components.items()
    }
    for name, one in components.items():
        if one.get("errors"):
            last = (str(one.get("last_error") or "").strip().splitlines() or [""])[-1]  # under its traceback
            count = "1 error" if one["errors"] == 1 else f"{one['errors']:,} errors, the last"
            line = f"{engine}: {name}: {count}: {last}"
            trial.errors.append(line)
    return "yes" if any(one["emitted"] for one in trial.tuples.values()) else "quiet"


def _shortened(line: str) -> str:
    """Leave out the middle of a long line, because the reason is often at its end."""
    return line if len(line) <= _FIRST + _LAST else f"{line[:_FIRST]} [...] {line[-_LAST:]}"


def _why(done: Done, limits: Limits) -> str:
    if done.code is None:
        return f"it did not end within {limits.most_secs:g} s: {message(done.errors)}"
    return message(done.errors) or f"it ended with {done.code}, without a message"
