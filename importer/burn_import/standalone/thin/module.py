"""Modules of standalone files: their state comes from a record."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np

from burn.dtypes import name_of
from burn.nn.record_checks import missing_record, record_of
from burn.record.dtypes import recorded
from burn.record.errors import RecordError
from burn_import.standalone.thin.backend import Backend
from burn_import.standalone.thin.box import Box
from burn_import.standalone.thin.records import read_record
from burn_import.standalone.thin.tensor import Tensor


class WeightsError(ValueError):
    """Arrays do not fit a module; the message lists every key that differs."""


class Module:
    """A part of a model. Fields that are boxes or modules make up its state."""

    def __init__(self) -> None:
        """Do nothing; subclasses may call it."""

    #: The record of the model, which ``load`` reads: its path, or its bytes.
    WEIGHTS: ClassVar[str | Path | bytes]

    @classmethod
    def load(
        cls,
        weights: str | Path | bytes | None = None,
        backend: Backend | None = None,
        *,
        verify: bool = False,
    ) -> Self:
        """The model with its trained weights, as ``load_weights`` reads them."""
        return cls().load_weights(weights, backend, verify=verify)

    def load_weights(
        self,
        weights: str | Path | bytes | None = None,
        backend: Backend | None = None,
        *,
        verify: bool = False,
    ) -> Self:
        """This module with the weights of a safetensors record: a file, or its bytes.

        If None, they are those of the class (``WEIGHTS``). With ``verify`` it has to be
        the record that the module was written with: the header of its source has the
        SHA-256.

        Raises:
            RecordError: the record is damaged or, with ``verify``, of another digest.
            WeightsError: the record does not fit this module.
            FileNotFoundError: there is none.
            TypeError: ``weights`` is neither, or ``backend`` is given: there is none.
        """
        if backend is not None:
            raise TypeError(f"expected no backend, got {backend}: there is NumPy alone")
        weights = record_of(type(self), weights)
        data = _contents(type(self), weights)
        if verify:
            _check_digest(data)
        try:
            return self.load_state_dict(read_record(data))
        except RecordError as error:
            shown = weights if isinstance(weights, str | Path) else "the bytes"
            raise RecordError(f"{shown}: {error}") from None

    def load_state_dict(self, state: Mapping[str, Any]) -> Self:
        """This module with its boxes set from arrays by path, which are not copied.

        Raises:
            WeightsError: keys are missing or unexpected, or a shape or dtype differs;
                all of them are listed and nothing is set.
        """
        boxes: dict[str, Box] = dict(self.boxes())  # type: ignore[attr-defined]
        arrays = {key: np.asarray(value) for key, value in state.items()}
        kinds = {key: _kind(array) for key, array in arrays.items()}
        loaded = {boxes[key] for key in arrays if key in boxes}
        problems = [
            *(
                f"missing {key}: {_kind(b)}"
                for key, b in boxes.items()
                if b not in loaded
            ),
            *(f"unexpected {key}" for key in arrays if key not in boxes),
            *(
                f"{key}: expected {_kind(boxes[key])}, got {kinds[key]}"
                for key, array in arrays.items()
                if key in boxes and not _fits(array, boxes[key])
            ),
        ]
        if problems:
            raise WeightsError("\n".join(problems))
        for key, array in arrays.items():
            boxes[key].set(Tensor(array.astype(boxes[key].dtype, copy=False)))
        return self


def _contents(cls: type, weights: object) -> bytes:
    """The bytes of a record, or of the file at a path.

    Raises:
        FileNotFoundError: there is no such file.
        RecordError: it is a folder.
        TypeError: it is neither bytes nor a path.
    """
    if isinstance(weights, bytes | bytearray | memoryview):
        return weights if isinstance(weights, bytes) else bytes(weights)
    name = cls.__name__
    if not isinstance(weights, str | Path):
        kind = type(weights).__name__
        raise TypeError(f"{name}: expected a path or the bytes of a record, got {kind}")
    if Path(weights).is_dir():
        raise RecordError(f"{weights}: expected the record of {name}, got a folder")
    try:
        return Path(weights).read_bytes()
    except FileNotFoundError as error:
        raise missing_record(cls, error) from None


def _check_digest(data: bytes) -> None:
    """Check that ``data`` is the record that the header of this file names.

    Raises:
        RecordError: it is another.
    """
    with Path(__file__).open(encoding="ascii") as file:
        header = file.read(500)
    expected = re.search("# record sha256 ([0-9a-f]{64})", header)
    actual = hashlib.sha256(data).hexdigest()
    if expected is None or expected[1] != actual:
        name = "none" if expected is None else expected[1]
        raise RecordError(f"expected the record of SHA-256 {name}, got {actual}")


def _kind(value: Any) -> str:
    return f"{name_of(value.dtype)}{list(value.shape)}"


def _fits(array: np.ndarray[Any, Any], box: Box) -> bool:
    """Return whether an array has the shape of a box, and its dtype in a record."""
    dtypes = (box.dtype, recorded(box.dtype))
    return array.shape == box.shape and array.dtype in dtypes
