"""Rounding to what integers stand for, whose gradient passes through it."""

import numpy as np

import burn
from burn import ops


def test_gradient_is_that_of_x_where_it_is_in_range() -> None:
    tape = burn.Autodiff(burn.Cpu())
    x = burn.tensor(np.array([-9.0, -1.3, 0.2, 4.9, 5.3, 9.0], np.float32)).to(tape)
    x = x.require_grad()
    scale, shift = np.float32(0.5), np.float32(2)
    y = ops.fake_quantize(x, scale, shift, low=0, high=12)
    np.testing.assert_allclose(y.numpy(), [-1, -1, 0, 5, 5, 5])
    found = (y * np.arange(1, 7, dtype=np.float32)).sum().backward()[x].numpy()
    np.testing.assert_array_equal(found, [0, 0, 3, 4, 0, 0])
