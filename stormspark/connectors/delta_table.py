"""Creates, checks and writes the Delta table of a `DeltaBolt` with delta-rs. A write appends rows or merges them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

from stormspark.api import Tuple
from stormspark.checkpoint.state_files import Folder
from stormspark.connectors.arrow_columns import inferred_schema
from stormspark.connectors.delta_files import StagedFile, StagedRows, staged
from stormspark.errors import InvalidTopologyError
from stormspark.extras import pyarrow as pa
from stormspark.extras import require

__all__ = ["SinkTable", "why_no_key"]

#: Column properties that only an ordinary write enforces or fills in. A table that has them could reject rows whose batch is
#: already committed.
_NEEDS_A_WRITER = ("delta.invariants", "delta.generationExpression", "delta.identity.start")
#: This many bytes at the beginning of a log entry identify the entry, because they hold the commit's time, the table's id, or
#: names of files.
_BEGINNING = 16 << 10


class SinkTable:
    """The Delta table at ``location``, as one writer sees it.

    ``application`` is the writer's name. The writer's commits carry rising numbers (Delta's ``txn``).

    With ``merge_on``, a written row replaces the table's row with the same key, or is added if there is none. If the written
    row's column ``delete_on`` is true, the table's row is deleted instead.
    """

    def __init__(
        self,
        location: str,
        *,
        schema: pa.Schema | None = None,
        partition_by: Sequence[str] = (),
        merge_on: Sequence[str] = (),
        delete_on: str | None = None,
        storage_options: Mapping[str, str] | None = None,
        configuration: Mapping[str, str] | None = None,
    ) -> None:
        self._delta: Any = require("deltalake", "DeltaBolt")
        self.location, self.application = location, ""
        self._schema, self._partition_by = schema, list(partition_by)
        self._merge_on, self._delete_on = list(merge_on), delete_on
        self._options, self._configuration = dict(storage_options or {}), dict(configuration or {})
        self._handle: Any = None
        self._partitions: list[str] = []  # the table's partition columns when it was last opened
        self._folder: Folder | None = None
        self._seen: tuple[int, bytes] | None = (
            None  # the version that was opened last, and the first bytes of its log entry
        )

    # -- what is there ---------------------------------------------------------------------------------------

    def open(self) -> bool:
        """Open the latest version of the table. Returns false if there is no table.

        Raises `InvalidTopologyError` if the table contradicts the bolt's settings.
        """
        if self._handle is not None and not self._is_the_same():
            self.forget()
        if self._handle is None:
            if not self._delta.DeltaTable.is_deltatable(self.location, self._options):
                return False
            self._handle = self._opened()
        else:
            self._handle.update_incremental()
        self._partitions = list(self._handle.metadata().partition_columns)
        version = self._handle.version()
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, self._entry(version))
        return True

    def _is_the_same(self) -> bool:
        """Whether the table is still the one that was opened.

        The table may have been removed and created again, and the new table may have as many versions as the old one had.
        delta-rs would then go on with the old table's columns and partitions.
        """
        return self._seen is not None and self._seen[1] == self._entry(self._seen[0]) != b""

    def _entry(self, version: int) -> bytes:
        """Return the first bytes of a version's log entry, which are unique and never change; no bytes if there is no entry."""
        if self._folder is None:
            self._folder = Folder(self.location, self._options)
        try:
            with self._folder.read(f"_delta_log/{version:020}.json") as entry:
                return bytes(entry.read(_BEGINNING))
        except FileNotFoundError:
            return b""

    def open_or_make(self, tuples: Sequence[Tuple] = ()) -> None:
        """Open the table. If there is none, create it with the bolt's schema, or else with the names and types in ``tuples``."""
        if self.open():
            return
        schema = self._schema if self._schema is not None else self._without_delete(inferred_schema(tuples))
        try:
            self._delta.DeltaTable.create(
                self.location,
                schema,
                mode="ignore",
                partition_by=self._partition_by or None,
                configuration=self._configuration or None,
                storage_options=self._options or None,
            )
        except Exception:
            # Another task may have created the table in the meantime.
            if not self._delta.DeltaTable.is_deltatable(self.location, self._options):
                raise
        self.open()

    def forget(self) -> None:
        """Forget the opened table after an error, because another process may have changed the table or created it again."""
        self._handle = self._seen = None

    def arrow_schema(self) -> pa.Schema:
        """Return the schema that tuples have to fit: the table's columns, and the column ``delete_on`` if there is one."""
        schema = self._columns()
        if self._delete_on is not None and self._delete_on not in schema.names:
            schema = schema.append(pa.field(self._delete_on, pa.bool_()))
        return schema

    def check_for_transactions(self) -> None:
        """Raise `InvalidTopologyError` if the table can't be the target of batches that are transactions.

        The table must not reject rows whose batch is already committed. Its partitions must be such that a bolt can write the
        table's files directly.
        """
        configuration = self._handle.metadata().configuration
        found = [name for name in configuration if name.startswith("delta.constraints.")]
        for field in self._handle.schema().fields:
            found += [f"{name} of {field.name}" for name in _NEEDS_A_WRITER if name in field.metadata]
        found += [f"NOT NULL in {name}" for name in _never_null_inside(self._columns())]
        if self._merge_on and configuration.get("delta.appendOnly", "false").lower() == "true":
            found.append("delta.appendOnly, but merge_on replaces rows")
        if configuration.get("delta.columnMapping.mode", "none") != "none":
            found.append("delta.columnMapping.mode")
        if found:
            msg = (
                f"DeltaBolt: the table {self.location} has {found[0]}, but this topology's batches are transactions, and "
                f"the table must not reject rows whose batch is committed. Remove that from the table and check rows in a bolt "
                f"before this one, or write in a topology whose batches are not transactions"
            )
            raise InvalidTopologyError(msg)
        partitions = self._handle.metadata().partition_columns
        fields = self._handle.schema().fields
        problem = ""
        if len(partitions) == len(fields):
            problem = "only partition columns, so its files would have no columns"
        elif bytes_in := [
            f.name for f in fields if f.name in partitions and str(f.type) == 'PrimitiveType("binary")'
        ]:
            problem = f"the partition column {bytes_in[0]!r} of bytes, which may not be valid text"
        if problem:
            msg = (
                f"DeltaBolt: the table {self.location} has {problem}, and this topology's batches are transactions, which write "
                f"the table's files directly. Change its partitions, or write in a topology whose batches are not transactions"
            )
            raise InvalidTopologyError(msg)

    def last_commit(self) -> int:
        """Return the number of this application's last commit in the opened version of the table; -1 if there is none."""
        last = self._handle.transaction_version(self.application)
        return -1 if last is None else int(last)

    def _opened(self) -> Any:
        table = self._delta.DeltaTable(self.location, storage_options=self._options)
        names = [field.name for field in table.schema().fields]
        partitions = table.metadata().partition_columns
        wanted = [*(self._schema.names if self._schema is not None else ()), *self._merge_on]
        missing = [name for name in wanted if name not in names]
        if missing:
            option = "merge_on" if missing[0] in self._merge_on else "schema"
            msg = (
                f"DeltaBolt: the table {self.location} has no column {missing[0]!r}, which {option} names; its columns are "
                f"{', '.join(names)}. Add the column to the table, or remove it from {option}"
            )
            raise InvalidTopologyError(msg)
        columns = pa.schema(table.schema().to_arrow())
        if (why := why_no_key(columns, self._merge_on)) is not None:
            raise InvalidTopologyError(why)
        if self._partition_by and partitions != self._partition_by:
            msg = f"DeltaBolt: the table {self.location} is partitioned by {partitions}, not by {self._partition_by}"
            raise InvalidTopologyError(msg)
        return table

    def _columns(self) -> pa.Schema:
        return pa.schema(self._handle.schema().to_arrow())

    def _without_delete(self, schema: pa.Schema) -> pa.Schema:
        name = self._delete_on
        return (
            schema
            if name is None or name not in schema.names
            else schema.remove(schema.get_field_index(name))
        )

    @property
    def partitions(self) -> Sequence[str]:
        """The partition columns of the opened table."""
        return self._partitions

    # -- commits ---------------------------------------------------------------------------------------------

    def write(self, rows: pa.Table, version: int) -> None:
        """Append or merge the rows, as commit ``version``."""
        if self._merge_on:
            self._merge(rows, version)
        else:
            self._delta.write_deltalake(
                self._handle, rows, mode="append", commit_properties=self._properties(version)
            )

    def stage(self, rows: pa.Table) -> StagedRows:
        """Write the rows to files in the table's folder. The files are not yet part of the table. Raises OSError."""
        # Rows that will be merged, or that lack a partition column which the table has, are partitioned only at the commit.
        known = not self._merge_on and set(self._partitions) <= set(rows.column_names)
        return staged(self.location, self._options, rows, self._partitions if known else ())

    def commit_staged(self, rows: StagedRows, version: int) -> None:
        """Make staged rows part of the table as commit ``version``, unless the table already has that commit.

        Staged files that certainly are no part of the table are then deleted. Raises ValueError if the table or the files have
        changed in such a way that the rows can't be added any more. Raises `InvalidTopologyError` as `check_for_transactions`
        does.
        """
        self.open_or_make()
        if self.last_commit() < version:
            self.check_for_transactions()
            if (path := rows.missing(self.location, self._options)) is not None:
                msg = (
                    f"the file {path}, with rows of batch {version} for the table {self.location}, is gone or changed, perhaps "
                    f"because the table was vacuumed, or deleted and made again, while the rows waited. Restore the file; "
                    f"without it the rows are lost, and the topology can only begin with a new checkpoint folder"
                )
                raise ValueError(msg)
            self._check_staged(rows)
            if self._is_file_by_file(rows):
                self._add(rows.files, version)
                return
            self.write(self._with_all_columns(rows.read(self.location, self._options)), version)
        elif not self._merge_on:
            return  # Keep the files. They may be part of the table, or of an earlier version that somebody may restore.
        with contextlib.suppress(OSError):
            rows.delete(self.location, self._options)

    def _add(self, files: Sequence[StagedFile], version: int) -> None:
        table = self._handle
        table.create_write_transaction(
            [
                self._delta.transaction.AddAction(
                    file.path, file.size, dict(file.partition), file.written_ms, True, file.statistics
                )
                for file in files
            ],
            "append",
            table.schema(),
            partition_by=table.metadata().partition_columns or None,
            commit_properties=self._properties(version),
        )

    def _is_file_by_file(self, rows: StagedRows) -> bool:
        """Whether the files can become part of the table unchanged. A merge, or new partition columns, make that impossible."""
        return not self._merge_on and all(
            [name for name, _ in file.partition] == self._partitions for file in rows.files
        )

    def _check_staged(self, rows: StagedRows) -> None:
        """Raise ValueError if the rows don't fit the table any more, because the table has changed since they were staged."""
        now = self._columns()
        for field in rows.schema:
            there = now.field(field.name).type if field.name in now.names else None
            if there == field.type or field.name == self._delete_on or (self._merge_on and there is not None):
                continue  # a merge converts the types itself
            msg = (
                f"the table {self.location} was changed while rows waited for it: column {field.name!r} was {field.type} "
                f"and is {there or 'gone'} now. Undo the change until the rows are delivered"
            )
            raise ValueError(msg)
        never_null = [field.name for field in now if not field.nullable]
        if set(never_null) <= {field.name for field in rows.schema if not field.nullable}:
            return
        # Files that become part of the table unchanged are not checked anywhere else.
        found = self._with_all_columns(rows.read(self.location, self._options))
        for name in never_null:
            if found.column(name).null_count:
                msg = (
                    f"the table {self.location} was changed while rows waited for it: column {name!r} must not be null any "
                    f"more, but is null in some of these rows. Allow null until the rows are delivered"
                )
                raise ValueError(msg)

    def _with_all_columns(self, rows: pa.Table) -> pa.Table:
        """Return the rows with all columns of the table. Columns that are newer than the staged rows are null."""
        names = set(rows.column_names)
        for field in self._columns():
            if field.name not in names:
                rows = rows.append_column(field.name, pa.nulls(rows.num_rows, field.type))
        return rows

    def _merge(self, rows: pa.Table, version: int) -> None:
        """Merge the rows, which all have different keys."""
        columns = {_quoted(name): f"s.{_quoted(name)}" for name in self._columns().names}
        on = " AND ".join(f"t.{_quoted(key)} = s.{_quoted(key)}" for key in self._merge_on)
        merge = self._handle.merge(
            rows, on, source_alias="s", target_alias="t", commit_properties=self._properties(version)
        )
        stays = None
        if self._delete_on is not None:
            gone = f"coalesce(s.{_quoted(self._delete_on)}, false)"
            merge, stays = merge.when_matched_delete(gone), f"NOT {gone}"
        merge.when_matched_update(columns).when_not_matched_insert(columns, predicate=stays).execute()

    def _properties(self, version: int) -> Any:
        return self._delta.CommitProperties(
            app_transactions=[self._delta.Transaction(self.application, version)]
        )


def why_no_key(columns: pa.Schema, merge_on: Sequence[str]) -> str | None:
    """Return why rows can't be merged on these columns, or None if they can.

    >>> why_no_key(pa.schema([("word", pa.string())]), ["word"])
    """
    for name in merge_on:
        if name in columns.names and pa.types.is_nested(kind := columns.field(name).type):
            return (
                f"DeltaBolt: merge_on names {name!r} of type {kind}, but a key must consist of plain values: merge on columns of "
                f"strings, numbers or times"
            )
    return None


def _never_null_inside(schema: pa.Schema) -> list[str]:
    """Return the fields that are inside structs and must not be null. Only an ordinary write checks them."""
    found = []
    for field in schema:
        if pa.types.is_struct(field.type):
            inside = pa.schema(list(field.type))
            found += [f"{field.name}.{one.name}" for one in inside if not one.nullable]
            found += [f"{field.name}.{name}" for name in _never_null_inside(inside)]
    return found


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
