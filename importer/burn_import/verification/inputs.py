"""Inputs for verification: from a file, or random ones of the declared types."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np

from burn import dtypes
from burn.dtypes import DType
from burn_import.verification.errors import InputsError, check_sizes
from burn_ir.dim import Dim

#: Default size of a named dimension.
EXTENT = 2
_TENSOR = re.compile(r"(\w+)\[([^\[\]]*)\]")


def random_inputs(
    types: Mapping[str, tuple[DType, Sequence[Dim | str]]],
    sizes: Mapping[str, int] | None = None,
    seed: int = 0,
) -> dict[str, Any]:
    """Return an array for each input: normal floats, and integers 0 or 1.

    Integers of an attention mask are 1: where a row attends to nothing, scores vanish
    beside the lowest float, and rounding decides the derivatives.

    Dimensions with one name have one size, which ``sizes`` may set.

    Raises:
        InputsError: ``sizes`` names a dimension that does not exist.
    """
    check_sizes(sizes or {}, types)
    random = np.random.default_rng(seed)
    arrays = {}
    for name, (dtype, shape) in types.items():
        extents = [
            n if isinstance(n, int) else _size(str(n), sizes or {}) for n in shape
        ]
        array = _random(random, dtype, extents)
        is_mask = name.endswith("attention_mask") and array.dtype.kind in "iu"
        arrays[name] = np.ones_like(array) if is_mask else array
    return arrays


def _size(extent: str, sizes: Mapping[str, int]) -> int:
    """Return the size of a named dimension or of a multiple (``4 * height``)."""
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
    """Return the arrays of a ``.npz`` file by input, without the prefix ``in:``.

    Raises:
        InputsError: it cannot be read, or lacks an input.
    """
    arrays = _loaded(path)
    missing = [name for name in names if name not in arrays]
    if missing:
        raise InputsError(
            f"{path}: expected an array {missing[0]!r}, got {sorted(arrays)}",
            f"Write it with numpy.savez({path.name!r}, {missing[0]}=...).",
        )
    return {name: arrays[name] for name in names}


def _loaded(path: Path) -> dict[str, Any]:
    if not path.exists():
        from burn_import.foreign import missing_remedy

        problem = f"{path}: expected a .npz file of arrays, there is no such file"
        raise InputsError(problem, missing_remedy(path))
    hint = "Write one with numpy.savez('inputs.npz', NAME=ARRAY, ...)."
    try:
        loaded = np.load(path)
        if isinstance(loaded, np.ndarray):
            raise InputsError(f"{path}: expected a .npz file, got one array", hint)
        with loaded as data:
            return {key.removeprefix("in:"): data[key] for key in data}
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        if isinstance(error, InputsError):
            raise
        raise InputsError(f"{path}: expected a .npz file of arrays", hint) from error


def check_arrays(
    arrays: Mapping[str, Any], types: Mapping[str, tuple[DType, Sequence[Dim | str]]]
) -> None:
    """Check that arrays have the dtypes and dimensions of a model's inputs.

    Raises:
        InputsError: some do not; a line for each.
    """
    lines = []
    for name, (dtype, shape) in types.items():
        array = np.asarray(arrays[name])
        is_text = dtype == dtypes.string
        fits = array.dtype.kind in "OUST" if is_text else array.dtype == dtype
        pairs = zip(array.shape, shape, strict=False)
        fits &= array.ndim == len(shape) or not shape  # the rank is unspecified
        if not fits or any(isinstance(n, int) and n != got for got, n in pairs):
            wanted = f"{dtypes.name_of(dtype)}[{', '.join(map(str, shape))}]"
            got = f"{array.dtype}{list(array.shape)}"
            lines.append(f"input {name!r}: expected {wanted}, got {got}")
    if lines:
        raise InputsError("\n".join(lines))
