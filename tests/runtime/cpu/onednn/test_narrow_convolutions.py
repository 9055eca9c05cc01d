"""Convolutions of bfloat16 and of integers are those of float32, by any code of oneDNN.

Which code that is depends on the processor: that for AMX was wrong for some of these.
"""

from typing import Any

import numpy as np
import pytest

import burn
from burn import dtypes, ops
from burn.backend.cpu.onednn.kernels.convolution.wrong_code import wrong_code
from burn.ops.qdq_layers import conv_of_integers
from burn.ops.window import windows
from tests.modules import Array

AMX = "brgconv:avx512_core_amx"
#: Channels in and out, extents, kernel, stride.
KNOWN: list[tuple[int, int, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = [
    (96, 128, (6, 6), (2, 2), (2, 2)),
    (48, 32, (12, 12), (2, 2), (2, 2)),
    (48, 64, (12, 14), (6, 4), (2, 2)),
    (160, 16, (4, 14), (1, 4), (3, 4)),
    (16, 32, (12, 12), (4, 4), (4, 4)),
    (80, 32, (12,), (4,), (2,)),
    (64, 16, (10, 11, 14), (1, 1, 5), (3, 4, 3)),
    (64, 32, (8, 15, 5), (1, 2, 2), (3, 2, 1)),
]


def as_integers(numbers: Array, scale: Any) -> Any:
    return numbers, np.asarray(scale, np.float32), None


def check(x: Array, weight: Array, **static: Any) -> None:
    """Compare both narrow convolutions with that of float32."""
    size = float(np.sqrt(np.prod(weight.shape[1:])))
    wide = [burn.tensor(a.astype(np.float32)) for a in (x, weight / (127 * size))]
    expected = ops.conv(*wide, **static).numpy()
    narrow = [tensor.cast(dtypes.bfloat16) for tensor in wide]
    result = ops.conv(*narrow, **static).cast(dtypes.float32).numpy()
    scale = max(float(np.abs(expected).max(initial=0)), 1e-3)
    np.testing.assert_allclose(result, expected, rtol=0, atol=0.03 * scale)
    scales = np.full(len(weight), 1 / (127 * size))
    operands = as_integers(x, 1), as_integers(weight, scales)
    integers = burn.Cpu().call(conv_of_integers, operands, static)
    result = np.asarray(integers)
    np.testing.assert_allclose(result, expected, rtol=0, atol=1e-4 * scale)


def numbers(seed: int, *shape: int) -> Array:
    rng = np.random.default_rng(seed)
    return rng.integers(-127, 127, shape, endpoint=True).astype(np.int8)


@pytest.mark.parametrize("case", KNOWN, ids=str)
def test_cases_in_which_code_was_wrong(case: Any) -> None:
    inputs, outputs, size, kernel, stride = case
    x, weight = numbers(0, 1, inputs, *size), numbers(1, outputs, inputs, *kernel)
    check(x, weight, stride=stride, padding=0, dilation=1, groups=1)


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.sampled(20)
def test_random_windows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    rank, groups = int(rng.choice([1, 2, 2, 3])), int(rng.choice([1, 1, 2]))
    inputs = int(rng.choice([16, 32, 48, 64, 80, 96] if rank < 3 else [16, 48, 64]))
    outputs = int(rng.choice([16, 32, 48]))
    kernel, stride = (tuple(rng.integers(1, m, rank).tolist()) for m in (6, 5))
    size = tuple(rng.integers(6, 14, rank).tolist())
    padding = tuple((int(rng.integers(0, k)), 0) for k in kernel)
    x = numbers(seed, int(rng.integers(1, 3)), inputs * groups, *size)
    weight = numbers(seed + 1, outputs * groups, inputs, *kernel)
    check(x, weight, stride=stride, padding=padding, dilation=1, groups=groups)


@pytest.mark.parametrize(
    ("size", "kernel", "stride", "expected"),
    [
        ((6, 6), (2, 2), (2, 2), True),
        ((6, 6), (2, 3), (2, 2), False),
        ((6, 6), (3, 2), (2, 1), False),
        ((6, 6, 6), (1, 3, 3), (2, 1, 1), True),
        ((6, 6, 6), (3, 3, 3), (2, 2, 2), False),
        ((6, 6), (1, 1), (2, 3), False),
    ],
)
def test_windows_whose_code_is_wrong(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    stride: tuple[int, ...],
    expected: bool,
) -> None:
    is_wrong = wrong_code(windows(size, kernel, stride))
    assert (is_wrong is not None and is_wrong(AMX)) == expected
    assert is_wrong is None or not is_wrong("brgconv:avx512_core_vnni")
