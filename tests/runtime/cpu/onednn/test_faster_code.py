"""Convolutions and products by whatever code of oneDNN equal those by NumPy."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import nn, ops
from burn.backend.cpu.onednn.binding import engine, processor
from burn.backend.cpu.onednn.kernels.convolution import faster_code as rules
from burn.backend.cpu.onednn.kernels.convolution.faster_code import (
    DEPTHWISE,
    FASTER,
    FIRST,
    NARROW,
    faster_code,
)
from burn.ops.fused import conv_then, linear_then
from burn.ops.window import windows
from tests.runtime.onednn import both, compare, laid_out, needs_onednn, normal
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
#: Prints the implementations of a product with weights, before and after packing.
PRODUCT = """
import numpy as np
from burn import from_numpy, ops
from burn.backend.cpu.onednn.binding import engine

x = from_numpy(np.ones(({rows}, 64), np.float32))
weight = from_numpy(np.ones((32, 64), np.float32))
with engine.whatever_size():
    for _ in range(2):
        ops.linear(x, weight)
print(*engine.current().primitives.implementations())
"""
#: Prints the implementations of a first convolution in a plan, which must not be done
#: over pairs of rows.
FIRST_LAYER = """
import numpy as np
import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.backend.cpu.onednn.kernels.convolution.space_to_depth import SpaceToDepth

SpaceToDepth.image = None
x = burn.from_numpy(np.ones((1, 3, 22, 20), np.float32))
weight = burn.from_numpy(np.ones((32, 3, 3, 3), np.float32))
plan = burn.compile(lambda x: ops.conv(x, weight, stride=2, padding=1))
for _ in range(3):
    plan(x)
print(*engine.current().primitives.implementations())
"""


@contextmanager
def registers(are_halved: bool) -> Iterator[None]:
    """Choose code as on a processor with or without AVX-512 in halves."""
    session = engine.current()
    assert session is not None
    session.primitives.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rules, "halves_wide_registers", lambda: are_halved)
        yield
    session.primitives.clear()


@pytest.mark.parametrize("are_halved", [False, True])
@settings(max_examples=example_count(40))
@given(
    batch=st.integers(1, 3),
    channels=st.sampled_from([1, 3, 8, 21, 58, 64]),
    outputs=st.sampled_from([1, 8, 16, 21, 116]),
    size=st.lists(st.integers(1, 9), min_size=1, max_size=3),
    stride=st.integers(1, 2),
    after=st.sampled_from(ENDINGS),
)
def test_pointwise(
    are_halved: bool,
    batch: int,
    channels: int,
    outputs: int,
    size: Any,
    stride: int,
    after: Any,
) -> None:
    x, weight = normal(batch, channels, *size), normal(outputs, channels, *[1] * 3)
    counts = [-(-extent // stride) for extent in size]
    residual = normal(batch, outputs, *counts, seed=3) if ("add",) in after else None
    weight = weight.reshape(outputs, channels, *(1 for _ in size))
    bias = normal(outputs, seed=2)
    with registers(are_halved):
        compare(conv_then, x, weight, bias, residual, after=after, stride=stride)


@pytest.mark.parametrize("are_halved", [False, True])
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
    are_halved: bool,
    batch: int,
    channels: int,
    size: int,
    kernel: int,
    stride: int,
    after: Any,
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
    operands = (x, weight, normal(channels, seed=2), other)
    with registers(are_halved):
        compare(conv_then, *operands, after=after, **static)


class Images(nn.Module):
    """A first convolution, a depthwise and a pointwise one to few channels."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(3, 32, kernel_size=3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(32, 32, kernel_size=3, padding=1, groups=32)
        self.pointwise = nn.Conv2d(32, 24, kernel_size=1)

    def __call__(self, x: Any) -> Any:
        x = ops.silu(self.depthwise(ops.relu(self.first(x))))
        return ops.hard_swish(self.pointwise(x))


@pytest.mark.parametrize("size", [(22, 30), (23, 31)])
@pytest.mark.parametrize("are_halved", [False, True])
def test_networks_and_their_gradients(are_halved: bool, size: Any) -> None:
    model = Images().to(burn.Autodiff(burn.Cpu()))

    def gradients(x: Any) -> list[Any]:
        grads = ops.mean(model(x) ** 2).backward()
        return [grads[parameter] for _, parameter in model.parameters()]

    frozen = model.valid()
    plans, x = (burn.compile(frozen), burn.compile(gradients)), normal(2, 3, *size)
    with engine.numpy_only():
        expected = [frozen(burn.from_numpy(x)), *gradients(burn.from_numpy(x))]
    with registers(are_halved):
        for _ in range(3):
            actual = [plans[0](burn.from_numpy(x)), *plans[1](burn.from_numpy(x))]
            for a, b in zip(actual, expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy(), 2e-4, 2e-5)


@pytest.mark.parametrize(
    ("weight", "stride", "names"),
    [
        ((24, 144, 1, 1), 1, NARROW),
        ((24, 144, 1, 1), 2, NARROW),
        ((104, 48, 1, 1), 1, NARROW),
        ((16, 32, 1, 1), 1, NARROW),
        ((32, 64, 1, 1), 1, FASTER),
        ((28, 64, 1, 1), 1, FASTER),
        ((109, 64, 1, 1), 1, FASTER),
        ((32, 3, 3, 3), 2, FIRST),
        ((24, 4, 5, 5), 2, FIRST),
        ((32, 3, 3, 3), 1, FASTER),
        ((32, 3, 3, 3), (1, 2), FASTER),
        ((16, 3, 3, 3), 2, NARROW),
        ((32, 1, 3, 3), 2, FASTER),
        ((64, 1, 1, 3, 3), 1, DEPTHWISE),
    ],
)
def test_code_with_avx512_in_halves(weight: Any, stride: Any, names: Any) -> None:
    wins = windows((32, 32), weight[-2:], stride, 0, 1)
    with registers(True):
        chosen = faster_code(weight, wins)
        for name in FASTER | NARROW | FIRST | DEPTHWISE:
            assert chosen(name) == names.get(name)
    with registers(False):
        assert faster_code(weight, wins) == FASTER.get


@pytest.mark.parametrize(
    ("text", "are_halved"),
    [
        ("cpu:type:x86,ven0002fam0019mod0011:feature:,0000,0001", True),
        ("cpu:type:x86,ven0002fam001Amod0002:feature:,0000,0001", False),
        ("cpu:type:x86,ven0000fam0006mod008F:feature:,0000,0001", False),
        (None, False),
    ],
)
def test_processors(
    text: str | None, are_halved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "MODEL", tmp_path / "modalias")
    if text is not None:
        processor.MODEL.write_text(text)
    assert processor.halves_wide_registers.__wrapped__() is are_halved


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
    assert name in implementations_without_avx512(program)


def test_first_convolutions_without_avx512() -> None:
    assert "jit:avx2" in implementations_without_avx512(FIRST_LAYER)


@pytest.mark.parametrize(("rows", "is_pointwise"), [(9, True), (1, False)])
def test_products_without_avx512(rows: int, is_pointwise: bool) -> None:
    used = implementations_without_avx512(PRODUCT.format(rows=rows))
    assert (FASTER["brgconv_1x1:avx2"] in used) is is_pointwise


@settings(max_examples=example_count(40))
@given(
    rows=st.sampled_from([1, 2, 3, 7, 16, 49]),
    inputs=st.sampled_from([1, 3, 8, 21, 64, 130]),
    outputs=st.sampled_from([1, 8, 21, 116]),
    order=st.permutations(range(2)),
    after=st.sampled_from(ENDINGS),
    has_one_addend=st.booleans(),
)
def test_products_with_packed_weights(
    rows: int, inputs: int, outputs: int, order: Any, after: Any, has_one_addend: bool
) -> None:
    weight = laid_out(normal(outputs, inputs, seed=1), order)
    residual = None
    if ("add",) in after:
        residual = normal(1 if has_one_addend else rows, outputs, seed=3)
    x, bias = normal(rows, inputs), normal(outputs, seed=2)
    compare(linear_then, x, weight, bias, residual, after=after)


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_rows_of_products_with_packed_weights_are_independent(number: float) -> None:
    x = normal(9, 13)
    x[4] = number
    actual, expected = both(ops.linear, x, normal(29, 13, seed=1))
    np.testing.assert_allclose(actual, expected, 1e-5, 1e-5)
    assert not np.isfinite(actual[4]).any()


def implementations_without_avx512(program: str) -> list[str]:
    """Return the names that ``program`` prints, with oneDNN limited to AVX2."""
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
        text=True,
        check=True,
        stdout=subprocess.PIPE,
    ).stdout
    return output.split()
