"""Constants: their values, and how they meet tensors of devices and of the tape."""

from functools import partial

import numpy as np
import pytest

import burn
from burn import ops
from tests.runtime.gradcheck import check_gradient
from tests.runtime.onnx_node import run_node as run_opset

run_node = partial(run_opset, opset=21)


def test_full_and_its_kin() -> None:
    shape = burn.tensor([2, 3, 4])
    assert ops.full(shape, 1.5).dtype == burn.float32
    assert ops.full((2, 0), True).dtype == burn.bool_
    assert ops.zeros(shape, dtype=burn.int8).numpy().sum() == 0
    assert ops.ones((2, 3)).tolist() == [[1.0] * 3] * 2
    x = burn.tensor(np.zeros((2, 3), np.float16))
    assert ops.ones_like(x).dtype == burn.float16
    assert ops.zeros_like(x, dtype=burn.int64).dtype == burn.int64
    np.testing.assert_array_equal(ops.eye(2, 4, 1).numpy(), np.eye(2, 4, 1))
    check_gradient(lambda v: ops.full((2, 3), v), np.array([[0.5]]))
    check_gradient(lambda v: ops.full_like(x, v, dtype=burn.float64), np.array(0.5))


def test_constants_meet_every_backend() -> None:
    x = burn.tensor(np.arange(6.0).reshape(2, 3))
    tracked = x.to(burn.Autodiff(burn.Cpu())).require_grad()
    constant = ops.ones((2, 3), dtype=burn.float64) + ops.arange(3)
    assert constant.backend.level == 0
    assert (constant + x).backend is burn.Cpu()
    assert (x * constant).backend is burn.Cpu()
    total = ops.sum(constant * tracked)
    assert total.backend is tracked.backend
    np.testing.assert_array_equal(
        total.backward()[tracked].numpy(), [[1.0, 2.0, 3.0]] * 2
    )


@pytest.mark.parametrize(
    ("start", "stop", "step"),
    [(0, 7, 2), (5, -3, -2), (1.0, 2.0, 0.3), (3, 3, 1), (2.5, -1.0, -0.6)],
)
def test_arange(start: float, stop: float, step: float) -> None:
    kind = np.int64 if isinstance(start, int) else np.float32
    operands = [np.array(v, kind) for v in (start, stop, step)]
    (expected,) = run_node("Range", *operands)
    actual = ops.arange(*map(burn.tensor, operands))
    assert actual.dtype == kind
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6)
    plain = ops.arange(start, stop, step)
    assert plain.dtype == kind
    assert plain.shape == expected.shape


def test_arange_from_a_shape_and_without_a_step() -> None:
    x = burn.tensor(np.zeros((3, 4)))
    assert ops.arange(ops.shape(x)[1]).tolist() == [0, 1, 2, 3]
    assert ops.arange(3, dtype=burn.float16).dtype == burn.float16
    with pytest.raises(ValueError, match="step"):
        ops.arange(0, 4, 0)


def test_a_dtype_in_the_place_of_a_backend_is_refused() -> None:
    with pytest.raises(
        TypeError, match=r"expected a backend .* got <class .*dtype=\.\."
    ):
        burn.tensor([1.0], np.float32)  # type: ignore[arg-type]
    assert burn.tensor([1.0], dtype=burn.float64).dtype == np.float64
