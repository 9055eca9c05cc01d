"""Dynamic quantization and products of its integers are kernels with eager bits."""

import platform
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.blas.integers import (
    multiply_integers,
    round_to_bytes,
    write_extremes,
    write_scale,
)
from burn.backend.cpu.jit.entries import GENERATED
from burn.backend.cpu.jit.integers.products import (
    IntegerProduct,
    product_kernel,
    scratch_floats,
)
from burn.backend.cpu.jit.integers.quantization import (
    LANES,
    PARTS,
    extremes_kernel,
    rounding_kernel,
    scale_kernel,
)
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.policy import MEASURED
from burn.backend.cpu.onednn.binding import engine
from burn.dtypes import int8, uint8
from tests.runtime.onednn import normal
from tests.runtime.plan.precision.test_dynamic_layers import inputs, layer
from tests.sampling import example_count

pytest.importorskip("llvmlite")
has_kernels = platform.machine() in MEASURED and engine.no_gain("int8") is not None


def integers(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    """Return random integers of all values of a dtype."""
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


@settings(max_examples=example_count(80), deadline=None)
@given(
    rows=st.sampled_from([1, 2, 5, 7, 13, 100, 200]),
    depth=st.sampled_from([1, 2, 15, 16, 33, 64, 769, 1540]),
    outputs=st.sampled_from([1, 7, 16, 33, 70]),
    floats=st.sampled_from([4, 8, 16]),
    threads=st.sampled_from([1, 3]),
    dtype=st.sampled_from([int8, uint8]),
    has_shift=st.booleans(),
    has_bias=st.booleans(),
)
def test_products(
    rows: int,
    depth: int,
    outputs: int,
    floats: int,
    threads: int,
    dtype: Any,
    has_shift: bool,
    has_bias: bool,
) -> None:
    guarded = np.full(rows * outputs + 1, np.nan, np.float32)
    operands = IntegerProduct(
        integers((rows, depth), dtype),
        integers((), dtype, seed=1).astype(np.int32),
        integers((outputs, depth), int8, seed=2),
        integers((1,), int8, seed=3).astype(np.int32) if has_shift else None,
        np.abs(normal(outputs, seed=4)) + np.float32(0.1),
        normal(outputs, seed=5) if has_bias else None,
        guarded[:-1].reshape(rows, outputs),
        np.empty(threads * scratch_floats(rows), np.float32),
    )
    expected = operands._replace(out=np.empty((rows, outputs), np.float32))
    multiply_integers(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine(), "floats", floats)
        kernel = product_kernel(operands)
    made = machine().call(kernel)
    for _ in range(2):
        made.call()
        np.testing.assert_array_equal(operands.out, expected.out)
        assert np.isnan(guarded[-1])


SPECIAL = (np.nan, np.inf, -np.inf, 1e38, -0.0, 0.5, 1.5, 2.5, -0.5, 300.0, -300.0)


@settings(max_examples=example_count(60), deadline=None)
@given(
    size=st.sampled_from([LANES, LANES + 1, 100, LANES * PARTS, 5000]),
    dtype=st.sampled_from([int8, uint8]),
    has_shift=st.booleans(),
    scale=st.sampled_from([1.0, 0.037, 1e-20, 1e20]),
)
def test_rounding(size: int, dtype: Any, has_shift: bool, scale: float) -> None:
    x = normal(size) * np.float32(50)
    x[: len(SPECIAL)] = SPECIAL
    shift = integers((), dtype, seed=2) if has_shift else None
    out, expected = np.full(size + 1, 7, dtype), np.empty(size, dtype)
    step = np.array(scale, np.float32)
    with np.errstate(all="ignore"):
        round_to_bytes(x, step, shift, expected)
    kernel = rounding_kernel(x, step, shift, out[:-1])
    assert kernel is not None
    made = machine().call(kernel)
    made.call()
    np.testing.assert_array_equal(out[:-1], expected)
    assert out[-1] == 7


@settings(max_examples=example_count(60), deadline=None)
@given(
    size=st.sampled_from([LANES, LANES + 1, 100, LANES * PARTS, 5000]),
    offset=st.sampled_from([0.0, 10.0, -10.0]),
    factor=st.sampled_from([0.0, 1.0, 1e-30, 1e37]),
    special=st.sampled_from([None, np.nan, np.inf, -np.inf]),
)
def test_ranges(size: int, offset: float, factor: float, special: float | None) -> None:
    x = (normal(size) + np.float32(offset)) * np.float32(factor)
    if special is not None:
        x[size // 2] = special
    results = []
    for is_kernel in (False, True):
        extremes = np.empty((min(PARTS, size // LANES), 2), np.float32)
        scale, shift = np.empty((), np.float32), np.empty((), np.uint8)
        with np.errstate(all="ignore"):
            write_extremes(x, extremes)
            write_scale(extremes, scale, shift)
        if is_kernel:
            kernel = extremes_kernel(x, extremes)
            assert kernel is not None
            extremes[...] = 3
            for each in (kernel, scale_kernel(extremes, scale, shift)):
                made = machine().call(each)
                made.call()
        results.append((scale.tobytes(), int(shift)))
    assert results[0] == results[1] or np.isnan(special or 0)
    with np.errstate(all="ignore"):
        eager = ops.quantization_range.kernel(x)
    assert np.array_equal(eager[0], scale, equal_nan=True)


def rows_of(compiled: Any, x: Any) -> dict[str, tuple[str, ...]]:
    """Return the kernels of each primitive of a plan."""
    rows = compiled.profile(x).rows
    return {name: row.kernels for row in rows for name in row.primitives}


@pytest.mark.parametrize("shape", [(5, 8), (2, 3, 8), (1, 8), (0, 8), (40, 8)])
@pytest.mark.parametrize("dtype", [int8, uint8])
@pytest.mark.parametrize("options", [{}, {"zero_point": True}, {"bias": False}])
@pytest.mark.parametrize("is_numpy", [False, True])
def test_plans_have_eager_bits(
    shape: tuple[int, ...], dtype: Any, options: Any, is_numpy: bool
) -> None:
    if not (has_kernels or is_numpy):
        pytest.skip("oneDNN is quicker on this processor")
    module = layer(weight_dtype=dtype, **options)
    compiled = burn.compile(module, generated=True)
    for x in inputs(*shape) * 3:
        expected = module(x).numpy()
        if is_numpy:
            with engine.numpy_only():
                actual = compiled(x).numpy()
        else:
            actual = compiled(x).numpy()
        np.testing.assert_array_equal(actual, expected)


@pytest.mark.skipif(not has_kernels, reason="oneDNN is quicker on this processor")
def test_all_calls_are_kernels() -> None:
    compiled = burn.compile(layer(weight_dtype=uint8), generated=True)
    x = inputs(40, 8)[2]
    names = ("quantization_range", "quantize", "cast", "linear_of_integers")
    assert rows_of(compiled, x) == dict.fromkeys(names, (GENERATED,))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_numbers_that_are_not_finite(value: float) -> None:
    module = layer()
    compiled = burn.compile(module, generated=True)
    for number, x in enumerate(inputs(40, 8) * 2):
        array = x.numpy().copy()
        if number == 5:
            array[3, 2] = value
        given = burn.from_numpy(array)
        with np.errstate(all="ignore"):
            expected = module(given).numpy()
            actual = compiled(given).numpy()
        # oneDNN's products of bytes, where they are used, round differently.
        np.testing.assert_allclose(actual, expected, 1e-5, 1e-5)


def test_quantization_of_transposed_numbers() -> None:
    def function(x: Any) -> Any:
        y = x.transpose(0, 1)
        scale, shift = ops.quantization_range(y)
        return ops.quantize(y, scale, shift), scale, shift

    compiled = burn.compile(function, generated=True)
    for x in inputs(40, 8) * 2:
        pairs = zip(compiled(x), function(x), strict=True)
        for actual, expected in pairs:
            np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def test_scales_of_channels_stay_numpys() -> None:
    scale = burn.from_numpy(np.abs(normal(8)) + 0.1)
    compiled = burn.compile(lambda x: ops.quantize(x, scale), generated=True)
    for x in inputs(40, 8) * 2:
        expected = ops.quantize(x, scale).numpy()
        np.testing.assert_array_equal(compiled(x).numpy(), expected)
