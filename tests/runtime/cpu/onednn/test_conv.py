"""Convolutions by oneDNN are NumPy's."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.ops.fused import conv_grads
from tests.runtime.onednn import (
    assert_close,
    both,
    compare,
    laid_out,
    needs_onednn,
    normal,
)
from tests.sampling import example_count

pytestmark = needs_onednn


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Any, Any, dict[str, Any]]:
    """x, weight, bias and attributes of a convolution that fits."""
    rank = draw(st.integers(1, 3))
    groups = draw(st.sampled_from([1, 1, 2, 3, 8]))
    within = draw(st.sampled_from([1, 2, 3, 16]))
    outputs = groups * draw(st.sampled_from([1, 2, 5, 16]))
    small = st.integers(1, 3)
    kernel = tuple(draw(small) for _ in range(rank))
    static: dict[str, Any] = {
        "stride": tuple(draw(small) for _ in range(rank)),
        "padding": tuple((draw(st.integers(0, 2)),) * 2 for _ in range(rank)),
        "dilation": tuple(draw(st.integers(1, 2)) for _ in range(rank)),
        "groups": groups,
    }
    if draw(st.booleans()):
        static["padding"] = tuple(
            (p[0], draw(st.integers(0, 2))) for p in static["padding"]
        )
    size = tuple(draw(st.integers(6, 11)) for _ in range(rank))
    if rank > 1 and draw(st.booleans()):  # an axis of one element
        axis = draw(st.integers(0, rank - 1))
        kernel = (*kernel[:axis], 1, *kernel[axis + 1 :])
        size = (*size[:axis], 1, *size[axis + 1 :])
    x = normal(draw(st.integers(1, 3)), groups * within, *size)
    weight = normal(outputs, within, *kernel, seed=1)
    bias = normal(outputs, seed=2) if draw(st.booleans()) else None
    order = draw(st.permutations(range(rank + 2)))
    return laid_out(x, order), weight, bias, static


@settings(max_examples=example_count(60))
@given(case=cases())
def test_convolution(case: Any) -> None:
    x, weight, bias, static = case
    compare(ops.conv, x, weight, bias, **static)


@settings(max_examples=example_count(60))
@given(case=cases(), extra=st.booleans())
def test_transposed_convolution(case: Any, extra: bool) -> None:
    _, weight, _, static = case
    x = normal(2, len(weight), *(5 for _ in weight.shape[2:]))
    bias = normal(weight.shape[1] * static["groups"], seed=2)
    if extra:
        static["output_padding"] = tuple(s - 1 for s in static["stride"])
    try:
        expected = ops.conv_transpose(
            *map(burn.from_numpy, (x, weight, bias)), **static
        )
    except ValueError:
        return  # nothing is left of an extent
    if 0 not in expected.shape:
        compare(ops.conv_transpose, x, weight, bias, **static)


@settings(max_examples=example_count(60))
@given(case=cases())
def test_gradient_of_the_weight(case: Any) -> None:
    x, weight, _, static = case
    shape = ops.conv(burn.from_numpy(x), burn.from_numpy(weight), **static).shape
    compare(
        ops.conv_weight_grad,
        *(x, normal(*shape, seed=3)),
        kernel_size=weight.shape[2:],
        **static,
    )


@settings(max_examples=example_count(30))
@given(case=cases())
def test_gradients_of_weight_of_bfloat16(case: Any) -> None:
    x, weight, _, static = case
    shape = ops.conv(burn.from_numpy(x), burn.from_numpy(weight), **static).shape
    narrow, wide = [], []
    for array in (x, normal(*shape, seed=3)):
        narrow.append(ops.cast(burn.from_numpy(array), dtype=burn.dtypes.bfloat16))
        wide.append(ops.cast(narrow[-1], dtype=burn.dtypes.float32))
    static["kernel_size"] = weight.shape[2:]
    result = ops.conv_weight_grad(*narrow, **static)
    assert result.dtype == burn.dtypes.bfloat16
    expected = ops.conv_weight_grad(*wide, **static).numpy()
    scale = np.abs(expected).max(initial=1e-3)
    difference = np.abs(result.numpy().astype(np.float32) - expected)
    assert difference.max(initial=0) <= 2**-7 * scale


@settings(max_examples=example_count(60))
@given(case=cases(), part=st.integers(0, 1))
def test_gradients_of_weight_and_bias(case: Any, part: int) -> None:
    x, weight, _, static = case
    shape = ops.conv(burn.from_numpy(x), burn.from_numpy(weight), **static).shape
    compare(
        lambda *a: conv_grads(*a, kernel_size=weight.shape[2:], **static)[part],
        *(x, normal(*shape, seed=3)),
    )


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)])
def test_the_result_is_channels_last(order: Any) -> None:
    x = laid_out(normal(2, 16, 9, 9), order)
    actual, _ = both(ops.conv, x, normal(8, 16, 3, 3))
    assert actual.transpose(0, 2, 3, 1).flags.c_contiguous


def test_lists_are_taken_for_attributes() -> None:
    compare(ops.conv, normal(1, 4, 9, 9), normal(4, 4, 3, 3), stride=[1, 2])
    compare(ops.conv, normal(1, 4, 9, 9), normal(4, 4, 3, 3), padding=[[1, 2], [0, 1]])


def test_gaps_and_repetitions_are_copied() -> None:
    whole = normal(2, 8, 20, 20)
    weight = normal(8, 8, 3, 3)
    compare(ops.conv, whole[:, :, ::2, 1:14], weight)
    compare(ops.conv, whole[:, :, ::-1], weight)
    compare(ops.conv, np.broadcast_to(whole[:, :1], whole.shape), weight)


def test_weights_with_gaps_and_repetitions_are_numpys() -> None:
    x, weight = burn.from_numpy(normal(2, 8, 9, 9)), normal(8, 8, 3, 3)
    for other in (np.broadcast_to(weight[:1], weight.shape), weight[..., ::-1]):
        with engine.whatever_size():
            actual = ops.conv(x, burn.from_numpy(other))
        with engine.numpy_only():
            expected = ops.conv(x, burn.from_numpy(other.copy()))
        np.testing.assert_array_equal(actual.numpy(), expected.numpy())


@pytest.mark.parametrize("dtype", [np.float64, np.float16])
def test_other_dtypes_are_numpys(dtype: Any) -> None:
    x, weight = (burn.from_numpy(normal(1, 4, 8, 8).astype(dtype)) for _ in range(2))
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    with engine.whatever_size():
        actual = ops.conv(x, weight)
    assert not session.primitives.implementations()
    assert actual.dtype == dtype


def test_padding_of_more_than_a_stride_is_numpys() -> None:
    x, weight = burn.from_numpy(normal(1, 4, 8)), burn.from_numpy(normal(4, 4, 3))
    static: Any = {"dilation": 3, "output_padding": 2}
    with engine.whatever_size():
        actual = ops.conv_transpose(x, weight, **static)
    with engine.numpy_only():
        expected = ops.conv_transpose(x, weight, **static)
    np.testing.assert_array_equal(actual.numpy(), expected.numpy())


def test_cropping_padding_and_nothing_are_numpys() -> None:
    x, weight = burn.from_numpy(normal(1, 4, 8, 8)), burn.from_numpy(normal(4, 4, 3, 3))
    with engine.whatever_size():
        cropped = ops.conv(x, weight, padding=((-1, 0), (0, -1)))
        empty = ops.conv(x[:0], weight)
    assert_close(cropped.numpy(), ops.conv(x[:, :, 1:, :-1], weight).numpy(), rtol=1e-5)
    assert empty.shape == (0, 4, 6, 6)


def test_what_does_not_fit_is_refused_as_by_numpy() -> None:
    x, weight = burn.from_numpy(normal(1, 4, 8, 8)), burn.from_numpy(normal(4, 3, 3, 3))
    with engine.whatever_size():
        with pytest.raises(ValueError, match="expected x of 3 channels"):
            ops.conv(x, weight)
        with pytest.raises(ValueError, match="expected a window of 9"):
            ops.conv(x, burn.from_numpy(normal(4, 4, 9, 9)))
