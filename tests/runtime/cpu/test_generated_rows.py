"""Linear layers on one row are a generated kernel each, with the results of NumPy."""

import platform
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.blas.generated_rows import LEAST, multiply_row
from burn.backend.cpu.blas.piecewise_linear import activation_of
from burn.backend.cpu.jit import machine as machines
from burn.backend.cpu.jit.entries import GENERATED
from burn.backend.cpu.jit.machine import machine
from burn.backend.cpu.jit.operands import RowOperands
from burn.backend.cpu.jit.policy import MEASURED
from burn.backend.cpu.jit.products.single_rows import row_kernel
from burn.backend.cpu.onednn.binding import engine
from tests.runtime.onednn import (
    assert_close,
    assert_trained_alike,
    needs_onednn,
    normal,
)
from tests.sampling import example_count

pytest.importorskip("llvmlite")
needs_measured = pytest.mark.skipif(
    platform.machine() not in MEASURED, reason="BLAS is quicker on this processor"
)

#: Activations of an epilogue, and those that are no part of a kernel.
FUNCTIONS: dict[str, Any] = {
    "relu": ops.relu,
    "clip": lambda x: ops.clip(x, -0.5, 0.75),
    "hard_sigmoid": lambda x: ops.hard_sigmoid(x, alpha=0.3, beta=0.4),
    "hard_swish": ops.hard_swish,
    "silu": ops.silu,
}
ENDINGS = [
    *((), ("relu",), ("clip",), ("hard_sigmoid",), ("hard_swish",), ("add",)),
    *(("add", "relu"), ("add", "hard_swish"), ("relu", "add"), ("silu",)),
    ("relu", "hard_swish"),
]


@settings(max_examples=example_count(60), deadline=None)
@given(
    outputs=st.sampled_from([1, 3, 16, 31, 64, 65, 130, 200]),
    depth=st.sampled_from([1, 2, 17, 64]),
    floats=st.sampled_from([4, 8, 16]),
    has_bias=st.booleans(),
    has_residual=st.booleans(),
    is_transposed=st.booleans(),
    activation=st.sampled_from(
        [("clip", -np.inf, np.inf), ("relu",), ("clip", -0.5, 0.75)]
        + [("hard_sigmoid", 0.2, 0.5), ("hard_swish",)]
    ),
)
def test_kernels_write_what_numpy_does(
    outputs: int,
    depth: int,
    floats: int,
    has_bias: bool,
    has_residual: bool,
    is_transposed: bool,
    activation: Any,
) -> None:
    weight = normal(depth, outputs).T if is_transposed else normal(outputs, depth)
    function = activation_of(*activation)
    assert function is not None
    guarded = np.full(outputs + 1, np.nan, np.float32)
    operands = RowOperands(
        normal(depth, seed=1),
        weight,
        normal(outputs, seed=2) if has_bias else None,
        normal(outputs, seed=3) if has_residual else None,
        guarded[:outputs],
        function.numbers(),
    )
    expected = operands._replace(out=np.empty(outputs, np.float32))
    multiply_row(expected)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(machine(), "floats", floats)
        kernel = row_kernel(operands)
    made = machine().call(kernel)
    for _ in range(2):
        made.call()
        assert_close(operands.out, expected.out)
        assert np.isnan(guarded[-1])


@settings(max_examples=example_count(30), deadline=None)
@given(
    shape=st.sampled_from([(1,), (1, 1), (1, 1, 1), (2,), (2, 1), ()]),
    outputs=st.sampled_from([40, 200]),
    depth=st.sampled_from([8, 100]),
    has_bias=st.booleans(),
    after=st.sampled_from(ENDINGS),
    is_numpy=st.booleans(),
)
def test_plans(
    shape: tuple[int, ...],
    outputs: int,
    depth: int,
    has_bias: bool,
    after: tuple[str, ...],
    is_numpy: bool,
) -> None:
    weight = burn.from_numpy(normal(outputs, depth, seed=1))
    bias = burn.from_numpy(normal(outputs, seed=2)) if has_bias else None

    def run(x: Any, other: Any) -> Any:
        y = ops.linear(x, weight, bias)
        for name in after:
            y = y + other if name == "add" else FUNCTIONS[name](y)
        return y

    plan = burn.compile(run)
    for seed in range(4):
        x = burn.from_numpy(normal(*shape, depth, seed=seed))
        other = burn.from_numpy(normal(*shape, outputs, seed=seed + 9))
        with engine.numpy_only():
            expected = run(x, other).numpy()
        if is_numpy:
            with engine.numpy_only():
                actual = plan(x, other).numpy()
        else:
            actual = plan(x, other).numpy()
        assert actual.shape == expected.shape
        assert_close(actual, expected)


@needs_onednn  # without it other layers are generated as well
@needs_measured
@pytest.mark.parametrize(
    ("rows", "outputs", "is_generated"),
    [(1, LEAST // 16, True), (1, LEAST // 16 - 1, False), (2, LEAST, False)],
)
def test_one_row_of_constant_weights_is_a_kernel(
    rows: int, outputs: int, is_generated: bool
) -> None:
    weights = [burn.from_numpy(normal(outputs, 16, seed=n)) for n in range(4)]
    plan = burn.compile(lambda *xs: list(map(ops.linear, xs, weights)))
    xs = [burn.from_numpy(normal(rows, 16, seed=n)) for n in range(4)]
    for _ in range(3):
        plan(*xs)
    used = [row.kernels for row in plan.profile(*xs).rows]
    assert any(GENERATED in kernels for kernels in used) is is_generated


def test_weights_that_are_set_are_read_again() -> None:
    layer = burn.nn.Linear(64, 200)
    plan = burn.compile(layer)
    x = burn.from_numpy(normal(1, 64))
    for seed in range(8):
        layer.weight.set(burn.from_numpy(normal(200, 64, seed=seed)))
        for _ in range(3):
            assert_close(plan(x).numpy(), layer(x).numpy())


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_as_in_eager_calls(value: float) -> None:
    weight = burn.from_numpy(normal(200, 64))
    plan = burn.compile(lambda x: ops.relu(ops.linear(x, weight)))
    for seed in range(5):
        array = normal(1, 64, seed=seed)
        array[0, 5] = value if seed == 3 else 0
        x = burn.from_numpy(array)
        expected = ops.relu(ops.linear(x, weight)).numpy()
        np.testing.assert_allclose(plan(x).numpy(), expected, 1e-4, 1e-4)


class Rows(burn.nn.Module):
    """Linear layers that are trained on one row."""

    def __init__(self) -> None:
        self.first = burn.nn.Linear(64, 96)
        self.second = burn.nn.Linear(96, 32)

    def __call__(self, x: Any) -> Any:
        return ops.relu(self.second(ops.relu(self.first(x))))


def test_weights_that_are_trained() -> None:
    assert_trained_alike(Rows, 1, 64, scale=1 / 8)


def test_threads_share_a_large_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sums of a column are the same for any number of threads."""
    weight = burn.from_numpy(normal(600, 700))
    x = burn.from_numpy(normal(1, 700))
    results = []
    for least in (1, 1 << 40):
        monkeypatch.setattr(machines, "SHARED", least)
        plan = burn.compile(lambda x: ops.linear(x, weight))
        results.append([plan(x).numpy() for _ in range(3)][-1])
    np.testing.assert_array_equal(results[0], results[1])
