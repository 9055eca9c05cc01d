"""Comparing types and values."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn import dtypes
from burn_ir import Type
from burn_ir.containers import OptionalType, SequenceType, kind_of
from burn_ir.dim import Dim, bind, symbols as symbols_of
from burn_ir.types import is_unnamed
from tests.strategies.registry import Example

#: Digits that a half type has to offer.
COARSE = {dtypes.float16: 2e-3, dtypes.bfloat16: 2e-2}


def assert_close(got: Sequence[Any], expected: Sequence[Any], example: Example) -> None:
    """Fail unless dtypes, shapes and values agree; floats within a tolerance."""
    assert len(got) == len(expected)
    for y, z in zip(got, expected, strict=True):
        if z is None or isinstance(z, list):
            assert type(y) is type(z)
            assert_close(y or [], z or [], example)
            continue
        assert (y.dtype, y.shape) == (z.dtype, z.shape)
        if not dtypes.is_float(y.dtype) and not dtypes.is_complex(y.dtype):
            np.testing.assert_array_equal(y, z)
            continue
        rtol = max(example.rtol, COARSE.get(y.dtype, 0.0))
        wide = np.complex128 if dtypes.is_complex(y.dtype) else np.float64
        np.testing.assert_allclose(
            y.astype(wide), z.astype(wide), rtol=rtol, atol=max(example.atol, rtol / 10)
        )


def assert_same(got: Sequence[Any], expected: Sequence[Any]) -> None:
    """Fail unless dtypes, shapes and values agree to the bit."""
    for y, z in zip(got, expected, strict=True):
        if z is None or isinstance(z, list):
            assert type(y) is type(z)
            assert_same(y or [], z or [])
            continue
        assert (y.dtype, y.shape) == (z.dtype, z.shape)
        if y.dtype in dtypes.HALVES:  # whose NaN NumPy does not know
            y, z = y.astype(np.float32), z.astype(np.float32)
        np.testing.assert_array_equal(y, z)


def assert_type(
    inferred: Any, array: Any, symbols: dict[str, int], hides_rank: bool
) -> None:
    """Fail unless ``array`` is of the inferred type; symbols stand for their values.

    A symbol that no input carries takes the extent where it is first met; items of
    one list may differ in it.
    """
    if kind_of(inferred) != "tensor":
        for item in inside(inferred, array):
            assert_type(inferred.element, item, dict(symbols), hides_rank)
        return
    assert inferred.dtype == array.dtype
    if inferred.shape is None:
        assert hides_rank, "expected a known rank"
        return
    assert len(inferred.shape) == array.ndim, inferred.name
    for dim, extent in zip(inferred.shape, array.shape, strict=True):
        if extent == 0 and array.shape[0] == 0 and not isinstance(dim, int):
            continue  # rows of a loop without iterations have unknown extents
        if is_unnamed(dim):
            if str(dim).startswith("?"):
                symbols.setdefault(str(dim), extent)
            if any(str(s) not in symbols for s in _unnamed(dim)):
                continue
        assert bind(dim, symbols) == extent, f"{inferred.name} of {array.shape}"
    if inferred.known is not None:
        items = [bind(item, symbols) for item in inferred.known.ravel().tolist()]
        np.testing.assert_array_equal(
            np.array(items, array.dtype).reshape(array.shape), array
        )


def inside(inferred: Type, value: Any) -> list[Any]:
    """Return the content of a list or optional value; fail for other types."""
    if isinstance(inferred, OptionalType):
        return [] if value is None else [value]
    assert isinstance(inferred, SequenceType) and isinstance(value, list)
    return value


def _unnamed(dim: Dim) -> list[str]:
    return [name for name in symbols_of(dim) if name.startswith("?")]


def bound(names: Sequence[tuple[str | int, ...]], arrays: Sequence[Any]) -> Any:
    """The extent that each symbol stands for."""
    return {
        name: extent
        for axes, array in zip(names, arrays, strict=True)
        for name, extent in zip(axes, getattr(array, "shape", ()), strict=bool(axes))
        if isinstance(name, str)
    }
