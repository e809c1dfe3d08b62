"""The dead letters of a topology, in its checkpoint folder: a table that people can read, and whose rows can be emitted again.

    <checkpoint>/dead-letters/<batch>.parquet               the letters of one batch
    <checkpoint>/dead-letters/<first>-<last>.parquet        the letters of several batches, merged from smaller files
    <checkpoint>/dead-letters/_replays/order-<n>.json       somebody wants these letters' rows to be emitted again
    <checkpoint>/dead-letters/_replays/batch-<batch>.json   the batch in which rows of letters are emitted again

**The invariant.** A file is written before its batch is committed, and counts once the batch is committed. So a row that is given
up is open, or comes again with its batch, or its letter is in a file that counts. If batches are transactions, a batch that runs
again replaces its file, so each row has one letter, and none for a batch that was taken back. Otherwise the file of the earlier
attempt may have letters of rows of earlier batches. These rows may not come again, so the new file keeps their letters.

**Replays.** To order a replay is to write one file that did not exist. So a command that is killed has ordered everything or
nothing, and two commands can't order the same letter twice. An order changes nothing else. When the topology starts, its driver
assigns the ordered letters to the batches that run next, some thousand to each, and writes this down before a batch begins. If a
batch is committed, its letters are done. Otherwise the batch runs again, and has the letters' rows again. So if batches are
transactions, no row is lost, and none comes twice.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from stormspark.checkpoint.exclusive_files import write_whole
from stormspark.errors import CheckpointError
from stormspark.extras import or_missing
from stormspark.extras import pyarrow as pa
from stormspark.extras import pyarrow_parquet as pq

__all__ = [
    "FOLDER",
    "LETTERS_SCHEMA",
    "REPLAYS",
    "Letter",
    "LetterFiles",
    "LetterTable",
    "LocalLetterFiles",
    "StoredLetter",
    "local_letters",
]

#: The folder of the letters in the checkpoint folder, and in it the folder of the replays. Spark reads no folder whose name
#: begins with an underscore, so people can read the letters' folder with Spark.
FOLDER, REPLAYS = "dead-letters", "_replays"
#: The columns of a letter's row. ``batch`` is the batch in which the row was given up, and ``row_batch`` the one that brought it.
LETTERS_SCHEMA = or_missing(
    lambda: pa.schema(
        [
            ("id", pa.string()),
            ("time", pa.timestamp("us", "UTC")),
            ("batch", pa.int64()),
            ("component", pa.string()),
            ("task", pa.int32()),
            ("message_id", pa.string()),
            ("reason", pa.string()),
            ("row", pa.string()),
            ("row_batch", pa.int64()),
            ("key", pa.string()),
            ("data", pa.binary()),
        ]
    )
)
_OF_BATCHES = re.compile(r"(\d+)(?:-(\d+))?\.parquet")
_OF_BATCH = re.compile(r"\d+\.parquet")
_ORDER = re.compile(r"order-(\d+)\.json")
_ASSIGNED = re.compile(r"batch-(\d+)\.json")
#: This many files of single batches are merged into one, unless they are large.
_MERGE_FILES, _MERGE_BYTES, _ASSUMED_BYTES = 64, 64 << 20, 1 << 20
#: At most so many rows of letters are emitted again in a batch, or about so many bytes. A transaction has to hold them all.
_BATCH_ROWS, _BATCH_BYTES = 10_000, 16 << 20
#: `LetterTable.order` tries this many times to be the one that writes the next order.
_TRIES = 100


class Letter(NamedTuple):
    """A row of a source that was given up, as the row's task reports it."""

    component: str
    task: int
    #: The batch that brought the row, and what distinguishes the row from all other rows that were open at the same time.
    row_batch: int
    key: str
    #: The message id that users see, as JSON.
    message_id: str
    reason: str
    #: The row's values, as JSON.
    row: str
    #: When the row was given up, in seconds since 1970.
    time: float
    #: The encoded row, from which the row can be emitted again; None if it can't.
    data: bytes | None

    @property
    def size(self) -> int:
        """About how many bytes the letter takes."""
        return 200 + len(self.reason) + len(self.row) + len(self.data or b"")


class StoredLetter(NamedTuple):
    """A letter in the table."""

    id: str
    batch: int
    letter: Letter
    #: Whether somebody has ordered that the row is emitted again, and the batch in which that has happened.
    ordered: bool = False
    replayed_in: int | None = None

    @property
    def status(self) -> str:
        """Return a word or two on what has become of the row."""
        if self.replayed_in is not None:
            return f"replayed in batch {self.replayed_in}"
        if self.ordered:
            return "comes with the next start"
        return "given up" if self.letter.data is not None else "given up, can't be replayed"


class LetterFiles(Protocol):
    """Files of a folder, by name. Each method may raise OSError."""

    def names(self) -> list[str]:
        """Return the names of the files; none if there is no folder."""

    def read(self, name: str) -> bytes:
        """Return a file's bytes. Raises FileNotFoundError."""

    def write(self, name: str, data: bytes, *, replace: bool) -> None:
        """Write a file, whole or not at all. Without ``replace``, raises FileExistsError if there is one already."""

    def delete(self, name: str) -> None:
        """Delete a file, if it exists."""


class LocalLetterFiles:
    """Files of a local folder, which is made with the first file. If they are ``shared``, whoever may read the folder may read
    them.
    """

    def __init__(self, folder: Path, *, shared: bool = False) -> None:
        self.folder, self._shared = folder, shared

    def names(self) -> list[str]:
        """See `LetterFiles`."""
        return os.listdir(self.folder) if self.folder.is_dir() else []

    def read(self, name: str) -> bytes:
        """See `LetterFiles`."""
        return (self.folder / name).read_bytes()

    def write(self, name: str, data: bytes, *, replace: bool) -> None:
        """See `LetterFiles`. The file and its name are on disk when this returns."""
        write_whole(self.folder / name, data, replace=replace, shared=self._shared)
        handle = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def delete(self, name: str) -> None:
        """See `LetterFiles`."""
        (self.folder / name).unlink(missing_ok=True)


class LetterTable:
    """The dead letters in ``files``, and the replays in ``replays``. ``place`` is the folder's name, for messages.

    The driver calls `write` and `assign`. Anybody may call the other methods at any time.

    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> table = LetterTable(LocalLetterFiles(folder), LocalLetterFiles(folder / "_replays"), str(folder))
    >>> letter = Letter("lines", 3, 7, "(7, 0, 1)", "[7, 0, 1]", "no number", '["x"]', 0.0, b"...")
    >>> table.write(7, [letter], transactions=True)
    >>> [one.id for one in table.letters(6)], [one.id for one in table.letters(7)]
    ([], ['7-0'])
    >>> table.order(["7-0"], 7), table.order(["7-0"], 7)
    (['7-0'], [])
    >>> {batch: [one.letter.row for one in letters] for batch, letters in table.assign(8, ["lines"]).items()}
    {8: ['["x"]']}
    >>> [one.status for one in table.letters(7)], [one.status for one in table.letters(8)]
    (['comes with the next start'], ['replayed in batch 8'])
    """

    def __init__(self, files: LetterFiles, replays: LetterFiles, place: str) -> None:
        self.place = place
        self._files, self._replays = files, replays
        #: For the driver: the names of the files that are there, and how large the files of single batches are.
        self._there: set[str] | None = None
        self._small: dict[str, int] = {}

    # -- the driver ------------------------------------------------------------------------------------------

    def write(self, batch: int, letters: Sequence[Letter], *, transactions: bool) -> None:
        """Write the letters of a batch, before the batch is committed. Replace those of an earlier attempt at the batch.

        ``transactions`` says whether the batch is one. Raises `CheckpointError` if the letters can't be written.
        """
        name = f"{batch}.parquet"
        if self._there is None:
            with self._usable("read"):
                self._there = set(self._files.names())
                # Files that earlier drivers have left are merged, too. They may be as large as this.
                self._small = {one: _ASSUMED_BYTES for one in self._there if _OF_BATCH.fullmatch(one)}
        earlier = name in self._there
        if not letters and not earlier:
            return
        with self._usable("written"):
            kept: list[Letter] = []
            if earlier and not transactions:
                kept = [one.letter for one in _read(self._files, name) if one.letter.row_batch < batch]
            unique = {(one.component, one.key): one for one in (*kept, *letters)}
            if not unique:
                self._files.delete(name)
                self._there.discard(name)
                self._small.pop(name, None)
                return
            data = _parquet(StoredLetter(f"{batch}-{n}", batch, one) for n, one in enumerate(unique.values()))
            self._files.write(name, data, replace=True)
        self._there.add(name)
        self._small[name] = len(data)
        if len(self._small) > _MERGE_FILES:
            with contextlib.suppress(OSError, CheckpointError):  # the next batch tries again
                self._merge(batch)

    def _merge(self, batch: int) -> None:
        """Merge the files of earlier batches. These batches are committed, because ``batch`` runs."""
        names = sorted((name for name in self._small if _batches(name)[1] < batch), key=_batches)
        some: list[str] = []
        for name in names:
            if sum(self._small[one] for one in some) < _MERGE_BYTES:
                some.append(name)
        if len(some) < 2:
            return
        merged = f"{_batches(some[0])[0]}-{_batches(some[-1])[1]}.parquet"
        # A driver that dies before it has deleted the parts leaves letters in two files. Readers know letters by their ids.
        self._files.write(
            merged, _parquet(one for name in some for one in _read(self._files, name)), replace=True
        )
        for name in some:
            self._files.delete(name)
            del self._small[name]

    def assign(self, batch: int, components: Collection[str]) -> dict[int, list[StoredLetter]]:
        """Assign all ordered letters of these components to ``batch``, which runs next, and to the batches after it. Return the
        letters whose rows come with each batch.

        Letters that earlier batches have are left out, because these batches are committed. Raises `CheckpointError`.
        """
        with self._usable("read"):
            ordered, assigned = self._look()
            wanted = {id for id in ordered if assigned.get(id, batch) >= batch}
            found = [
                one
                for one in (self._all(batch - 1) if wanted else ())
                if one.id in wanted and one.letter.data is not None and one.letter.component in components
            ]
            # An earlier driver has not come to these batches.
            stale = [
                name
                for name in self._replays.names()
                if (of_batch := _ASSIGNED.fullmatch(name)) and int(of_batch[1]) >= batch
            ]
        by_batch = dict(enumerate(_portions(found), batch))
        with self._usable("written"):
            for number, letters in by_batch.items():
                text = json.dumps({"batch": number, "letters": [one.id for one in letters]})
                self._replays.write(f"batch-{number}.json", text.encode(), replace=True)
            for name in stale:
                if name not in {f"batch-{number}.json" for number in by_batch}:
                    self._replays.delete(name)
        return by_batch

    # -- everybody -------------------------------------------------------------------------------------------

    def letters(self, committed: int) -> list[StoredLetter]:
        """Return the letters of all batches up to ``committed``, the batch that was committed last, oldest first.

        Raises `CheckpointError`.
        """
        with self._usable("read"):
            ordered, assigned = self._look()
            return [
                one._replace(
                    ordered=one.id in ordered,
                    replayed_in=batch if 0 <= (batch := assigned.get(one.id, -1)) <= committed else None,
                )
                for one in self._all(committed)
            ]

    def order(self, ids: Iterable[str], committed: int) -> list[str]:
        """Order that the rows of these letters are emitted again at the next start. Return the ids of those that nobody had
        ordered before. Raises `CheckpointError`.
        """
        wanted = list(dict.fromkeys(ids))
        for _ in range(_TRIES):
            with self._usable("read"):
                ordered, _assigned = self._look()
                new = [id for id in wanted if id not in ordered]
                numbers = [
                    int(found[1]) for name in self._replays.names() if (found := _ORDER.fullmatch(name))
                ]
            if not new:
                return []
            with self._usable("written"):
                try:
                    data = json.dumps({"letters": new}).encode()
                    self._replays.write(f"order-{max(numbers, default=0) + 1}.json", data, replace=False)
                except FileExistsError:  # another command was faster, and may have ordered the same letters
                    continue
            return new
        msg = f"the replay can't be ordered in {self.place}, because other commands order replays all the time: try again"
        raise CheckpointError(msg)

    def _look(self) -> tuple[set[str], dict[str, int]]:
        """Return the ids of all ordered letters, and the batch to which each assigned letter was assigned last."""
        ordered: set[str] = set()
        assigned: dict[str, int] = {}
        for name in self._replays.names():
            if _ORDER.fullmatch(name):
                ordered.update(self._json(name)["letters"])
            elif found := _ASSIGNED.fullmatch(name):
                batch = int(found[1])
                for id in self._json(name)["letters"]:
                    # Of two batches with one letter, the later one was never begun: the checkpoint was restored from a copy.
                    assigned[id] = min(batch, assigned.get(id, batch))
        return ordered, assigned

    def _json(self, name: str) -> Mapping[str, Any]:
        found: Mapping[str, Any] = json.loads(self._replays.read(name))
        return found

    def _all(self, committed: int) -> list[StoredLetter]:
        names = [name for name in self._files.names() if _OF_BATCHES.fullmatch(name)]
        found: dict[str, StoredLetter] = {}
        for name in sorted(names, key=_batches):
            if _batches(name)[0] <= committed:
                try:
                    found |= {one.id: one for one in _read(self._files, name) if one.batch <= committed}
                except FileNotFoundError:
                    # The driver has merged the file meanwhile.
                    return self._all(committed)
        return sorted(found.values(), key=lambda one: (one.batch, int(one.id.rpartition("-")[2])))

    @contextlib.contextmanager
    def _usable(self, what: str) -> Iterator[None]:
        try:
            yield
        except (OSError, pa.ArrowException, ValueError, LookupError, TypeError) as error:
            msg = f"the dead letters in {self.place} can't be {what}: {error}"
            raise CheckpointError(msg) from error


def local_letters(checkpoint: str | Path) -> LetterTable:
    """Return the table of the dead letters in a local checkpoint folder."""
    folder = Path(checkpoint, FOLDER)
    return LetterTable(LocalLetterFiles(folder), LocalLetterFiles(folder / REPLAYS), str(folder))


def _portions(letters: Iterable[StoredLetter]) -> Iterator[list[StoredLetter]]:
    """Divide letters into portions for one batch each."""
    some: list[StoredLetter] = []
    size = 0
    for one in letters:
        if some and (len(some) >= _BATCH_ROWS or size >= _BATCH_BYTES):
            yield some
            some, size = [], 0
        some.append(one)
        size += len(one.letter.data or b"")
    if some:
        yield some


def _batches(name: str) -> tuple[int, int]:
    """Return the first and the last batch of a file.

    >>> _batches("7.parquet"), _batches("7-12.parquet")
    ((7, 7), (7, 12))
    """
    found = _OF_BATCHES.fullmatch(name)
    assert found is not None, name
    return int(found[1]), int(found[2] or found[1])


def _parquet(letters: Iterable[StoredLetter]) -> bytes:
    rows = [
        {
            **one.letter._asdict(),
            "id": one.id,
            "batch": one.batch,
            "time": round(one.letter.time * 1_000_000),
        }
        for one in letters
    ]
    columns = {name: [row[name] for row in rows] for name in LETTERS_SCHEMA.names}
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, LETTERS_SCHEMA, write_page_checksum=True) as writer:
        writer.write_table(pa.table(columns, schema=LETTERS_SCHEMA))
    return sink.getvalue().to_pybytes()  # type: ignore[no-any-return]


def _read(files: LetterFiles, name: str) -> list[StoredLetter]:
    source = pa.BufferReader(files.read(name))
    table = pq.ParquetFile(source, page_checksum_verification=True).read().select(LETTERS_SCHEMA.names)
    table = table.set_column(1, "time", table["time"].cast(pa.int64()))
    return [
        StoredLetter(
            row["id"],
            row["batch"],
            Letter(**{name: row[name] for name in Letter._fields} | {"time": row["time"] / 1_000_000}),
        )
        for row in table.to_pylist()
    ]
