"""Products of matrices by oneDNN are NumPy's."""

import gc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
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
extents = st.sampled_from([1, 2, 3, 5, 16, 17, 64])


@st.composite
def matrices(draw: st.DrawFn) -> tuple[Any, Any]:
    """Two operands, batched or not, whose axes are in memory in any order."""
    n, k, m = draw(extents), draw(extents), draw(extents)
    batch = tuple(draw(st.integers(1, 3)) for _ in range(draw(st.integers(0, 2))))
    left = batch[draw(st.integers(0, len(batch))) :]
    other = draw(st.sampled_from(["same", "one", "none"]))
    right = {"same": batch, "one": tuple(1 for _ in batch), "none": ()}[other]
    x, y = normal(*left, n, k), normal(*right, k, m, seed=1)
    orders = [draw(st.permutations(range(a.ndim))) for a in (x, y)]
    return laid_out(x, orders[0]), laid_out(y, orders[1])


@settings(max_examples=example_count(120))
@given(operands=matrices())
def test_matmul(operands: Any) -> None:
    compare(ops.matmul, *operands)


@settings(max_examples=example_count(60))
@given(
    rows=st.lists(extents, min_size=0, max_size=3),
    inputs=extents,
    outputs=extents,
    order=st.permutations(range(2)),
    biased=st.booleans(),
)
def test_linear(
    rows: list[int], inputs: int, outputs: int, order: Any, biased: bool
) -> None:
    weight = laid_out(normal(outputs, inputs, seed=1), order)
    bias = normal(outputs, seed=2) if biased else None
    compare(ops.linear, normal(*rows, inputs), weight, bias)


def test_parts_of_arrays_are_read_in_place_or_copied() -> None:
    whole = normal(6, 40, 30)
    compare(ops.matmul, whole[::2, 3:20, :12], whole[1::2, 2:14, 5:])
    compare(ops.matmul, whole[:, ::2, ::3], whole[:, :10])
    compare(ops.matmul, whole[:, ::-1], whole.transpose(0, 2, 1))
    compare(ops.matmul, np.broadcast_to(whole[:1], whole.shape), whole.mT)
    compare(ops.linear, whole[:, 1::3], normal(7, 30))


def test_heads_are_read_by_their_strides() -> None:
    x = normal(2, 9, 4, 16).transpose(0, 2, 1, 3)
    session = engine.current()
    assert session is not None
    compare(ops.matmul, x, x.mT)


def test_batches_that_spread_both_ways() -> None:
    x, y = burn.from_numpy(normal(3, 1, 5, 8)), burn.from_numpy(normal(1, 4, 8, 6))
    with engine.whatever_size():
        actual = ops.matmul(x, y)
    with engine.numpy_only():
        assert_close(actual.numpy(), ops.matmul(x, y).numpy())


def test_operands_that_do_not_fit_are_refused_as_by_numpy() -> None:
    x, y = burn.from_numpy(normal(3, 5, 8)), burn.from_numpy(normal(2, 8, 6))
    with engine.whatever_size():
        with pytest.raises(ValueError, match="broadcast"):
            ops.matmul(x, y)
        with pytest.raises(ValueError, match="mismatch"):
            ops.matmul(x, x)
        with pytest.raises(ValueError, match="expected 7 features"):
            ops.linear(x, burn.from_numpy(normal(4, 7)))


@pytest.mark.parametrize("dtype", [np.float64, np.int64, np.int8])
def test_other_dtypes_are_numpys(dtype: Any) -> None:
    x = burn.from_numpy((normal(20, 20) * 5).astype(dtype))
    with engine.whatever_size():
        actual = ops.matmul(x, x)
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual.numpy(), x.numpy() @ x.numpy())


def test_a_parameter_is_packed_at_its_second_product_and_never_stale() -> None:
    session = engine.current()
    assert session is not None
    x = burn.from_numpy(normal(8, 32))
    parameter = burn.Parameter(burn.from_numpy(normal(48, 32)))
    with engine.whatever_size():
        for step in range(4):
            before = session.packed.size()
            ops.linear(x, parameter)
            assert session.packed.size() == before
            for _ in range(2):
                actual = ops.linear(x, parameter)
                with engine.numpy_only():
                    expected = ops.linear(x, parameter)
                assert_close(actual.numpy(), expected.numpy())
            parameter.set(parameter.value - normal(48, 32, seed=step))


def test_one_array_is_packed_for_each_way_it_is_read() -> None:
    weight = burn.from_numpy(normal(32, 32))
    x = burn.from_numpy(normal(8, 32, seed=1))
    with engine.whatever_size():
        for _ in range(3):
            actual = [ops.linear(x, weight), ops.matmul(x, weight)]
    np.testing.assert_allclose(
        actual[0].numpy(), x.numpy() @ weight.numpy().T, 1e-4, 1e-4
    )
    np.testing.assert_allclose(
        actual[1].numpy(), x.numpy() @ weight.numpy(), 1e-4, 1e-4
    )


def test_one_row_has_its_own_code() -> None:
    both(ops.linear, normal(1, 64), normal(64, 64))
    session = engine.current()
    assert session is not None
    assert not any(
        name.startswith("brg") for name in session.primitives.implementations()
    )


def test_bias_that_is_broadcast_is_numpys() -> None:
    x, weight = burn.from_numpy(normal(8, 32)), burn.from_numpy(normal(16, 32))
    bias = burn.from_numpy(normal(1))
    with engine.whatever_size():
        actual = ops.linear(x, weight, bias)
    assert_close(actual.numpy(), x.numpy() @ weight.numpy().T + bias.numpy())


@pytest.mark.parametrize(
    ("shape", "tiny"), [((8, 9, 3, 4, 5), True), ((1, 40, 3, 2, 33), False)]
)
def test_heads_of_attention(shape: tuple[int, ...], tiny: bool) -> None:
    """Many small matrices are copied first, where others are read by their strides."""
    batch, length, _, heads, size = shape
    x = normal(batch, length, 3 * heads * size)

    def run(x: Any) -> Any:
        q, k, v = ops.permute(ops.reshape(x, shape), (2, 0, 3, 1, 4))
        result = ops.permute((q @ k.mT) @ v, (0, 2, 1, 3))
        return ops.reshape(result, (batch, length, heads * size))

    both(ops.matmul, normal(4, 9, 5), normal(4, 5, 9))
    session = engine.current()
    assert session is not None
    if any(name.startswith("gemm") for name in session.primitives.implementations()):
        pytest.skip("there is one code for all products on this processor")
    session.primitives.clear()
    compiled = burn.compile(run)
    for _ in range(3):
        actual = compiled(burn.tensor(x)).numpy()
    used = session.primitives.implementations()
    assert used
    assert any(name.startswith("gemm") for name in used) is not tiny
    with engine.numpy_only():
        assert_close(actual, run(burn.tensor(x)).numpy())


@pytest.mark.parametrize("shape", [(3, 4, 16), (2, 2, 5, 16)])
def test_one_token_of_each_sequence_is_multiplied_like_dense_rows(
    shape: tuple[int, ...],
) -> None:
    """Code for any strides, whose first call is slow, is not used for few rows."""
    weight = burn.nn.Parameter(burn.from_numpy(normal(24, 16, seed=1)))
    bias = burn.nn.Parameter(burn.from_numpy(normal(24, seed=2)))

    def token(x: burn.Tensor) -> burn.Tensor:
        return ops.tanh(ops.linear(ops.exp(x)[..., 1, :], weight, bias))

    def dense(x: burn.Tensor) -> burn.Tensor:
        return ops.tanh(ops.linear(ops.exp(x), weight, bias))

    compiled = [burn.compile(token), burn.compile(dense)]
    for seed in range(3):
        x = burn.from_numpy(normal(*shape, seed=seed))
        for function, expected in zip(compiled, (token(x), dense(x)), strict=True):
            assert_close(function(x).numpy(), expected.numpy())
    kernels = [
        {kernel for row in each.profile(x).rows for kernel in row.kernels}
        for each in compiled
    ]
    assert ("gemm:jit:f32" in kernels[0]) <= ("gemm:jit:f32" in kernels[1])
    broken = np.full(shape, np.nan, np.float32)
    assert np.isnan(compiled[0](burn.from_numpy(broken)).numpy()).all()


def test_plans_pack_constant_weights_for_one_row_unless_they_are_large() -> None:
    session = engine.current()
    assert session is not None
    x, sizes, plans = burn.from_numpy(normal(1, 512)), [], []
    for rows in (1024, (1 << 22) // 512 + 1):
        weight = burn.from_numpy(normal(rows, 512))
        gc.collect()  # what other tests have packed goes now
        before = session.packed.size()
        plan = burn.compile(
            lambda x, weight=weight: ops.linear(x, weight), generated=False
        )
        plans.append(plan)  # packed weights go with their array
        expected = x.numpy() @ weight.numpy().T
        for _ in range(3):
            np.testing.assert_allclose(plan(x).numpy(), expected, atol=1e-3)
        sizes.append(session.packed.size() - before)
    assert sizes == [1024 * 512 * 4, 0]
