"""Samples to calibrate and to compare with: arrays of files, or random ones."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from burn.dtypes import DType
from burn_import.verification.errors import InputsError
from burn_import.verification.inputs import check_arrays, random_inputs, stored_inputs
from burn_ir.dim import Dim

#: Arrays by input.
Sample: TypeAlias = dict[str, Any]
#: The dtype and the extents of each input.
Types: TypeAlias = Mapping[str, tuple[DType, Sequence[Dim | str]]]
#: How much of a first extent that may be any number goes into one sample.
BATCH = 32


def stored_samples(files: Sequence[Path], types: Types) -> list[Sample]:
    """Return the samples in ``.npz`` files, which hold an array for each input.

    Where all arrays have more along the first axis than the model takes, they are
    divided: a fixed extent gives its size, any other one ``BATCH``.

    Raises:
        InputsError: a file cannot be read, or its arrays do not fit the inputs.
    """
    samples: list[Sample] = []
    for file in files:
        arrays = stored_inputs(file, list(types))
        for sample in _divided(arrays, types):
            check_arrays(sample, types)
            samples.append(sample)
    return samples


def random_samples(
    types: Types, count: int, sizes: Mapping[str, int], seed: int
) -> list[Sample]:
    """Return ``count`` samples of normal floats and of integers that are 0 or 1.

    ``sizes`` are those of named extents.

    Raises:
        InputsError: ``sizes`` has a name that no extent has.
    """
    return [random_inputs(types, sizes, seed + number) for number in range(count)]


def _divided(arrays: Sample, types: Types) -> Iterator[Sample]:
    """Yield the parts of arrays along their first axis, or the arrays themselves."""
    sizes = {np.shape(array)[:1] for array in arrays.values()}
    firsts = {tuple(shape[:1]) for _, shape in types.values()}
    size = next(iter(sizes)) if len(sizes) == 1 else ()
    first = next(iter(firsts)) if len(firsts) == 1 else ()
    if not size or not first:
        yield arrays
        return
    extent = first[0]
    step = extent if isinstance(extent, int) and extent > 0 else BATCH
    for start in range(0, size[0], step):
        yield {name: array[start : start + step] for name, array in arrays.items()}


def check_samples(samples: Sequence[Sample]) -> None:
    """Check that there is a sample, and every float in it is finite.

    Raises:
        InputsError: a range cannot be taken from them.
    """
    if not samples:
        raise InputsError("expected at least one sample, got none")
    for sample in samples:
        for name, array in sample.items():
            if array.dtype.kind == "f" and not np.isfinite(array).all():
                raise InputsError(f"input {name!r}: expected finite numbers")
