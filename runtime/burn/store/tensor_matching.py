"""Matching of stored tensors and boxes; nothing is set before all are checked."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from burn.box import Box
from burn.dtypes import DType, name_of
from burn.record import RecordError
from burn.record.dtypes import recorded
from burn.record.precision import are_alike, converted
from burn.store.report import Report, Row, Status
from burn.store.tensors import InMemory, StoredTensor, is_changeable, laid_out
from burn.tensor import Tensor, from_numpy


def type_text(dtype: DType, shape: tuple[int, ...]) -> str:
    """Return a description such as ``float32[3, 4]``."""
    return f"{name_of(dtype)}{list(shape)}"


@dataclass
class Fit:
    """The rows of a report, and the values to be set."""

    rows: list[Row] = field(default_factory=list)
    values: dict[Box, Tensor] = field(default_factory=dict)

    @property
    def report(self) -> Report:
        """Return the report of the match."""
        return Report(tuple(self.rows))

    def apply(self) -> None:
        """Set the boxes.

        Values are moved to the boxes' devices first: if that fails, or one of them does
        not fit, no box has changed.
        """
        ready = [(box, box.fitted(value)) for box, value in self.values.items()]
        for box, value in ready:
            box.set(value)


def fit(
    boxes: Mapping[str, Box],
    offered: Mapping[str, StoredTensor],
    *,
    selected: Callable[[str], bool] = lambda key: True,
    convert: bool = False,
) -> Fit:
    """Match tensors ``offered`` by key with ``boxes``, and report every problem.

    A tied box is listed under each of its keys, and any of them sets it. Keys that are
    not ``selected`` are skipped on both sides. ``convert`` allows other dtypes of the
    same kind. PyTorch's ``num_batches_tracked``, which no result depends on, is skipped
    if no box has the name. A box that is not ``persistent`` keeps its value, if it has
    one, when its key is not offered.
    """
    result = Fit()
    first: dict[Box, str] = {}
    for key, tensor in offered.items():
        if not selected(key):
            result.rows.append(Row("skipped", key, "not selected"))
        elif key not in boxes:
            result.rows.append(_stranger(key, tensor, boxes))
        else:
            _place(result, first, key, boxes[key], tensor, convert)
    tried = {boxes[key] for key in offered if key in boxes and selected(key)}
    for key, box in boxes.items():
        if key in offered:
            continue
        detail = type_text(box.dtype, box.shape)
        if box in first:
            result.rows.append(Row("applied", key, f"{detail}, tied to {first[box]}"))
        elif not selected(key):
            result.rows.append(Row("skipped", key, "not selected"))
        elif not box.persistent and box.is_set:
            result.rows.append(Row("skipped", key, "not persistent: keeps its value"))
        elif box not in tried:
            result.rows.append(Row("missing", key, detail))
    return result


def _stranger(key: str, tensor: StoredTensor, boxes: Mapping[str, Box]) -> Row:
    norm, _, leaf = key.rpartition("num_batches_tracked")
    if not leaf and f"{norm}running_mean" in boxes:
        return Row("skipped", key, "a count that no result depends on")
    return Row("unexpected", key, type_text(tensor.dtype, tensor.shape))


def _place(
    result: Fit,
    first: dict[Box, str],
    key: str,
    box: Box,
    tensor: StoredTensor,
    convert: bool,
) -> None:
    """Add a row for ``key``, and its value if it fits and is the first for its box."""
    got = type_text(tensor.dtype, tensor.shape)
    wrong = _mismatch(box, tensor, convert)
    if wrong is not None:
        expected = type_text(box.dtype, box.shape)
        result.rows.append(Row(wrong, key, f"expected {expected}, got {got}"))
        return
    try:
        value = _value(box, tensor)
    except _UnrepresentableValues as error:
        result.rows.append(Row("wrong dtype", key, f"{got}: {error}"))
        return
    first_key = first.setdefault(box, key)
    if first_key == key:
        result.values[box] = value
    elif not _is_same(result.values[box], value):
        detail = f"expected the value of {first_key}, which it is"
        result.rows.append(Row("clash", key, detail))
        return
    more = f" from {name_of(tensor.dtype)}" if tensor.dtype != box.dtype else ""
    tied = f", tied to {first_key}" if first_key != key else ""
    detail = f"{type_text(box.dtype, box.shape)}{more}{tied}"
    result.rows.append(Row("applied", key, detail))


def _mismatch(box: Box, tensor: StoredTensor, convert: bool) -> Status | None:
    if tuple(tensor.shape) != box.shape:
        return "mis-shaped"
    # A record stores smaller types as bytes.
    if tensor.dtype in (box.dtype, recorded(box.dtype)):
        return None
    alike = convert and are_alike(tensor.dtype, box.dtype)
    return None if alike else "wrong dtype"


class _UnrepresentableValues(ValueError):  # noqa: N818  names the values
    """Values that the dtype of a box cannot represent."""


def _value(box: Box, tensor: StoredTensor) -> Tensor:
    if isinstance(tensor, InMemory) and isinstance(tensor.values, Tensor):
        return tensor.values.cast(box.dtype)
    array = tensor.array()
    try:
        values = laid_out(converted(array, box.dtype))
    except RecordError as error:
        raise _UnrepresentableValues(str(error)) from error
    if np.may_share_memory(values, array) and is_changeable(array):
        values = values.copy()
    return from_numpy(values)


def _is_same(a: Tensor, b: Tensor) -> bool:
    """Return whether two tensors are bitwise equal."""
    return a.numpy().tobytes() == b.numpy().tobytes()
