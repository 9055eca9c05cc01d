"""Datasets of the rows of tables: CSV, Parquet, and Hugging Face's datasets."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from burn.data.dataset import Source

Row = dict[str, Any]


class Csv(Source[Row]):
    """The rows of a CSV file, as dicts with the column names of its first line.

    The file is read at once. A column of integers becomes int, one of other numbers
    float, any other str. Pass ``types`` to keep codes such as ``007``: ``str``.

    Args:
        path: the file, in UTF-8.
        types: parsers of fields by column, in place of detection.
        delimiter: the field separator.

    Raises:
        ValueError: the file is empty, names repeat, a row has more or fewer fields than
            the first line, or a field cannot be parsed.
    """

    def __init__(
        self,
        path: str | Path,
        types: Mapping[str, Callable[[str], Any]] | None = None,
        delimiter: str = ",",
    ) -> None:
        with open(path, newline="", encoding="utf-8-sig") as file:
            rows = csv.reader(file, delimiter=delimiter, strict=True)
            names = next(rows, [])
            if not names or len(set(names)) != len(names):
                raise ValueError(f"{path}: expected names that differ, got {names}")
            columns: list[list[str]] = [[] for _ in names]
            for row in filter(None, rows):
                if len(row) != len(names):
                    raise ValueError(
                        f"{path}, line {rows.line_num}: expected {len(names)} fields, "
                        f"got {len(row)}"
                    )
                for column, field in zip(columns, row, strict=True):
                    column.append(field)
        unknown = sorted((types or {}).keys() - set(names))
        if unknown:
            raise ValueError(f"{path}: expected columns of {names}, got {unknown}")
        #: Values by column.
        self.columns = {
            name: _converted(column, (types or {}).get(name), f"{path}: {name!r}")
            for name, column in zip(names, columns, strict=True)
        }
        self._length = len(columns[0])

    def __len__(self) -> int:
        return self._length

    def item(self, index: int) -> Row:
        return {name: column[index] for name, column in self.columns.items()}


def _converted(
    column: list[str], kind: Callable[[str], Any] | None, label: str
) -> list[Any]:
    if kind is None:
        kinds = (candidate for candidate in (int, float) if _is_all(candidate, column))
        kind = next(kinds, str)
    values = []
    for number, field in enumerate(column):
        try:
            values.append(kind(field))
        except ValueError as error:
            raise ValueError(f"{label}, row {number}: {error}") from error
    return values


def _is_all(kind: Callable[[str], Any], column: list[str]) -> bool:
    try:
        for field in column:
            kind(field)
    except ValueError:
        return False
    return bool(column)


class Parquet(Source[Row]):
    """The rows of a Parquet file, by column, read through pyarrow.

    The file stays in memory in Arrow's layout; lists of numbers become arrays. A worker
    reads it anew.

    Args:
        path: the file.
        columns: which columns, all by default.

    Raises:
        ImportError: pyarrow is not installed.
        ValueError: there is no such column.
    """

    def __init__(self, path: str | Path, columns: Sequence[str] | None = None) -> None:
        self.path = Path(path)
        self._wanted = columns
        self._open()

    def _open(self) -> None:
        parquet = _pyarrow()
        names = parquet.read_schema(self.path).names
        missing = [name for name in self._wanted or () if name not in names]
        if missing:
            raise ValueError(f"{self.path}: no column {missing[0]!r}, only {names}")
        table = parquet.read_table(self.path, columns=self._wanted, memory_map=True)
        self._table = table.combine_chunks()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def item(self, index: int) -> Row:
        columns = zip(self._table.column_names, self._table.columns, strict=True)
        return {name: _as_array(column[index].as_py()) for name, column in columns}

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path, "_wanted": self._wanted}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


def _pyarrow() -> Any:
    try:
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError(
            "Parquet needs pyarrow, which the extra installs: "
            "pip install 'burn-runtime[parquet]'"
        ) from error
    return parquet


class _RowDataset(Protocol):
    """The interface of ``datasets.Dataset`` that is used here."""

    @property
    def column_names(self) -> list[str]: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> dict[str, Any]: ...


class HuggingFace(Source[Any]):
    """The rows of a loaded ``datasets.Dataset``, as dicts by column.

    Images of Pillow and lists of numbers become arrays. With ``columns`` items are
    tuples of these columns: ``HuggingFace(mnist, ["image", "label"])``.

    Raises:
        TypeError: the object is not a map-style dataset, for example a streamed
            dataset or a ``DatasetDict``.
        ValueError: a column does not exist.
    """

    def __init__(
        self, dataset: _RowDataset, columns: Sequence[str] | None = None
    ) -> None:
        names = getattr(dataset, "column_names", None)
        if not isinstance(names, list) or not hasattr(dataset, "__len__"):
            raise TypeError(
                "expected a datasets.Dataset, one split and not streamed, "
                f"got {type(dataset).__name__}"
            )
        missing = [name for name in columns or () if name not in names]
        if missing:
            raise ValueError(f"no column {missing[0]!r}, only {names}")
        self.dataset, self.columns = dataset, columns

    def __len__(self) -> int:
        return len(self.dataset)

    def item(self, index: int) -> Any:
        row = self.dataset[index]
        if self.columns is None:
            return {name: _as_array(value) for name, value in row.items()}
        return tuple(_as_array(row[name]) for name in self.columns)


def _as_array(value: Any) -> Any:
    """Return array-like objects and lists of numbers as arrays, others unchanged."""
    if hasattr(value, "__array_interface__") and not isinstance(value, np.ndarray):
        return np.asarray(value)
    if isinstance(value, list) and _is_regular(value):
        array = np.array(value)
        return array if array.dtype.kind in "biufc" else value
    return value


def _is_regular(value: list[Any]) -> bool:
    """Return whether nested lists are an array: equal lengths at each level."""
    if not any(isinstance(item, list) for item in value):
        return bool(value)
    if not all(isinstance(item, list) for item in value):
        return False
    return len({len(item) for item in value}) == 1 and all(map(_is_regular, value))
