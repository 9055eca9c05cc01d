"""Generated kernels of CUDA devices: chains, copies, pools, means and long rows."""

from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cuda.kernels.elementwise.printing import (
    PRIMITIVES,
    STORED,
    is_printed,
)
from burn.backend.cuda.kernels.views import is_view
from burn.ops.elements import Element, Operand, elements
from burn.plan.passes.symbolic_execution import element_of
from burn.primitive import primitives
from tests.runtime.onnx_node import normal

TOLERANCE = {"float64": 1e-9, "float32": 1e-5, "float16": 3e-3, "bfloat16": 2e-2}
VIEWS: dict[str, Any] = {
    "plain": lambda x: x,
    "transposed": lambda x: x.transpose(0, 2, 3, 1),
    "steps": lambda x: x[:, ::2],
    "reversed": lambda x: x[:, :, ::-1],
    "unaligned": lambda x: x[..., 1:],
    "repeated": lambda x: x[:1] + x[1:2] * 0,
}


def device() -> Any:
    """The first CUDA device; the test is skipped without CuPy."""
    pytest.importorskip("cupy")
    return burn.Cuda(0)


def with_numbers(x: Any) -> Any:
    return ops.concat([[7], x[:1], [8, 9], x])


@pytest.mark.cuda
@pytest.mark.parametrize("function", (with_numbers, burn.compile(with_numbers)))
def test_numbers_are_concatenated(function: Any) -> None:
    """Shapes that a model computes have numbers among their extents."""
    for first in range(4):
        result = function(burn.tensor([first, 2], device()))
        assert str(result.dtype) == "int64"
        assert result.numpy().tolist() == [7, first, 8, 9, first, 2]


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", [str(dtype) for dtype in STORED])
def test_each_function(dtype: str) -> None:
    there, seen = device(), 0
    for primitive in primitives().values():
        for count in (1, 2, 3):
            arrays = [normal(3, 4, 8, seed=n) * 3 for n in range(count)]
            arrays = [array.astype(dtype) for array in arrays]
            operands = tuple(Operand(n, array.dtype) for n, array in enumerate(arrays))
            forms = [(array.shape, array.dtype) for array in arrays]
            described = element_of(primitive, operands, {}, forms)
            element = None if described is None else described[0]
            if primitive in PRIMITIVES and count == 1 + primitive.name.endswith(
                "_grad"
            ):
                kind = (arrays[0].dtype,) * count
                element = Element(primitive, kind, kind[0], operands)
            if element is None or not is_printed(element) or element.size > 64:
                continue
            half = dtype in ("float16", "bfloat16")
            wide = [a.astype("float32") if half else a for a in arrays]
            with np.errstate(all="ignore"):
                expected = primitive.kernel(*wide)
            tensors = [burn.from_numpy(array, there) for array in arrays]
            actual = elements(*tensors, element=element).numpy()
            assert actual.dtype == element.dtype, primitive
            np.testing.assert_allclose(
                actual.astype("float64"),
                expected.astype("float64"),
                rtol=TOLERANCE.get(dtype, 1e-6),
                atol=TOLERANCE.get(dtype, 1e-6),
                err_msg=primitive.name,
            )
            seen += 1
    assert seen > 5


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ("float16", "float32", "int64", "bool"))
@pytest.mark.parametrize("name", VIEWS)
def test_views_in_chains_and_copies(name: str, dtype: str) -> None:
    there, base = device(), (normal(3, 8, 5, 16) * 4).astype(dtype)
    view = VIEWS[name]
    if name == "repeated" and dtype == "bool":
        view = VIEWS["plain"]
    x = burn.Tensor(view(there.from_numpy(base)), there)
    here = burn.from_numpy(np.ascontiguousarray(view(base)))

    def function(x: Any) -> Any:
        wide = ops.cast(x, dtype=burn.float32)
        return ops.reshape(ops.transpose(wide * 2.0 + wide, 0, 1), (-1,))

    plan = burn.compile(function)
    for _ in range(3):
        actual = plan(x).numpy()
    np.testing.assert_allclose(actual, function(here).numpy(), rtol=1e-5)
    flat = ops.flatten(ops.transpose(x, 1, 2)).numpy()
    np.testing.assert_array_equal(flat, ops.flatten(ops.transpose(here, 1, 2)).numpy())
    assert plan.notes == []


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ("float16", "float32"))
@pytest.mark.parametrize("channels", (3, 8, 20))
@pytest.mark.parametrize(
    "static",
    (
        {"kernel_size": 3, "stride": 2, "padding": 1},
        {"kernel_size": 2, "stride": 2},
        {"kernel_size": (3, 2), "stride": 2, "padding": (1, 0), "ceil_mode": True},
        {"kernel_size": 3, "dilation": 2, "padding": ((1, 0), (0, 1))},
    ),
    ids=str,
)
def test_pools_of_channels_last_images(static: Any, channels: int, dtype: str) -> None:
    there = device()
    array = normal(2, 11, 9, channels).astype(dtype)
    array[0, 3, 4, 1] = np.nan
    x = burn.Tensor(there.from_numpy(array).transpose(0, 3, 1, 2), there)
    here = burn.from_numpy(array.transpose(0, 3, 1, 2))
    tol = TOLERANCE[dtype]
    for fn, more in (
        (ops.max_pool, {}),
        (ops.avg_pool, {}),
        (ops.avg_pool, {"count_include_pad": True}),
    ):
        actual, expected = fn(x, **static, **more), fn(here, **static, **more)
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), tol, tol)


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", ("float16", "float32"))
@pytest.mark.parametrize("keepdims", (False, True))
@pytest.mark.parametrize("axes", ((2, 3), (0, 2, 3), (3,), (1,), (0,)))
@pytest.mark.parametrize("shape", ((2, 9, 7, 20), (3, 64, 50, 16), (1, 5, 5, 1280)))
def test_means(shape: Any, axes: Any, keepdims: bool, dtype: str) -> None:
    there, array = device(), normal(*shape).astype(dtype)
    x = burn.Tensor(there.from_numpy(array).transpose(0, 3, 1, 2), there)
    here = burn.from_numpy(array.transpose(0, 3, 1, 2).astype("float64"))
    actual = ops.mean(x, axes, keepdims=keepdims)
    expected = ops.mean(here, axes, keepdims=keepdims)
    assert actual.dtype == np.dtype(dtype)
    np.testing.assert_allclose(actual.numpy(), expected.numpy(), 0, TOLERANCE[dtype])


@pytest.mark.cuda
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize(
    "shape", ((1500, 768), (5, 768), (1200, 1100), (3, 4096), (2, 50_000), (1100, 49))
)
def test_long_and_many_rows(shape: Any, dtype: str) -> None:
    there = device()
    x, weight, bias = (
        normal(*form, seed=n).astype(dtype)
        for n, form in enumerate((shape, shape[1:], shape[1:]))
    )
    for fn, operands in (
        (ops.softmax, (x,)),
        (ops.layer_norm, (x, weight, bias)),
        (ops.rms_norm, (x, weight)),
    ):
        actual = fn(*(burn.from_numpy(a, there) for a in operands)).numpy()
        wide = [burn.from_numpy(a.astype("float64")) for a in operands]
        tol = 10 * TOLERANCE[dtype]
        np.testing.assert_allclose(actual, fn(*wide).numpy(), tol, tol)


def test_which_reshapes_are_views() -> None:
    rng = np.random.default_rng(0)
    for _ in range(500):
        shape = tuple(rng.choice([1, 2, 3, 4], rng.integers(1, 5)).tolist())
        array = np.zeros(shape, "float32").transpose(rng.permutation(len(shape)))
        if len(array) > 1 and rng.random() < 0.3:
            array = array[::2]
        rest, wanted = array.size, list[int]()
        while rest > 1 and rng.random() < 0.8:
            wanted.append(
                int(rng.choice([n for n in range(1, rest + 1) if not rest % n]))
            )
            rest //= wanted[-1]
        target = (*wanted, rest)
        shared = np.may_share_memory(array.reshape(target), array)
        assert is_view(array.shape, array.strides, target) == shared


@pytest.mark.cuda
@pytest.mark.parametrize(
    "condition", [True, np.bool_(False), np.array([[True, False]])]
)
def test_selection_by_a_condition_on_the_host(condition: Any) -> None:
    backend = device()
    x, y = (burn.tensor(normal(3, 2, seed=n)).to(backend) for n in range(2))
    actual = ops.where(condition, x, y)
    np.testing.assert_array_equal(
        actual.numpy(), np.where(condition, x.numpy(), y.numpy())
    )
