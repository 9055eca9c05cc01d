"""Mixed precision: a context that casts the operands of primitives."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import numpy as np

from burn import dtypes, ops
from burn.backend.autodiff import is_in_backward
from burn.backend.base import Backend, map_structure
from burn.box import Box
from burn.dtypes import DType
from burn.primitive import RECORDER, Composite, Primitive, recording
from burn.tensor import Tensor

#: The precisions of :func:`autocast` and :func:`burn.train.step`.
Precision = Literal["float32", "bf16", "fp16"]
LOWER: dict[str, DType] = {"bf16": dtypes.bfloat16, "fp16": dtypes.float16}


@contextmanager
def autocast(precision: Precision) -> Iterator[None]:
    """Compute matrix products and convolutions in a lower precision in this context.

    Operands of ``linear``, ``matmul``, ``einsum``, convolutions, ``attention``,
    recurrent layers and ``prelu`` are cast from float32 to ``precision``, as by
    ``torch.autocast``. Inside of attention and recurrent layers softmax and the state
    from step to step are float32. Primitives that move elements, such as ``reshape``,
    keep the dtype; all others cast operands of the lower precision to float32. Weights
    stay float32, and gradients by weights are float32: casts are part of the tape. Call
    ``backward`` outside of the context or within; gradients have the dtypes of the
    forward pass. With ``"fp16"`` scale the loss by :class:`burn.optim.GradScaler`.

    Raises:
        ValueError: there is no such precision.
    """
    check_precision(precision)
    if precision == "float32":
        yield
        return
    with recording(_Autocast(LOWER[precision])):
        yield


def check_precision(precision: str) -> None:
    """Raise ``ValueError`` for a precision that :func:`autocast` does not support."""
    if precision != "float32" and precision not in LOWER:
        names = ", ".join(map(repr, ("float32", *LOWER)))
        raise ValueError(f"expected a precision of {names}, got {precision!r}")


class _Autocast(Backend):
    """A backend that casts the operands of every call in its context."""

    level = math.inf
    keeps_composites = True

    def __init__(self, dtype: DType) -> None:
        self._dtype, self._outer = dtype, RECORDER.get()

    def call(
        self,
        primitive: Primitive[..., Any],
        args: tuple[Any, ...],
        static: dict[str, Any],
    ) -> Any:
        if isinstance(primitive, Composite):  # its body runs in the context as well
            if primitive.autocast == "lower" and not is_in_backward():
                args = self._cast(primitive, args)
            return primitive.kernel(*args, **static)
        token = RECORDER.set(self._outer)
        try:
            if not primitive.host and not is_in_backward():
                args = self._cast(primitive, args)
            return primitive(*args, **static)
        finally:
            RECORDER.reset(token)

    def _cast(self, primitive: Primitive[..., Any], args: Any) -> Any:
        policy = primitive.autocast
        if policy == "keep":
            present: set[DType] = set()
            map_structure(lambda leaf: present.add(_dtype_of(leaf)), args)
            if not {self._dtype, dtypes.float32} <= present:
                return args
        before, after = self._dtype, dtypes.float32
        if policy == "lower":
            before, after = after, before

        def convert(leaf: Any) -> Any:
            return ops.cast(leaf, dtype=after) if _dtype_of(leaf) == before else leaf

        return map_structure(convert, args)

    def from_numpy(self, array: np.ndarray[Any, Any]) -> Any:
        raise AssertionError("no tensor is on this backend")

    def to_numpy(self, data: Any) -> np.ndarray[Any, Any]:
        raise AssertionError("no tensor is on this backend")


def _dtype_of(leaf: Any) -> Any:
    return leaf.dtype if isinstance(leaf, Tensor | Box | np.ndarray) else None


def widened(leaf: Any) -> Any:
    """Return a tensor of a lower precision as float32, and other values unchanged."""
    if isinstance(leaf, Tensor) and leaf.dtype in LOWER.values():
        return ops.cast(leaf, dtype=dtypes.float32)
    return leaf
