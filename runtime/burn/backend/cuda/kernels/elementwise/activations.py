"""Activations as single elementwise kernels, in the operand's memory order."""

from collections.abc import Callable
from functools import cache
from typing import Any, Literal

import numpy as np

from burn.backend.cuda.device import Cuda
from burn.backend.cuda.kernels.elementwise.elementwise import preserving
from burn.ops import activation
from burn.ops.support import Array
from burn.primitive import Primitive

_TYPES = (np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64))
#: The type that an element is computed in, and a clip that keeps NaN.
_PREAMBLE = """
template <class T> struct Wide { typedef T type; };
template <> struct Wide<float16> { typedef float type; };
template <class W> __device__ W unit(W v) {
    return v > 1 ? W(1) : v < 0 ? W(0) : v;
}
"""
# `v` is the element.
ERF = "v * W(0.5) * (1 + erf(v * W(0.70710678118654752)))"
TANH = (
    "v * W(0.5) * " "(1 + tanh(W(0.79788456080286536) * v * (1 + W(0.044715) * v * v)))"
)
_SOFTPLUS = "log1p(exp(-fabs(v))) + (v > 0 ? v : W(0))"
#: The formula of an activation, and its parameters with their defaults.
FORMULAS: dict[Primitive[..., Any], tuple[str, dict[str, float]]] = {
    activation.sigmoid: ("1 / (1 + exp(-v))", {}),
    activation.silu: ("v / (1 + exp(-v))", {}),
    activation.softplus: (_SOFTPLUS, {}),
    activation.mish: (f"v * tanh({_SOFTPLUS})", {}),
    activation.hard_sigmoid: ("unit<W>(v * alpha + beta)", {"alpha": 0.2, "beta": 0.5}),
    activation.hard_swish: ("v * unit<W>(v / 6 + W(0.5))", {}),
}


@cache
def _kernel(name: str, formula: str, parameters: tuple[str, ...]) -> Any:
    import cupy

    operands = ["T x", *(f"float64 {parameter}_" for parameter in parameters)]
    declarations = "".join(f"const W {p} = (W){p}_; " for p in parameters)
    body = f"typedef typename Wide<T>::type W; const W v = (W)x; {declarations}"
    return cupy.ElementwiseKernel(
        ", ".join(operands),
        "T y",
        f"{body} y = (T)({formula})",
        f"burn_{name}",
        preamble=_PREAMBLE,
    )


def _register(
    op: Primitive[..., Any], formula: str, defaults: dict[str, float]
) -> None:
    def run(x: Array, **static: Any) -> Array:
        if x.dtype not in _TYPES:
            result: Array = op.kernel(x, **static)
            return result
        values = ({**defaults, **static}[name] for name in defaults)
        return _apply(_kernel(op.name, formula, tuple(defaults)), x, *values)

    run.__doc__ = f":func:`burn.ops.{op.name}` in one kernel."
    op.on(Cuda)(run)


def _apply(kernel: Callable[..., Any], x: Array, *parameters: float) -> Array:
    result: Array = preserving(kernel)(x, *parameters)
    return result


for _op, (_formula, _defaults) in FORMULAS.items():
    _register(_op, _formula, _defaults)


@activation.gelu.on(Cuda)
def gelu(x: Array, *, approximate: Literal["none", "tanh"] = "none") -> Array:
    """Compute :func:`burn.ops.gelu` in one kernel."""
    if x.dtype not in _TYPES:
        result: Array = activation.gelu.kernel(x, approximate=approximate)
        return result
    formula = TANH if approximate == "tanh" else ERF
    return _apply(_kernel(f"gelu_{approximate}", formula, ()), x)
