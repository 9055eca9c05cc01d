"""Linear layers on one row, whose constant weights a generated kernel reads once.

NumPy computes the call until the kernel replaces it, when a plan is first repeated.
"""

from functools import partial
from typing import Any

import numpy as np

from burn.backend.cpu.blas.generated_convolution import is_generated
from burn.backend.cpu.blas.piecewise_linear import PiecewiseLinear, activation_of
from burn.backend.cpu.jit.operands import RowOperands
from burn.backend.cpu.onednn.binding.capture import compact, do, noting
from burn.ops.fused import After
from burn.ops.support import Array

#: The elements of the smallest weights, whose product takes as long as the calls, and
#: of the largest, which plans do not copy.
LEAST, MOST = 1 << 10, 1 << 22


def generated_row(
    x: Array,
    weight: Array,
    bias: Array | None,
    residual: Array | None = None,
    after: After = (),
) -> Array | None:
    """Return a linear layer with its epilogue for x [..., I] of one row.

    None if the plan generates no kernel for it: see :func:`is_generated`; the epilogue
    may consist of the addition of ``residual`` and a piecewise linear activation.
    """
    notes: Any = noting()
    if notes is None or weight.ndim != 2 or not LEAST <= weight.size <= MOST:
        return None
    arrays = [each for each in (x, weight, bias, residual) if each is not None]
    if any(each.dtype != np.float32 for each in arrays):
        return None
    outputs, depth = weight.shape
    if x.size != depth or x.shape[-1:] != (depth,):
        return None
    activation = _activation(after)
    if activation is None or not is_generated(notes, weight, bias):
        return None
    if residual is not None and residual.size != outputs:
        return None
    other = None if residual is None else compact(residual).reshape(outputs)
    out: Array = notes.empty((outputs,), x.dtype)
    row = compact(x).reshape(depth)
    given = RowOperands(row, weight, bias, other, out, activation.numbers())
    do(partial(multiply_row, given))
    return out.reshape(*x.shape[:-1], outputs)


def _activation(after: After) -> PiecewiseLinear | None:
    """Return the activation of an epilogue, which may add a residual before it."""
    links = after[1:] if after[:1] == (("add",),) else after
    if not links:
        return PiecewiseLinear()
    return activation_of(*links[0]) if len(links) == 1 else None


def multiply_row(given: RowOperands) -> None:
    """Write the product and its epilogue to ``given.out``, by NumPy."""
    np.matmul(given.weight, given.x, out=given.out)
    for addend in (given.bias, given.residual):
        if addend is not None:
            np.add(given.out, addend, out=given.out)
    PiecewiseLinear.of(given.activation).apply(given.out)
