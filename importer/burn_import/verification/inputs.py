"""Inputs to verify a model with: from a file, or random ones of the declared types."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn_ir.dim import Dim

#: The size of a named extent where none is given.
EXTENT = 2
_TENSOR = re.compile(r"(\w+)\[([^\[\]]*)\]")


class InputsError(ValueError):
    """Inputs that do not fit the model, or that cannot be drawn at random."""


def random_inputs(
    types: Mapping[str, tuple[DType, Sequence[Dim | str]]],
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return an array for each input: normal floats, and integers that are 0 or 1.

    Extents of one name have one size, which ``sizes`` may give.
    """
    random = np.random.default_rng(seed)
    arrays = {}
    for name, (dtype, shape) in types.items():
        extents = [
            n if isinstance(n, int) else _size(str(n), sizes or {}) for n in shape
        ]
        arrays[name] = _random(random, dtype, extents)
    return arrays


def _size(extent: str, sizes: Mapping[str, int]) -> int:
    """Return the size of a named extent, or of a multiple of one (``4 * height``)."""
    factor, _, name = extent.rpartition(" * ")
    if extent not in sizes and factor.isdecimal():
        return int(factor) * sizes.get(name, EXTENT)
    return sizes.get(extent, EXTENT)


def _random(random: np.random.Generator, dtype: DType, shape: list[int]) -> Any:
    if dtypes.is_float(dtype):
        return random.standard_normal(shape).astype(dtype)
    if dtype == dtypes.string:
        return np.full(shape, "text", object)
    return random.integers(0, 2, shape).astype(dtype)


def declared_types(model: Any) -> dict[str, tuple[DType, list[Dim | str]]]:
    """Return the types of a module's inputs, as ``nn.check_inputs`` declares them.

    Raises:
        InputsError: there is no declaration, or one that is no tensor.
    """
    texts = getattr(type(model).__call__, "input_types", None)
    if texts is None:
        raise InputsError("the module declares no inputs; pass --inputs FILE.npz")
    return {
        name: _parsed(name, text) for name, text in texts.items() if "None" not in text
    }


def _parsed(name: str, text: str) -> tuple[DType, list[Dim | str]]:
    match = _TENSOR.fullmatch(text)
    if match is None or "..." in text:
        raise InputsError(f"input {name!r} is {text}; pass --inputs FILE.npz")
    kinds = {dtypes.name_of(d): d for d in (*dtypes.FLOATS, *dtypes.SIGNED)}
    kinds |= {dtypes.name_of(d): d for d in dtypes.UNSIGNED}
    kinds |= {"bool": dtypes.bool_, "string": dtypes.string}
    shape = [int(n) if n.isdigit() else n for n in re.split(r",\s*", match[2]) if n]
    return kinds[match[1]], shape


def stored_inputs(path: Path, names: Sequence[str]) -> dict[str, Any]:
    """Return the arrays of a ``.npz`` file by input; a prefix ``in:`` is left out.

    Raises:
        InputsError: it cannot be read, or lacks an input.
    """
    try:
        with np.load(path) as data:
            arrays = {key.removeprefix("in:"): data[key] for key in data}
    except (OSError, ValueError) as error:
        raise InputsError(f"{path}: expected a .npz file of arrays: {error}") from error
    missing = [name for name in names if name not in arrays]
    if missing:
        raise InputsError(f"{path}: no array {missing[0]!r} among {sorted(arrays)}")
    return {name: arrays[name] for name in names}
