"""Layers of integers of 8 bits by oneDNN: what NumPy computes of them dequantized."""

from typing import Any

import numpy as np
import pytest

from burn.backend.cpu import Cpu
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels.convolution.rebatch import Form, rebatched
from burn.backend.cpu.onednn.kernels.quantization import quantized_layers
from burn.dtypes import float32, int8, uint8
from burn.ops.qdq_layers import (
    conv_of_integers,
    from_integers,
    linear_of_integers,
    to_integers,
)
from tests.runtime.onednn import laid_out, needs_onednn, normal

pytestmark = [
    needs_onednn,
    pytest.mark.skipif(
        engine.no_gain("int8") is not None,
        reason="the processor has no products of bytes",
    ),
]


def integers(dtype: Any, *shape: int, seed: int = 0) -> Any:
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    return rng.integers(limits.min, limits.max, shape, dtype, endpoint=True)


def scale(*values: float) -> Any:
    return np.array(values, np.float32)


def zero(dtype: Any, value: int) -> Any:
    return np.array([value], dtype)


def kernels(primitive: Any, *args: Any, **static: Any) -> tuple[Any, Any]:
    """The result by oneDNN, and by NumPy."""
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    with engine.whatever_size():
        result = primitive.kernel_for(Cpu())(*args, **static)
    used = session.primitives.implementations()
    assert used, "oneDNN was not used"
    assert not any(name.startswith("ref") for name in used), used
    return result, primitive.kernel(*args, **static)


def compare(primitive: Any, *args: Any, **static: Any) -> None:
    """Equal but for the rounding of floats, and of halves to integers."""
    actual, expected = kernels(primitive, *args, **static)
    assert (actual.shape, actual.dtype) == (expected.shape, expected.dtype)
    if expected.dtype == np.float32:
        size = float(np.abs(expected).max())
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-5 * size)
        return
    difference = np.abs(actual.astype(int) - expected.astype(int))
    assert difference.max() <= 1
    assert np.mean(difference > 0) < 0.02
    assert len(np.unique(expected)) > 20


WEIGHT_SCALES = np.linspace(0.01, 0.03, 12, dtype=np.float32)
X = {
    "unsigned": (integers(uint8, 2, 8, 9, 11), scale(0.02), None),
    "shifted": (integers(uint8, 2, 8, 9, 11), scale(0.02), zero(np.uint8, 131)),
    "signed": (integers(int8, 2, 8, 9, 11), scale(0.03), None),
    "signed-shifted": (integers(int8, 2, 8, 9, 11), scale(0.03), zero(np.int8, -7)),
}
RESULTS = {
    "floats": (None, float32),
    "unsigned": ((scale(1.5), None), uint8),
    "shifted": ((scale(1.5), zero(np.uint8, 128)), uint8),
    "signed": ((scale(1.7), zero(np.int8, 3)), int8),
}


@pytest.mark.parametrize("x", X)
@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_convolution(x: str, result: str, groups: int) -> None:
    weights = integers(int8, 12, 8 // groups, 3, 3, seed=1)
    weight = (weights, WEIGHT_SCALES, None)
    scaling, dtype = RESULTS[result]
    static: Any = {"stride": (2, 1), "padding": (1, 2), "groups": groups}
    args = (X[x], weight, normal(12, seed=2) * 50, None, scaling)
    after = (("relu",),) if result == "unsigned" else ()
    compare(conv_of_integers, *args, after=after, dtype=dtype, **static)


@pytest.mark.parametrize("x", X)
def test_each_channel_alone(x: str) -> None:
    weight = (integers(int8, 8, 1, 3, 3, seed=1), WEIGHT_SCALES[:8], None)
    args = (X[x], weight, None, None, (scale(0.5), None))
    compare(conv_of_integers, *args, dtype=int8, padding=1, groups=8)


def test_one_scale_for_all_weights_and_other_orders() -> None:
    values = laid_out(integers(uint8, 2, 8, 9, 11), (0, 2, 3, 1))
    weight = (integers(int8, 12, 8, 3, 3, seed=1), scale(0.02), zero(np.int8, 0))
    compare(conv_of_integers, (values, scale(0.02), None), weight)


ADDED: dict[str | None, Any] = {
    "floats": normal(2, 12, 9, 11, seed=4) * 100,
    "unsigned": (integers(uint8, 2, 12, 9, 11), scale(0.9), zero(np.uint8, 99)),
    "signed": (integers(int8, 2, 12, 9, 11), scale(1.1), None),
}


@pytest.mark.parametrize("added", ADDED)
@pytest.mark.parametrize("result", ["unsigned", "signed"])
def test_convolution_with_what_is_added(added: str, result: str) -> None:
    weight = (integers(int8, 12, 8, 3, 3, seed=1), WEIGHT_SCALES, None)
    scaling, dtype = RESULTS[result]
    after = (("add",), ("relu",))
    args = (X["shifted"], weight, normal(12, seed=2), ADDED[added], scaling)
    compare(conv_of_integers, *args, after=after, dtype=dtype, padding=1)


def test_convolution_that_is_limited_before_a_sum() -> None:
    weight = (integers(int8, 12, 8, 3, 3, seed=1), WEIGHT_SCALES, None)
    limits = (scale(0.1), zero(np.uint8, 100), uint8)
    after = (("limits",), ("add",), ("relu",))
    free = conv_of_integers.kernel(X["shifted"], weight, padding=1)
    assert np.mean(free > 0.1 * 155) > 0.1
    assert np.mean(free < -0.1 * 100) > 0.1
    args = (X["shifted"], weight, None, ADDED["signed"], (scale(0.8), None), limits)
    compare(conv_of_integers, *args, after=after, dtype=uint8, padding=1)
    floats = (X["shifted"], weight, None, ADDED["floats"], None, limits)
    compare(conv_of_integers, *floats, after=after, padding=1)


@pytest.mark.parametrize("added", [None, *ADDED])
@pytest.mark.parametrize("stride", [1, (3, 1)])
def test_single_pixels_that_threads_share(
    added: str | None, stride: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    forms = []

    def noted(form: Form, implementation: str, threads: int) -> Form | None:
        assert rebatched(form, implementation.removesuffix("_amx"), threads) is None
        forms.append(rebatched(form, "amx", 3))
        return forms[-1]

    monkeypatch.setattr(quantized_layers, "rebatched", noted)
    weight = (integers(int8, 12, 8, 1, 1, seed=1), WEIGHT_SCALES, None)
    scaling, dtype = RESULTS["shifted"]
    after = (("relu",),) if added is None else (("add",), ("relu",))
    rows: Any = ADDED.get(added)
    every = 1 if stride == 1 else 3
    if added == "floats":
        rows = rows[:, :, ::every]
    elif added is not None:
        rows = (rows[0][:, :, ::every].copy(), *rows[1:])
    args = (X["shifted"], weight, normal(12, seed=2) * 50, rows, scaling)
    compare(conv_of_integers, *args, after=after, dtype=dtype, stride=stride)
    shapes = [form and form.x for form in forms]
    assert shapes == [(3, 8, 1, 66) if stride == 1 else (6, 8, 3, 11)]


@pytest.mark.parametrize("result", RESULTS)
@pytest.mark.parametrize("dtype", [int8, uint8])
@pytest.mark.parametrize("bias", [None, normal(12, seed=2) * 50])
def test_linear_layer(result: str, dtype: Any, bias: Any) -> None:
    shift = zero(dtype, 5) if bias is None else None
    x = (integers(dtype, 3, 7, 40), scale(0.02), shift)
    weight = (integers(int8, 12, 40, seed=1), WEIGHT_SCALES, None)
    scaling, kind = RESULTS[result]
    compare(linear_of_integers, x, weight, bias, None, scaling, dtype=kind)


@pytest.mark.parametrize("result", ["floats", "signed"])
def test_linear_layer_with_what_is_added(result: str) -> None:
    x = (integers(uint8, 3, 7, 40), scale(0.02), None)
    weight = (integers(int8, 12, 40, seed=1), WEIGHT_SCALES, None)
    scaling, kind = RESULTS[result]
    after: Any = (("scale", 0.5), ("add",))
    added: Any = normal(3, 7, 12, seed=4) * 9
    compare(
        linear_of_integers, x, weight, None, added, scaling, after=after, dtype=kind
    )
    if scaling is not None:
        added = (integers(int8, 3, 7, 12, seed=5), scale(0.9), None)
        args = (x, weight, None, added, scaling)
        compare(linear_of_integers, *args, after=after, dtype=kind)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
@pytest.mark.parametrize("shift", [None, 0, 17])
@pytest.mark.parametrize("dtype", [int8, uint8])
def test_there_and_back(order: Any, shift: Any, dtype: Any) -> None:
    by = (scale(0.03), None if shift is None else zero(dtype, shift))
    x = laid_out(normal(6, 7, 20) * 3, order)
    compare(to_integers, x, *by, dtype=dtype)
    compare(from_integers, laid_out(integers(dtype, 6, 7, 20), order), *by)


def test_weights_with_a_zero_point() -> None:
    for dtype, by in ((np.int8, WEIGHT_SCALES), (np.int32, scale(0.02))):
        weight = (integers(int8, 12, 40, seed=1), by, zero(dtype, 3))
        compare(linear_of_integers, (integers(uint8, 3, 40), scale(0.02), None), weight)


def test_convolutions_with_zero_points_of_weights_are_numpys() -> None:
    weight = (integers(int8, 12, 8, 3, 3, seed=1), WEIGHT_SCALES, zero(np.int8, 3))
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    actual = conv_of_integers.kernel_for(Cpu())(X["unsigned"], weight)
    assert not session.primitives.implementations()
    np.testing.assert_array_equal(
        actual, conv_of_integers.kernel(X["unsigned"], weight)
    )
