"""Declared properties of primitives, for plans, tapes, ``autocast`` and devices."""

from collections.abc import Callable
from typing import Any, Literal, TypedDict

#: How operands are cast under :func:`burn.nn.autocast`: to the lower precision, not at
#: all (the primitive moves elements or selects among them), or to float32.
CastPolicy = Literal["lower", "keep", "float32"]


class Facts(TypedDict, total=False):
    """Keyword arguments of :func:`burn.primitive.primitive`; all are optional."""

    #: Whether the generic kernel only calls array functions, independently of the
    #: values, so that a plan may capture and replay them.
    traceable: bool
    #: Whether the shapes of results depend on those of the operands alone, so that a
    #: plan may remove a call whose results are unused.
    removable: bool
    #: The position of an operand whose values determine the shapes of results, as in
    #: ``reshape``. If it is a tensor, the call is not removed.
    shaped_by: int | None
    #: Whether the kernel has a result for all floats of the recorded shapes: a call
    #: that cannot fail may run after the results of a plan are computed.
    infallible: bool
    #: The rule of :mod:`burn.ops.bounds` for the magnitudes of results, if any.
    bound: Callable[[Any, Any], float] | None
    #: How operands are cast under :func:`burn.nn.autocast`.
    autocast: CastPolicy
    #: Whether most of the time is spent reading operands and writing results, which
    #: balanced checkpointing recomputes.
    memory_bound: bool
    #: The estimated nanoseconds of NumPy's kernel for an element of the largest
    #: operand, or a rule of :mod:`burn.ops.numpy_times`; None if it is not estimated.
    numpy_time: float | Callable[..., float] | None
    #: The primitive whose gradients it computes: its first operands are those of the
    #: results, and the results.
    gradient_of: Any
    #: Why the primitive has no gradient rule, None if it has one.
    no_gradient: str | None


#: The declarations of norms and softmaxes, without bounds of their results.
NORMALIZATION = Facts(traceable=True, removable=True, memory_bound=True, numpy_time=3.0)
