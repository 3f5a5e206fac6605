"""Parquet files, read and written with pyarrow; nothing else imports it."""

from __future__ import annotations

import base64
import datetime
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from treepiece.errors import DataError, OptionError
from treepiece.jobs.columns import (
    PREDICTED,
    ColumnType,
    Prediction,
    as_type,
    check_names,
    choose_column,
    encodable,
    finite,
    output_columns,
)
from treepiece.jobs.job import readable
from treepiece.jobs.sinks import Sink
from treepiece.jobs.sources import Chunk, Records, Source

_TYPES = {
    ColumnType.BOOL: pa.bool_(),
    ColumnType.INT: pa.int64(),
    ColumnType.FLOAT: pa.float64(),
    ColumnType.TEXT: pa.string(),
}
_TEXTS = ("string", "large_string", "string_view")
_GROUP_ROWS = 100_000
_GROUP_BYTES = 1 << 26
"""The largest row group of the output: few groups are faster to read, small ones need less memory."""


class ParquetSource(Source):
    """The rows of a Parquet file. A chunk stays within one row group."""

    def __init__(self, path: Path, column: str | None) -> None:
        super().__init__(path, column)
        with _readable_table(path):
            self.file = pq.ParquetFile(path)
        self.schema: pa.Schema = self.file.schema_arrow
        self.names = self.schema.names
        check_names(self.names, str(path))
        self.column = choose_column(self.names, self.wanted, str(path))
        kind = self.schema.field(self.column).type
        if str(kind.value_type if pa.types.is_dictionary(kind) else kind) not in _TEXTS:
            raise OptionError(
                f"{path}: the column {self.column!r} holds {kind}, expected texts: name one with --column"
            )
        self._cursor = _Cursor(self.file, -1)

    def chunks(self, rows: int) -> Iterator[Chunk]:
        """Yield the chunks of the file: `place` is the row group, `size` the number of its rows that come before."""
        first = 0
        for group in range(self.file.num_row_groups):
            n_rows = self.file.metadata.row_group(group).num_rows
            for skipped in range(0, n_rows, rows):
                yield Chunk(first + skipped, min(rows, n_rows - skipped), group, skipped)
            first += n_rows

    def read(self, chunk: Chunk) -> Records:
        """Return the rows of a chunk; reading chunks in order is fastest."""
        with _readable_table(self.path):
            if self._cursor.group != chunk.place or self._cursor.row > chunk.size:
                self._cursor = _Cursor(self.file, chunk.place)
            self._cursor.take(chunk.size - self._cursor.row)
            table = self._cursor.take(chunk.rows)
        return TableRecords(table, self.column)

    def where(self, row: int) -> str:
        """Return the number of a row, counted from 1."""
        return f"row {row + 1}"


class _Cursor:
    """Reads a row group from its start."""

    def __init__(self, file: pq.ParquetFile, group: int) -> None:
        self.group = group
        self.row = 0
        self._schema = file.schema_arrow
        self._batches = file.iter_batches(batch_size=1000, row_groups=[group]) if group >= 0 else iter(())
        self._ahead: list[pa.RecordBatch] = []

    def take(self, rows: int) -> pa.Table:
        """Return the next rows."""
        taken = []
        while rows:
            batch = self._ahead.pop() if self._ahead else next(self._batches, None)
            if batch is None:
                raise pa.ArrowInvalid("it has fewer rows than it says")
            taken.append(batch.slice(0, rows))
            if batch.num_rows > rows:
                self._ahead.append(batch.slice(rows))
            rows -= taken[-1].num_rows
            self.row += taken[-1].num_rows
        return pa.Table.from_batches(taken, self._schema)


class TableRecords(Records):
    """Rows that keep the types of their columns."""

    def __init__(self, table: pa.Table, column: str) -> None:
        self.table = table
        super().__init__([_text(value) for value in _bytes(table[column])], [])

    @property
    def rows(self) -> Sequence[dict[str, Any]]:
        """The values of each row, as JSON can hold them."""
        columns = [[_plain(value) for value in _values(column)] for column in self.table.columns]
        return [dict(zip(self.table.column_names, values, strict=True)) for values in zip(*columns, strict=True)]


def _bytes(column: pa.ChunkedArray) -> list[bytes | None]:
    """Return texts as bytes: Arrow does not check that they are UTF-8."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values: list[bytes | None] = column.cast(pa.large_binary()).to_pylist()
    return values


def _text(value: bytes | None) -> str | DataError:
    if value is None:
        return DataError("expected a text, got null")
    try:
        return value.decode()
    except UnicodeDecodeError as error:
        return DataError(f"byte {error.start + 1} is not UTF-8, got {value[:40]!r}")


def _values(column: pa.ChunkedArray) -> list[Any]:
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        return [value if value is None else value.decode(errors="replace") for value in _bytes(column)]
    return values


def _plain(value: object) -> object:
    """Return a value of a table converted to JSON's types."""
    match value:
        case float():
            return finite(value)
        case bytes():
            return base64.b64encode(value).decode()
        case datetime.date() | datetime.time():
            return value.isoformat()
        case datetime.timedelta() | Decimal():
            return str(value)
        case dict():
            return {str(name): _plain(one) for name, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
    return value if value is None or isinstance(value, bool | int | str) else str(value)


class ParquetSink(Sink):
    """Parquet; a part is an Arrow stream, whose rows are merged into larger groups at the end.

    The columns of a Parquet input keep their types.
    """

    def __init__(self, source: Source, columns: Mapping[str, ColumnType]) -> None:
        self.columns = output_columns(columns)
        self.schema = pa.schema([(encodable(name), _TYPES[kind]) for name, kind in self.columns.items()])
        if isinstance(source, ParquetSource):
            kept = [field for field in source.schema if field.name not in PREDICTED]
            self.schema = pa.schema([*kept, *map(self.schema.field, PREDICTED)], source.schema.metadata)

    def encode(self, records: Records, predictions: Sequence[Prediction]) -> bytes:
        """Return rows and their predictions as a part."""
        arrays = []
        for (name, kind), type_ in zip(self.columns.items(), self.schema.types, strict=True):
            if isinstance(records, TableRecords) and name not in PREDICTED:
                arrays.append(records.table[name])
            else:
                rows = predictions if name in PREDICTED else records.rows
                arrays.append(pa.array([as_type(row.get(name), kind) for row in rows], type_))
        data = io.BytesIO()
        with pa.ipc.new_stream(data, self.schema) as stream:
            stream.write_table(pa.Table.from_arrays(arrays, schema=self.schema))
        return data.getvalue()

    def join(self, parts: Iterable[Path], file: BinaryIO) -> None:
        """Write the parts to one file."""
        with pq.ParquetWriter(file, self.schema) as writer:
            for group in _groups(parts):
                writer.write_table(pa.concat_tables(group))


def _groups(parts: Iterable[Path]) -> Iterator[list[pa.Table]]:
    """Yield the rows of parts in groups that are large, but fit in memory."""
    group: list[pa.Table] = []
    rows = size = 0
    for path in parts:
        with pa.ipc.open_stream(path.read_bytes()) as stream:
            table = stream.read_all()
        if group and (rows + table.num_rows > _GROUP_ROWS or size + table.nbytes > _GROUP_BYTES):
            yield group
            group, rows, size = [], 0, 0
        group.append(table)
        rows, size = rows + table.num_rows, size + table.nbytes
    if group:
        yield group


@contextmanager
def _readable_table(path: Path) -> Iterator[None]:
    try:
        with readable(path):
            yield
    except pa.ArrowException as error:
        reason = " ".join(str(error).split())
        raise DataError(f"{path}: not a readable Parquet file: {reason:.200}") from None
