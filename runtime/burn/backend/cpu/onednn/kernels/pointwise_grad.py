"""Gradients of activations with oneDNN, in one pass over both operands."""

from typing import Any

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import (
    DIFF_DST,
    DIFF_SRC,
    GELU_ERF,
    GELU_TANH,
    RELU,
    SRC,
    TRAINING,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import empty_like, has_nan, like_memory
from burn.backend.cpu.onednn.binding.engine import current, limits
from burn.backend.cpu.onednn.binding.memory import Array, address, is_dense, strided
from burn.backend.cpu.onednn.binding.operands import FLOAT32
from burn.backend.cpu.onednn.binding.prepared import Operands, Ready, described
from burn.ops import activation

_COST = 16
_GELU = {"none": GELU_ERF, "tanh": GELU_TANH}


@activation.relu_grad.on(Cpu)
def relu_grad(grad: Array, out: Array) -> Array:
    """Compute :func:`burn.ops.relu_grad` with oneDNN if faster, else with NumPy."""
    result = _multiply_derivative(grad, out, limits().simple_elements, RELU)
    if result is None or has_nan(result, part=result):
        return activation.relu_grad.kernel(grad, out)
    return result


@activation.gelu_grad.on(Cpu)
def gelu_grad(grad: Array, x: Array, *, approximate: Any = "none") -> Array:
    """Compute :func:`burn.ops.gelu_grad` with oneDNN if faster, else with NumPy."""
    result = _multiply_derivative(grad, x, limits().elements, _GELU[approximate])
    if result is None or has_nan(result):
        return activation.gelu_grad.kernel(grad, x, approximate=approximate)
    return result


def _multiply_derivative(grad: Array, x: Array, least: int, kind: int) -> Array | None:
    """Return ``grad`` times the derivative at ``x``; None to compute it with NumPy."""
    if x.dtype != FLOAT32 or grad.dtype != FLOAT32 or grad.shape != x.shape:
        return None
    session = current() if x.size >= max(least, 1) else None
    if session is None or not is_dense(x):
        return None
    grad = like_memory(grad, x)

    def make(primitives: Primitives) -> "_Pair | None":
        return _prepare(primitives, x.size, kind)

    key = ("pointwise-grad", x.size, kind)
    kernel: _Pair | None = session.primitives.get(key, make, x.size * _COST)
    return None if kernel is None else kernel.run(grad, x)


class _Pair(Ready):
    """The gradient of a number of elements, in any memory order."""

    __slots__ = ()

    def run(self, grad: Array, x: Array) -> Array:
        """Return the result, in the memory order of both."""
        out = empty_like(grad)
        self._prepared.run(address(grad), address(x), address(out))
        return out


def _prepare(primitives: Primitives, size: int, kind: int) -> _Pair | None:
    api = primitives.api
    line = strided(api, (size,), (1,))
    hint = described(
        *(api, "eltwise_forward", api.engine, TRAINING, kind, line, line, 0.0, 0.0)
    )
    description = hint and described(
        *(api, "eltwise_backward", api.engine, kind, line, line, line),
        *(0.0, 0.0, hint.handle),
    )
    if description is None:
        return None
    operands: Operands = [(DIFF_DST, line), (SRC, line), (DIFF_SRC, line)]
    return _Pair(primitives.prepared(description, operands))
