"""Lists dead letters, and orders that their rows are emitted again."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from stormspark.checkpoint.dead_letters import FOLDER, LetterTable, StoredLetter, local_letters
from stormspark.cli.output import wide_enough
from stormspark.driver.letter_lines import LINES
from stormspark.errors import CheckpointError, StormsparkError, TopologyNotAliveError
from stormspark.launcher import is_url
from stormspark.private_files import default_log_folder

__all__ = ["list_letters", "replay_letters"]

#: The most characters of a row or a reason that are shown.
_LETTERS = 100
_COLUMNS = ("id", "time", "component", "task", "message_id", "row", "reason", "status")


class _Table(NamedTuple):
    """A table in a checkpoint folder, and the last batch that is known to be committed."""

    table: LetterTable
    committed: int


def list_letters(
    where: str, most: int, components: Collection[str], conf: Mapping[str, Any], *, as_json: bool
) -> int:
    """Print the last ``most`` dead letters of these components, or of all, the oldest first. Return the exit code.

    ``conf`` has settings for a Spark that has to read them.

    Raises `CheckpointError` if there are no letters that can be read, and `TopologyNotAliveError` for an unknown name.
    """
    found = _find(where, conf)
    if isinstance(found, _Table):
        place = found.table.place
        letters = [_as_dict(one) for one in found.table.letters(found.committed)]
    else:
        place = ", ".join(map(str, found))
        letters = [line for path in found for line in _lines(path)]
    letters = [one for one in letters if not components or one["component"] in components]
    shown = letters[-most:] if most else letters
    if as_json:
        for one in shown:
            sys.stdout.write(json.dumps(one) + "\n")
        return 0
    console = wide_enough(Console(highlight=False), 160)
    if not letters:
        console.print(Text(f"no dead letters in {place}"), soft_wrap=True)
        return 0
    count = "1 dead letter" if len(letters) == 1 else f"{len(letters):,} dead letters"
    last = f", the last {len(shown):,} of them" if len(shown) < len(letters) else ""
    console.print(Text(f"{count} in {place}{last}:"), soft_wrap=True)
    console.print(_shown(shown))
    return 0


def replay_letters(
    where: str, components: Collection[str], ids: Collection[str], conf: Mapping[str, Any]
) -> int:
    """Order that the rows of letters are emitted again when the topology starts: the letters with these ids, or all letters of
    these components, or all. Return the exit code.

    Raises `StormsparkError` for an unknown id, and for letters that can't be replayed.
    """
    found = _find(where, conf)
    if not isinstance(found, _Table):
        msg = (
            f"{', '.join(map(str, found))} has its dead letters as lines of JSON, which can't be replayed: give the rows to the "
            f"topology's source again yourself. Letters can be replayed that a topology on Spark has written into its "
            f"--checkpoint folder, without stormspark.dead.letter.dir"
        )
        raise StormsparkError(msg)
    table, committed = found
    letters = [
        one
        for one in table.letters(committed)
        if (not components or one.letter.component in components) and (not ids or one.id in ids)
    ]
    unknown = sorted(set(ids) - {one.id for one in letters})
    if unknown:
        of = f" of {', '.join(sorted(components))}" if components else ""
        msg = f"there is no dead letter {', '.join(unknown)}{of} in {table.place}: stormspark dead-letters list shows the ids"
        raise StormsparkError(msg)
    fixed = [one for one in letters if one.letter.data is None]
    ordered = table.order([one.id for one in letters if one.letter.data is not None], committed)
    print_ = Console(highlight=False).print
    rows = "1 row comes" if len(ordered) == 1 else f"{len(ordered):,} rows come"
    again = "if it runs now, stop it and start it again" if ordered else "nothing is left to replay"
    print_(
        Text(f"{rows} again when the topology starts the next time with this checkpoint; {again}"),
        soft_wrap=True,
    )
    before = len(letters) - len(fixed) - len(ordered)
    if before:
        print_(Text(f"already replayed, or waiting for the next start: {before:,}"), soft_wrap=True)
    if fixed:
        names = ", ".join(one.id for one in fixed[:10]) + (", ..." if len(fixed) > 10 else "")
        print_(
            Text(f"can't be replayed, because Python can't hold their values: {len(fixed):,} ({names})"),
            soft_wrap=True,
        )
    return 0


def _find(where: str, conf: Mapping[str, Any]) -> _Table | list[Path]:
    """Return the table of letters, or the files with lines of JSON, to which ``where`` leads: a checkpoint, a folder or a file
    with lines, or the name of a topology.
    """
    if where.startswith("file:"):
        from urllib.parse import unquote, urlsplit

        where = unquote(urlsplit(where).path)
    if is_url(where):
        from stormspark.spark.letters_at_url import (
            letters_at_url,
        )  # this takes a second, and a folder needs no Spark

        return _Table(*letters_at_url(where.rstrip("/").removesuffix(f"/{FOLDER}"), conf))
    path = Path(where)
    if path.is_file():
        return [path]
    if path.is_dir():
        try:
            return _in_folder(path)
        except CheckpointError:
            # A folder with the name of the topology is likely here: its project, or its input.
            if "/" not in where:
                with suppress(TopologyNotAliveError):
                    return _of_topology(where, conf)
            raise
    if "/" in where:
        msg = f"there is no folder or file {where}: give a checkpoint folder, or the name of a topology"
        raise CheckpointError(msg)
    return _of_topology(where, conf)


def _in_folder(path: Path) -> _Table | list[Path]:
    if path.name == FOLDER and not list(path.glob("*.jsonl")):
        path = path.parent
    lines = sorted(path.glob("*.jsonl"))
    if lines and not (path / FOLDER).is_dir():
        return lines
    if not any((path / name).is_dir() for name in (FOLDER, "spark", "stormspark")):
        msg = (
            f"{path} is no checkpoint folder of a topology, and has no files with dead letters (*.jsonl): give the folder that "
            f"`stormspark run` was given as --checkpoint"
        )
        raise CheckpointError(msg)
    return _Table(local_letters(path), _last_committed(path))


def _of_topology(name: str, conf: Mapping[str, Any]) -> _Table | list[Path]:
    from stormspark.spark.whereabouts import Whereabouts

    lines = default_log_folder() / name / LINES
    try:
        checkpoint = Whereabouts.read(name).checkpoint
    except TopologyNotAliveError:
        if lines.is_file():
            return [lines]
        raise
    if "://" not in checkpoint and not Path(checkpoint).is_dir() and lines.is_file():
        return [lines]  # its checkpoint was a temporary folder
    return _find(checkpoint, conf)


def _last_committed(path: Path) -> int:
    """Return the last committed batch. The state table may be a batch ahead of Spark."""
    commits = path / "spark" / "commits"
    names = [one.name for one in commits.iterdir()] if commits.is_dir() else []
    last = max((int(name) for name in names if name.isdecimal()), default=-1)
    state = path / "stormspark" / "state"
    if (state / "_delta_log").is_dir():
        from stormspark.checkpoint.state_table import StateTable, WrittenBySparkError
        from stormspark.checkpoint.table_of_spark import TableOfSpark

        try:
            last = max(last, StateTable(state).last_txid)
        except WrittenBySparkError:
            last = max(last, TableOfSpark(str(state)).last_txid)
    return last


def _as_dict(one: StoredLetter) -> dict[str, Any]:
    letter = one.letter
    return {
        "id": one.id,
        "time": datetime.fromtimestamp(letter.time, UTC).isoformat(),
        "batch": one.batch,
        "component": letter.component,
        "task": letter.task,
        "message_id": json.loads(letter.message_id),
        "reason": letter.reason,
        "row": json.loads(letter.row),
        "status": one.status,
    }


def _lines(path: Path) -> list[dict[str, Any]]:
    try:
        lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [
            {"id": "", "time": "", "status": "", **line, "component": line["component"]} for line in lines
        ]
    except (OSError, ValueError, LookupError, TypeError) as error:
        msg = f"the dead letters in {path} can't be read: {error!r}"
        raise CheckpointError(msg) from error


def _shown(letters: list[dict[str, Any]]) -> Table:
    columns = [name for name in _COLUMNS if any(one[name] != "" for one in letters)]
    table = Table(box=None, pad_edge=False)
    for name in columns:
        table.add_column(name.replace("_", " "))
    for one in letters:
        table.add_row(*(Text(_short(one, name)) for name in columns))
    return table


def _short(one: Mapping[str, Any], name: str) -> str:
    value = one[name]
    if name == "time":
        value = str(value)[:19]
    text = value if isinstance(value, str) else json.dumps(value)
    text = text.partition("\n")[0]
    return text if len(text) <= _LETTERS else f"{text[:_LETTERS]}..."
