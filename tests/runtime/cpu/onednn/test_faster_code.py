"""Pointwise and depthwise convolutions are NumPy's, by whatever code of oneDNN."""

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from burn.backend.cpu.onednn.kernels.convolution.faster_code import FASTER
from burn.ops.fused import conv_then
from tests.runtime.onednn import compare, needs_onednn, normal
from tests.sampling import example_count

pytestmark = needs_onednn

ENDINGS = [
    *((("relu",),), (("silu",),), (("hard_swish",),), (("clip", 0.0, 6.0),)),
    *((("add",),), (("add",), ("relu",)), (("scale", 0.5), ("sigmoid",))),
]
#: Prints the implementation of a convolution.
PROGRAM = """
import numpy as np
from burn import from_numpy, ops
from burn.backend.cpu.onednn.binding import engine

x = from_numpy(np.ones((1, {channels}, 9, 9), np.float32))
weight = from_numpy(np.ones({weight}, np.float32))
with engine.whatever_size():
    ops.conv(x, weight, groups={groups}, padding={padding})
print(*engine.current().primitives.implementations())
"""


@settings(max_examples=example_count(40))
@given(
    batch=st.integers(1, 3),
    channels=st.sampled_from([1, 3, 8, 21, 58, 64]),
    outputs=st.sampled_from([1, 8, 21, 116]),
    size=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    stride=st.integers(1, 2),
    after=st.sampled_from(ENDINGS),
)
def test_pointwise(
    batch: int, channels: int, outputs: int, size: Any, stride: int, after: Any
) -> None:
    x, weight = normal(batch, channels, *size), normal(outputs, channels, *[1] * 3)
    counts = [-(-extent // stride) for extent in size]
    residual = normal(batch, outputs, *counts, seed=3) if ("add",) in after else None
    weight = weight.reshape(outputs, channels, *(1 for _ in size))
    bias = normal(outputs, seed=2)
    compare(conv_then, x, weight, bias, residual, after=after, stride=stride)


@settings(max_examples=example_count(40))
@given(
    batch=st.integers(1, 3),
    channels=st.sampled_from([1, 3, 8, 21, 58, 64]),
    size=st.integers(3, 11),
    kernel=st.sampled_from([3, 5]),
    stride=st.integers(1, 2),
    after=st.sampled_from(ENDINGS),
)
def test_depthwise(
    batch: int, channels: int, size: int, kernel: int, stride: int, after: Any
) -> None:
    x, weight = normal(batch, channels, size, size), normal(channels, 1, kernel, kernel)
    static: dict[str, Any] = {
        "stride": stride,
        "padding": kernel // 2,
        "groups": channels,
    }
    count = (size - 1) // stride + 1
    residual = normal(batch, channels, count, count, seed=3)
    other = residual if ("add",) in after else None
    compare(
        *(conv_then, x, weight, normal(channels, seed=2), other),
        after=after,
        **static,
    )


@pytest.mark.parametrize(
    ("weight", "groups", "padding", "name"),
    [
        ((32, 64, 1, 1), 1, 0, FASTER["brgconv_1x1:avx2"]),
        ((64, 1, 3, 3), 64, 1, FASTER["brdgmm_dw:avx2"]),
        ((32, 64, 3, 3), 1, 1, "brgconv:avx2"),
    ],
)
def test_code_without_avx512(weight: Any, groups: int, padding: int, name: str) -> None:
    program = PROGRAM.format(channels=64, weight=weight, groups=groups, padding=padding)
    made = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    assert name in made.split()
