"""``einsum`` as oneDNN matrix products.

NumPy uses OpenBLAS for them, whose threads would compete with oneDNN's for a while. In
plans ``einsum`` is lowered to matrix products already.
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
    """Compute :func:`burn.ops.einsum` by matrix products, else with NumPy."""
    out: Array | None = None
    if len(xs) == 2 and current() is not None and noting() is None:
        ranks = [x.ndim for x in xs]
        if are_float32(*xs) and has_matrices(equation, *ranks):
            out = contracted(_EAGER, equation, xs, [x.shape for x in xs])
    return einsum_op.kernel(equation, xs) if out is None else out


class _EagerExecutor:
    """Executor that runs each primitive immediately."""

    def apply(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        shape: tuple[int, ...],
        **static: Any,
    ) -> Array:
        """Return the result of ``primitive`` on arrays."""
        result: Array = primitive.kernel_for(_CPU)(*args, **static)
        return result

    def is_constant(self, value: Array) -> bool:
        """Return False: operands may differ in the next call."""
        return False


_CPU, _EAGER = Cpu(), _EagerExecutor()
