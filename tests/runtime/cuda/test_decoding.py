"""Kernels of decode steps, and decoders in CUDA graphs."""

from importlib import import_module
from itertools import product
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.generation import Decoder
from burn.ops.caches import update_slice
from burn.ops.decoding import cached_attention, row_linear
from tests.runtime.generation.decoders import WORDS, Growing, grown
from tests.runtime.onnx_node import normal

pytestmark = pytest.mark.cuda
TOLERANCE = {"float16": 5e-3, "float32": 1e-5}


@pytest.fixture
def device() -> Any:
    pytest.importorskip("cupy")
    return burn.Cuda(0)


def compare(device: Any, primitive: Any, arrays: Any, **static: Any) -> None:
    """The device's kernel against that for all devices."""
    dtype = str(arrays[0].dtype)
    there = [None if a is None else burn.from_numpy(a, device) for a in arrays]
    expected = primitive.kernel(*arrays, **static)
    actual = primitive(*there, **static)
    if primitive.outputs == 1:
        actual, expected = (actual,), (expected,)
    for ours, theirs in zip(actual, expected, strict=True):
        scale = TOLERANCE[dtype] * np.abs(np.nan_to_num(theirs.astype(float))).max()
        np.testing.assert_allclose(ours.numpy(), theirs, atol=scale, rtol=0)


def operands_of_rows(
    dtype: str, rows: int, columns: int, inner: int, norm: str, gated: bool
) -> tuple[tuple[Any, ...], Any]:
    """Operands of ``row_linear`` and its epilogue: a bias and a residual, or a gate."""

    def of(*shape: int, seed: int) -> Any:
        return normal(*shape, seed=seed).astype(dtype)

    arrays = (
        *(of(rows, inner, seed=0), of(columns, inner, seed=1) / 8),
        None if gated else of(columns, seed=2),
        None if gated else of(rows, columns, seed=3),
        of(inner, seed=4) if norm else None,
        of(inner, seed=5) if norm == "layer" else None,
        of(columns, inner, seed=6) / 8 if gated else None,
    )
    return arrays, () if gated else (("gelu_tanh",), ("add",))


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rows", (1, 3, 8))
@pytest.mark.parametrize("inner", (3, 10, 24, 768, 2048))
@pytest.mark.parametrize("norm", ("", "layer", "rms"))
@pytest.mark.parametrize("gated", (False, True))
def test_products_of_few_rows(
    device: Any, dtype: str, rows: int, inner: int, norm: str, gated: bool
) -> None:
    arrays, after = operands_of_rows(dtype, rows, 37, inner, norm, gated)
    compare(device, row_linear, arrays, norm=norm, epsilon=1e-5, after=after)


@pytest.mark.parametrize("rows", (1, 8))
@pytest.mark.parametrize("columns", (37, 5000))
@pytest.mark.parametrize("inner", (288, 2048, 8192))
@pytest.mark.parametrize("norm", ("", "layer", "rms"))
@pytest.mark.parametrize("gated", (False, True))
def test_products_of_few_rows_on_tensor_cores(
    device: Any, rows: int, columns: int, inner: int, norm: Any, gated: bool
) -> None:
    from burn.backend.cuda.kernels.products import row_kernels, tensor_core_rows

    arrays, after = operands_of_rows("float16", rows, columns, inner, norm, gated)
    expected = row_linear.kernel(*arrays, norm=norm, epsilon=1e-5, after=after)
    there = tuple(
        None if a is None else burn.from_numpy(a, device).data for a in arrays
    )
    form = row_kernels.Form(
        *(arrays[0].dtype, rows, columns, inner, norm, gated, after)
    )
    scale = TOLERANCE["float16"] * np.abs(expected.astype(np.float64)).max()
    splits = tensor_core_rows.splits_of(form)
    assert splits
    for split, blocks in product(splits, (1, 2)):
        kernel = tensor_core_rows.kernel(form, split, blocks)
        actual = row_kernels.run(kernel, there, form, 1e-5, blocks).get()
        np.testing.assert_allclose(actual, expected, atol=scale, rtol=0)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("batch", (1, 3))
@pytest.mark.parametrize("form", ((1, 1, 64), (4, 2, 64), (2, 8, 128), (1, 2, 16)))
@pytest.mark.parametrize("kind", ("none", "bool", "float", "heads"))
@pytest.mark.parametrize("turned", (False, True))
@pytest.mark.parametrize("entries", ((150, 70), (2500, 2300), (2500, 3)))
def test_attention_to_caches(
    device: Any,
    dtype: str,
    batch: int,
    form: Any,
    kind: str,
    turned: bool,
    entries: Any,
) -> None:
    (groups, each, size), (past, length) = form, entries
    heads = groups * each
    shapes = ((heads, 1), (groups, 1), (groups, 1), (groups, past), (groups, past))
    arrays = [
        normal(batch, count, rows, size, seed=seed).astype(dtype)
        for seed, (count, rows) in enumerate(shapes)
    ]
    at = np.arange(past + 1)  # some are hidden before the first one that is seen
    seen = np.broadcast_to(
        (at > 1) & (at < length) | (at == past), (batch, 1, 1, past + 1)
    )
    mask: Any = None if kind == "none" else seen
    if kind in ("float", "heads"):
        mask = np.where(seen, 0, -65500.0)
        if kind == "heads":
            mask = mask + normal(batch, heads, 1, past + 1, seed=7)
        mask = mask.astype(dtype)
    angles = normal(batch, 1, 1, size // 2, seed=8)
    cos, sin = (f(angles).astype(dtype) for f in (np.cos, np.sin))
    arrays += [mask, *((cos, sin) if turned else (None, None))]
    compare(device, cached_attention, arrays, scale=size**-0.5)


@pytest.mark.parametrize("blocks", ((1, 256), (1, 512), (4, 256), (8, 128)))
@pytest.mark.parametrize("past", (0, 30, 3000))
def test_clusters_of_attention(
    device: Any, monkeypatch: Any, blocks: tuple[int, int], past: int
) -> None:
    """Blocks without keys, and several clusters that share keys."""
    name = "burn.backend.cuda.kernels.attention.cached_attention"
    module = import_module(name)
    if blocks[0] > 1 and int(device.cupy.cuda.Device().compute_capability) < 90:
        pytest.skip("the device has no clusters of blocks")
    monkeypatch.setattr(module, "_blocks", lambda *_: blocks)
    shapes = ((8, 1), (2, 1), (2, 1), (2, past), (2, past))
    arrays = [
        normal(2, *s, 64, seed=n).astype(np.float16) for n, s in enumerate(shapes)
    ]
    mask = np.arange(past + 1) % 5 != 3
    mask[past] = True
    compare(device, cached_attention, (*arrays, mask[None, None, None]), scale=0.125)


@pytest.mark.parametrize("is_seen", (False, True))
@pytest.mark.parametrize("past", (0, 1, 300))
def test_attention_of_hidden_keys(device: Any, is_seen: bool, past: int) -> None:
    shapes = ((4, 1), (2, 1), (2, 1), (2, past), (2, past))
    arrays = [normal(2, *s, 32, seed=n) for n, s in enumerate(shapes)]
    mask = np.zeros((2, 1, 1, past + 1), bool)
    mask[1, ..., past] = is_seen
    for empty_is_zero in (False, True):
        static = {"scale": 0.2, "empty_is_zero": empty_is_zero}
        with np.errstate(invalid="ignore"):  # 0 / 0 where all keys are hidden
            compare(device, cached_attention, (*arrays, mask), **static)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("rows", (1, 6))
def test_attention_of_heads_that_share_keys(device: Any, dtype: str, rows: int) -> None:
    shapes = ((2, 6, rows, 16), (2, 2, 9, 16), (2, 2, 9, 16))
    arrays = [normal(*s, seed=n).astype(dtype) for n, s in enumerate(shapes)]
    mask = normal(2, 1, rows, 9, seed=3) > -0.5
    given = [burn.from_numpy(a, device) for a in (*arrays, mask)]
    compiled = burn.compile(ops.attention)
    expected = ops.attention(*map(burn.from_numpy, (*arrays, mask))).numpy()
    for _ in range(3):
        actual = compiled(*given).numpy()
        np.testing.assert_allclose(actual, expected, atol=TOLERANCE[dtype], rtol=0)
    assert compiled.notes == []


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("count", (5, 1000, 50257, 128256))
def test_largest_elements(device: Any, dtype: str, count: int) -> None:
    x = np.random.default_rng(0).integers(0, 50, (3, count)).astype(dtype)
    x[1, count // 2] = np.nan
    there = ops.argmax(burn.from_numpy(x, device), -1)
    np.testing.assert_array_equal(there.numpy(), x.argmax(-1))


@pytest.mark.parametrize("start", (-3, 0, 2, 9))
@pytest.mark.parametrize("axis", (0, 1, 2))
def test_slices(device: Any, start: int, axis: int) -> None:
    shape = [4, 5, 6]
    shape[axis] = 2
    arrays = (normal(4, 5, 6), normal(*shape, seed=1), np.array([start]))
    there = update_slice(*(burn.from_numpy(a, device) for a in arrays), axis=axis)
    here = update_slice.kernel(*arrays, axis=axis)
    np.testing.assert_array_equal(there.numpy(), here)


@pytest.mark.parametrize("batch", (1, 8))
def test_decoders_in_graphs(device: Any, batch: int) -> None:
    chunks, host = (5, 1, 1, 1, 3, 1, 1), Growing()
    decoder = Decoder(Growing().to(device), batch=batch, capacity=70)
    for seed in range(3):
        tokens, at = np.random.default_rng(seed).integers(0, WORDS, (batch, 13)), 0
        for count, expected in zip(chunks, grown(host, tokens, chunks), strict=True):
            given = burn.from_numpy(tokens[:, at : at + count].copy(), device)
            scale = 1e-4 * np.abs(expected).max()
            np.testing.assert_allclose(decoder(given).numpy(), expected, atol=scale)
            at += count
        decoder.reset()
    assert decoder.notes == []
    (executable,) = decoder.executables
    assert executable.kernels


def test_padded_rows_in_graphs(device: Any) -> None:
    prompt = np.random.default_rng(9).integers(0, WORDS, (2, 5))
    mask = np.array([[0, 0, 1, 1, 1], [1, 1, 1, 1, 1]])
    there = Decoder(Growing().to(device), batch=2, capacity=20)
    here = Decoder(Growing(), batch=2, capacity=20)
    ours = list(there.generate(burn.from_numpy(prompt, device), 12, mask=mask))
    theirs = list(here.generate(burn.tensor(prompt), 12, mask=mask))
    np.testing.assert_array_equal(ours, theirs)
    assert there.notes == []
