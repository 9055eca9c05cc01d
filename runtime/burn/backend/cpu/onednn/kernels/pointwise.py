"""Activations with oneDNN that equal NumPy's at infinities and NaN.

oneDNN's ``relu`` and ``clip`` replace NaN by a number, so NumPy computes these. NumPy
also recomputes results that are NaN: some implementations return NaN at infinities.
"""

from collections.abc import Callable
from typing import Any, TypeAlias

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import (
    DST,
    ELU,
    GELU_ERF,
    GELU_TANH,
    HARD_SIGMOID,
    HARD_SWISH,
    INFERENCE,
    LINEAR,
    LOGISTIC,
    MISH,
    RELU,
    SOFT_RELU,
    SRC,
    SWISH,
    TANH,
    WEIGHTS,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import compact, empty_like, has_nan, noting
from burn.backend.cpu.onednn.binding.engine import current, limits
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    is_dense,
    of_array,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import are_float32, form, is_computed
from burn.backend.cpu.onednn.binding.prepared import Operands, Ready, described
from burn.ops import activation
from burn.ops.activation import SELU_ALPHA, SELU_GAMMA
from burn.primitive import Primitive

# An element of an activation takes as long as that many multiplications.
_COST = 16
#: An activation of the library's, and its numbers.
Kind: TypeAlias = tuple[float, ...]
_GELU = {"none": GELU_ERF, "tanh": GELU_TANH}


@activation.tanh.on(Cpu)
def tanh(x: Array) -> Array:
    """Compute :func:`burn.ops.tanh` with oneDNN if that is faster, else with NumPy."""
    out = _activate(x, limits().simple_elements, TANH)
    return activation.tanh.kernel(x) if out is None else out


@activation.sigmoid.on(Cpu)
def sigmoid(x: Array) -> Array:
    """Compute :func:`burn.ops.sigmoid` with oneDNN if faster, else with NumPy."""
    out = _activate(x, limits().simple_elements, LOGISTIC)
    return activation.sigmoid.kernel(x) if out is None else out


@activation.leaky_relu.on(Cpu)
def leaky_relu(x: Array, *, alpha: float = 0.01) -> Array:
    """Compute :func:`burn.ops.leaky_relu` with oneDNN if faster, else with NumPy."""
    out = None
    if alpha != 0:  # without a slope NaN would become 0, and minus infinity NaN
        out = _activate(x, limits().elements, RELU, alpha)
    return activation.leaky_relu.kernel(x, alpha=alpha) if out is None else out


@activation.gelu.on(Cpu)
def gelu(x: Array, *, approximate: Any = "none") -> Array:
    """Compute :func:`burn.ops.gelu` with oneDNN if that is faster, else with NumPy."""
    out = _activate(x, limits().elements, _GELU[approximate])
    if out is None or has_nan(out):
        return activation.gelu.kernel(x, approximate=approximate)
    return out


@activation.silu.on(Cpu)
def silu(x: Array) -> Array:
    """Compute :func:`burn.ops.silu` with oneDNN if that is faster, else with NumPy."""
    out = _activate(x, limits().simple_elements, SWISH, 1.0)
    return activation.silu.kernel(x) if out is None or has_nan(out) else out


def _register_with_nan_check(
    op: Primitive[..., Any], kind: int, alpha: float = 0.0, beta: float = 0.0
) -> Callable[[Array], Array]:
    """Return the kernel of an activation; NumPy computes it if oneDNN returns NaN."""

    def kernel(x: Array) -> Array:
        out = _activate(x, limits().elements, kind, alpha, beta)
        return op.kernel(x) if out is None or has_nan(out) else out

    op.on(Cpu)(kernel)
    return kernel


def _register_for_plans(
    op: Primitive[..., Any], kinds: Callable[..., tuple[Kind, ...]]
) -> Callable[..., Array]:
    """Return the kernel of an activation that oneDNN computes for finite numbers only.

    It applies ``kinds`` in sequence.
    """

    def kernel(x: Array, **static: float) -> Array:
        out = None if noting() is None else _apply_each(x, kinds(**static))
        return op.kernel(x, **static) if out is None else out

    op.on(Cpu)(kernel)
    return kernel


def _apply_each(x: Array, kinds: tuple[Kind, ...]) -> Array | None:
    out: Array | None = x
    for kind, *numbers in kinds:
        if out is not None:
            out = _activate(out, 0, int(kind), *numbers)
    return out


def _selu(alpha: float = SELU_ALPHA, gamma: float = SELU_GAMMA) -> tuple[Kind, ...]:
    return (ELU, alpha), (LINEAR, gamma)


def _celu(alpha: float = 1.0) -> tuple[Kind, ...]:
    return ((LINEAR, 1 / alpha), (ELU, 1.0), (LINEAR, alpha)) if alpha else ()


elu = _register_for_plans(activation.elu, lambda alpha=1.0: ((ELU, alpha),))
selu = _register_for_plans(activation.selu, _selu)
celu = _register_for_plans(activation.celu, _celu)
softplus = _register_for_plans(activation.softplus, lambda: ((SOFT_RELU, 1.0),))
hard_sigmoid = _register_for_plans(
    activation.hard_sigmoid, lambda alpha=0.2, beta=0.5: ((HARD_SIGMOID, alpha, beta),)
)
mish = _register_with_nan_check(activation.mish, MISH)
hard_swish = _register_with_nan_check(activation.hard_swish, HARD_SWISH, 1 / 6, 0.5)


def _activate(
    x: Array, least: int, kind: int, alpha: float = 0.0, beta: float = 0.0
) -> Array | None:
    """Return the activation of ``x`` in its memory order; None to use NumPy."""
    if not is_computed(x) or x.size < least or not x.size:
        return None
    session = current()
    if session is not None and not is_dense(x) and noting() is not None:
        x = compact(x)
    if session is None or not is_dense(x):
        return None

    def make(primitives: Primitives) -> "_Eltwise | None":
        return _prepare(primitives, x, kind, alpha, beta)

    key = ("pointwise", x.size, x.dtype.char, kind, alpha, beta)
    kernel: _Eltwise | None = session.primitives.get(key, make, x.size * _COST)
    return None if kernel is None else kernel.run(x)


class _Eltwise(Ready):
    """An activation of a number of elements, in any memory order."""

    __slots__ = ()

    def run(self, x: Array) -> Array:
        """Return the result, in the memory order of ``x``."""
        out = empty_like(x)
        self._prepared.run(address(x), address(out))
        return out


def _prepare(
    primitives: Primitives, x: Array, kind: int, alpha: float, beta: float
) -> _Eltwise | None:
    api = primitives.api
    line = strided(api, (x.size,), (1,), x.dtype)
    description = described(
        *(api, "eltwise_forward", api.engine, INFERENCE, kind),
        *(line, line, alpha, beta),
    )
    if description is None:
        return None
    return _Eltwise(primitives.prepared(description, [(SRC, line), (DST, line)]))


@activation.prelu.on(Cpu)
def prelu(x: Array, slope: Array) -> Array:
    """Compute :func:`burn.ops.prelu` with oneDNN in plans, else with NumPy."""
    out = None
    if noting() is not None and are_float32(x, slope) and slope.ndim <= x.ndim:
        out = _prelu(x, slope)
    return activation.prelu.kernel(x, slope) if out is None else out


def _prelu(x: Array, slope: Array) -> Array | None:
    session = current()
    wide = slope.reshape((1,) * (x.ndim - slope.ndim) + slope.shape)
    fits = all(n in (1, m) for n, m in zip(wide.shape, x.shape, strict=True))
    if session is None or not (fits and x.size and is_dense(x) and is_dense(slope)):
        return None

    def make(primitives: Primitives) -> "_Prelu | None":
        api = primitives.api
        line, slopes = of_array(api, x), of_array(api, wide)
        description = described(
            *(api, "prelu_forward", api.engine, INFERENCE, line, slopes, line)
        )
        if description is None:
            return None
        operands: Operands = [(SRC, line), (WEIGHTS, slopes), (DST, line)]
        return _Prelu(primitives.prepared(description, operands))

    key = ("prelu", form(x), form(wide))
    ready: _Prelu | None = session.primitives.get(key, make, x.size * _COST)
    return None if ready is None else ready.run(x, wide)


class _Prelu(_Eltwise):
    """A PReLU with slopes in an array."""

    __slots__ = ()

    def run(self, x: Array, *slopes: Array) -> Array:
        """Return the result, in the memory order of ``x``."""
        out = empty_like(x, *slopes)
        self._prepared.run(address(x), *map(address, slopes), address(out))
        return out
