"""Sums in Einstein's notation as oneDNN's products of matrices.

NumPy makes products of them too, but by OpenBLAS, whose threads would be in the way of
those of oneDNN for a while. In plans they are such products already.
"""

from typing import Any

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.capture import noting
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.memory import Array
from burn.backend.cpu.onednn.binding.operands import are_float32
from burn.ops.contraction import contracted, has_matrices
from burn.ops.matmul import einsum as einsum_op
from burn.primitive import Primitive


@einsum_op.on(Cpu)
def einsum(equation: str, xs: list[Array]) -> Array:
    """:func:`burn.ops.einsum` by products of matrices, by NumPy where it is none."""
    out: Array | None = None
    if len(xs) == 2 and current() is not None and noting() is None:
        ranks = [x.ndim for x in xs]
        if are_float32(*xs) and has_matrices(equation, *ranks):
            out = contracted(_EAGER, equation, xs, [x.shape for x in xs])
    return einsum_op.kernel(equation, xs) if out is None else out


class _EagerExecutor:
    """Executor that runs each primitive immediately."""

    def made(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        shape: tuple[int, ...],
        **static: Any,
    ) -> Array:
        """The result of ``primitive`` on arrays."""
        result: Array = primitive.kernel_for(_CPU)(*args, **static)
        return result

    def is_constant(self, value: Array) -> bool:
        """Return False: operands may differ in the next call."""
        return False


_CPU, _EAGER = Cpu(), _EagerExecutor()
