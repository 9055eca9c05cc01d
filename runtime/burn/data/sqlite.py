"""Datasets of the rows of SQLite tables."""

from __future__ import annotations

import io
import sqlite3
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burn.data.dataset import Dataset, Source
from burn.tensor import Tensor

_NPY = b"\x93NUMPY"


class Sqlite(Source[dict[str, Any]]):
    """The rows of a table, in the order of their rowids, as dicts by column.

    Values have the types of SQLite: int, float, str, bytes or None. Arrays that
    :func:`write_sqlite` wrote are arrays again. The file is opened for reading only; a
    worker opens it anew.

    Args:
        path: the file.
        table: which table, without need of quotes.
        columns: which columns, all by default.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: there is no such table or column.
    """

    def __init__(
        self,
        path: str | Path,
        table: str = "items",
        columns: Sequence[str] | None = None,
    ) -> None:
        self.path, self.table = Path(path), table
        if not self.path.is_file():
            raise FileNotFoundError(f"{path}: no such SQLite file")
        self._open()
        self.columns = self._columns(columns)
        names = ", ".join(map(_quoted, self.columns))
        self._query = f"SELECT {names} FROM {_quoted(table)} WHERE rowid = ?"
        rows = self._connection.execute(
            f"SELECT rowid FROM {_quoted(table)} ORDER BY rowid"
        )
        self._rowids = np.array([row for (row,) in rows], np.int64)

    def _open(self) -> None:
        address = f"{self.path.absolute().as_uri()}?mode=ro"
        # Connections only read, so threads may share one.
        self._connection = sqlite3.connect(address, uri=True, check_same_thread=False)
        self.close = weakref.finalize(self, self._connection.close)

    def _columns(self, wanted: Sequence[str] | None) -> list[str]:
        rows = self._connection.execute(
            "SELECT name FROM pragma_table_info(?)", [self.table]
        )
        names = [name for (name,) in rows]
        if not names:
            tables = self._connection.execute("SELECT name FROM sqlite_master")
            raise ValueError(
                f"{self.path}: expected a table {self.table!r}, "
                f"got {sorted(name for (name,) in tables)}"
            )
        missing = [name for name in wanted or () if name not in names]
        if missing:
            raise ValueError(
                f"{self.path}: table {self.table!r} has no column {missing[0]!r}, "
                f"only {names}"
            )
        return list(wanted or names)

    def __len__(self) -> int:
        return len(self._rowids)

    def item(self, index: int) -> dict[str, Any]:
        row = self._connection.execute(self._query, [int(self._rowids[index])])
        values = row.fetchone()
        if values is None:
            raise ValueError(f"{self.path}: row {self._rowids[index]} was deleted")
        return dict(zip(self.columns, map(_decoded, values), strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in _OF_PROCESS}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


_OF_PROCESS = ("_connection", "close")


def write_sqlite(
    path: str | Path, dataset: Dataset[Mapping[str, Any]], table: str = "items"
) -> None:
    """Write items, dicts with the same keys, to a new table of ``path``.

    Values are int, float, bool, str, bytes, None, NumPy scalars, arrays and tensors.
    Arrays are stored in the ``.npy`` format.

    Raises:
        ValueError: there is no item, the table exists already, or keys differ.
        TypeError: a value is of another type.
    """
    if not len(dataset):
        raise ValueError("expected at least one item to write, got none")
    columns = list(dataset[0])
    connection = sqlite3.connect(path)
    try:
        with connection:
            connection.execute("BEGIN")  # so that a failure leaves no table
            if connection.execute(
                "SELECT 1 FROM sqlite_master WHERE name = ?", [table]
            ).fetchone():
                raise ValueError(f"{path}: table {table!r} exists already")
            names = ", ".join(map(_quoted, columns))
            connection.execute(f"CREATE TABLE {_quoted(table)} ({names})")
            marks = ", ".join("?" * len(columns))
            connection.executemany(
                f"INSERT INTO {_quoted(table)} VALUES ({marks})",
                (_row(dataset[i], columns, i) for i in range(len(dataset))),
            )
    finally:
        connection.close()


def _row(item: Mapping[str, Any], columns: list[str], index: int) -> list[Any]:
    if item.keys() != set(columns):
        raise ValueError(
            f"item {index}: expected keys {sorted(columns)}, got {sorted(item)}"
        )
    return [_encoded(item[name], f"item {index}: {name!r}") for name in columns]


def _encoded(value: Any, path: str) -> Any:
    if isinstance(value, Tensor):
        value = value.numpy()
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, np.ndarray):
        if value.dtype.hasobject:
            raise TypeError(f"{path}: expected numbers in an array, got {value.dtype}")
        file = io.BytesIO()
        np.save(file, value, allow_pickle=False)
        return file.getvalue()
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return value
    raise TypeError(
        f"{path}: expected a number, text, bytes or array, got {type(value).__name__}"
    )


def _decoded(value: Any) -> Any:
    if isinstance(value, bytes) and value.startswith(_NPY):
        return np.load(io.BytesIO(value), allow_pickle=False)
    return value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
