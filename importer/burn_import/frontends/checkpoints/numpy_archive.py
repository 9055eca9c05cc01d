"""NumPy archives (``.npz``): arrays by name, read one by one, without objects."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import IO, Any

import numpy as np

from burn.dtypes import DType
from burn.record.errors import shown
from burn_import.frontends.checkpoints.limits import Limits
from burn_import.frontends.checkpoints.numpy_globals import CODES
from burn_ir import InvalidModel, ModelError, UnreadableFile, UnsupportedModel
from burn_ir.types import Array

_SUFFIX = ".npy"
#: Errors of zipfile and NumPy about damaged, truncated and encrypted archives.
_DAMAGES = (zipfile.BadZipFile, zlib.error, ValueError, EOFError, RuntimeError)
_HEADERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


@dataclass(frozen=True, eq=False, slots=True)
class ArchivedArray:
    """An array of an archive, which is read when its values are."""

    path: Path
    name: str
    dtype: DType
    shape: tuple[int, ...]
    quantization: None = None

    def array(self) -> Array:
        try:
            with np.load(self.path, allow_pickle=False) as archive:
                values = archive[f"{self.name}{_SUFFIX}"]
        except _DAMAGES as error:
            raise InvalidModel(f"array {shown(self.name)}: {error}") from error
        array: Array = values.astype(self.dtype, copy=False)
        array.flags.writeable = False
        return array


def read_arrays(
    path: Path, limits: Limits
) -> tuple[Mapping[str, ArchivedArray], Mapping[str, str]]:
    """Return the arrays of an archive by name, and why others are not read.

    Raises:
        UnreadableFile: the archive is damaged.
        UnsupportedModel: an array is larger than ``limits`` allow for compressed data.
    """
    arrays: dict[str, ArchivedArray] = {}
    skipped: dict[str, str] = {}
    try:
        with zipfile.ZipFile(path) as archive:
            for member in archive.infolist():
                name = member.filename.removesuffix(_SUFFIX)
                if name == member.filename:
                    skipped[name] = "a file that is no array"
                    continue
                _check_size(name, member, limits)
                with archive.open(member) as file:
                    array = _described(path, name, file, member.file_size)
                if isinstance(array, str):
                    skipped[name] = array
                else:
                    arrays[name] = array
    except ModelError:
        raise
    except _DAMAGES as error:
        raise UnreadableFile(f"expected an archive of NumPy: {error}") from error
    return arrays, skipped


def _check_size(name: str, member: zipfile.ZipInfo, limits: Limits) -> None:
    is_stored = member.compress_type == zipfile.ZIP_STORED
    if not is_stored and member.file_size > limits.pickle:
        raise UnsupportedModel(
            f"array {shown(name)}: {member.file_size} bytes are compressed, more than "
            f"{limits.pickle}"
        )


def _described(
    path: Path, name: str, file: IO[bytes], size: int
) -> ArchivedArray | str:
    """Return the array that a header describes, or why it is not read.

    Raises:
        ValueError: the header is damaged, or the data do not have its size.
    """
    version = np.lib.format.read_magic(file)
    if version not in _HEADERS:
        return "an array of a structured dtype"
    header: Any = _HEADERS[version](file)
    shape, _, dtype = header
    if f"{dtype.kind}{dtype.itemsize}" not in CODES:
        return f"an array of NumPy of dtype {shown(dtype.str)}"
    expected, got = prod(shape) * dtype.itemsize, size - file.tell()
    if expected != got:
        raise ValueError(
            f"array {shown(name)} of shape {list(shape)}: expected {expected} bytes, "
            f"got {got}"
        )
    return ArchivedArray(path, name, dtype.newbyteorder("="), tuple(shape))
