"""Elementwise arithmetic on large arrays with oneDNN, multithreaded.

For eager calls only: in plans NumPy's calls are captured, and fused with others.
"""

from math import isnan
from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import (
    BINARY_ADD,
    BINARY_DIV,
    BINARY_GT,
    BINARY_MAX,
    BINARY_MIN,
    BINARY_MUL,
    BINARY_SUB,
    DST,
    LINEAR,
    POST_OPERATION,
    SRC,
    SRC_1,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import noting
from burn.backend.cpu.onednn.binding.engine import STATE, Session, current
from burn.backend.cpu.onednn.binding.memory import Array, address, is_dense, strided
from burn.backend.cpu.onednn.binding.operands import FLOAT32
from burn.backend.cpu.onednn.binding.prepared import Operands, PostOps, Ready, described
from burn.ops.activation import clip as clip_op, relu as relu_op
from burn.ops.elementwise import add, div, mul, sub
from burn.primitive import Primitive

# An element takes as long as that many multiplications.
_COST = 8
#: The most threads for which NumPy clips between two bounds faster. With one thread it
#: takes a half to a quarter of the time, for 75 000 to ten million elements.
CLIPPING = 1


def _by_pairs(op: Primitive[..., Any], kind: int) -> None:
    """Register the kernel of a binary operation on two arrays of equal layout."""
    plain = op.kernel

    def kernel(x: Any, y: Any) -> Array:
        if type(x) is not np.ndarray or x.size < STATE.limits.simple_elements:
            return plain(x, y)  # first, since most calls take this path
        session = _session(x)
        if session is None or not _is_like(y, x):
            return plain(x, y)

        def make(primitives: Primitives) -> "_Pairs | None":
            return _pairs(primitives, x.size, kind)

        key = ("pairs", x.size, kind)
        pairs: _Pairs | None = session.primitives.get(key, make, x.size * _COST)
        return plain(x, y) if pairs is None else pairs.run(x, y)

    op.on(Cpu)(kernel)


for _op, _kind in {
    add: BINARY_ADD,
    sub: BINARY_SUB,
    mul: BINARY_MUL,
    div: BINARY_DIV,
}.items():
    _by_pairs(_op, _kind)


@relu_op.on(Cpu)
def relu(x: Array) -> Array:
    """Compute :func:`burn.ops.relu` with oneDNN if that is faster, else with NumPy."""
    session = None if x.size < STATE.limits.simple_elements else _session(x)
    out = None if session is None else _bounded(session, x, BINARY_MAX, 0.0)
    return relu_op.kernel(x) if out is None else out


@clip_op.on(Cpu)
def clip(x: Array, low: Any = None, high: Any = None) -> Array:
    """Compute :func:`burn.ops.clip` with oneDNN if that is faster, else with NumPy.

    oneDNN takes a pass over memory for each bound, and NumPy one for both.
    """
    out: Array | None = None
    large = type(x) is np.ndarray and x.size >= STATE.limits.simple_elements
    if large and _is_bound(low) and _is_bound(high):
        session = _session(x)
        has_both = low is not None and high is not None
        if session is not None and has_both and session.api.threads <= CLIPPING:
            clipped: Array = np.clip(x, low, high)
            return clipped
        out = None if session is None else x
        for kind, bound in ((BINARY_MAX, low), (BINARY_MIN, high)):
            if session is not None and out is not None and bound is not None:
                out = _bounded(session, out, kind, float(bound))
    return clip_op.kernel(x, low, high) if out is None else out


def _is_bound(bound: Any) -> bool:
    """Return whether ``bound`` is None or a number."""
    return bound is None or (isinstance(bound, int | float) and not isnan(bound))


def _bounded(session: Session, x: Array, kind: int, bound: float) -> Array | None:
    """Return the elementwise maximum or minimum of ``x`` and ``bound``, by ``kind``.

    NaN is preserved. None if there is no code for it.
    """

    def make(primitives: Primitives) -> "_Bound | None":
        return _bound(primitives, x.size, kind, bound)

    key = ("bound", x.size, kind, bound)
    kernel: _Bound | None = session.primitives.get(key, make, x.size * _COST)
    return None if kernel is None else kernel.run(x)


def _session(x: Array) -> Session | None:
    """Return the session if ``x`` is an array that oneDNN supports in eager calls."""
    if x.dtype != FLOAT32 or noting() is not None or not x.size or not is_dense(x):
        return None
    return current()


def _is_like(y: Any, x: Array) -> bool:
    """Return whether ``y`` has the shape and strides of ``x``."""
    if type(y) is not np.ndarray or y.dtype != FLOAT32:
        return False
    return bool(y.shape == x.shape and y.strides == x.strides)


class _Pairs(Ready):
    """A binary operation on a number of elements."""

    __slots__ = ()

    def run(self, x: Array, y: Array) -> Array:
        """Return the result, in the memory order of both."""
        out = np.empty_like(x)
        self._prepared.run(address(x), address(y), address(out))
        return out


def _pairs(primitives: Primitives, size: int, kind: int) -> _Pairs | None:
    api = primitives.api
    line = strided(api, (size,), (1,))
    description = described(api, "binary", api.engine, kind, line, line, line)
    if description is None:
        return None
    operands: Operands = [(SRC, line), (SRC_1, line), (DST, line)]
    return _Pairs(primitives.prepared(description, operands))


class _Bound(_Pairs):
    """A maximum or minimum with a constant, which preserves NaN."""

    __slots__ = ()

    def run(self, x: Array, *_: Array) -> Array:
        """Return the result, in the memory order of ``x``."""
        out, source = np.empty_like(x), address(x)
        self._prepared.run(source, source, source, address(out))
        return out

    def keeps_nan(self, size: int) -> bool:
        """Return whether the implementation returns NaN operands, not the bound."""
        return bool(np.isnan(self.run(np.full(size, np.nan, np.float32))).all())


def _bound(primitives: Primitives, size: int, kind: int, bound: float) -> _Bound | None:
    """Return ``max((x > x) + bound, x)``, or the minimum, which preserve NaN.

    oneDNN's own maximum drops NaN. The processor instruction returns its second operand
    for NaN. The library does not guarantee that x is the second, so it is tested.
    """
    api = primitives.api
    line = strided(api, (size,), (1,))
    post = PostOps(api)
    post.activation(LINEAR, 1.0, bound)
    post.binary(kind, line)
    description = described(
        api, "binary", api.engine, BINARY_GT, line, line, line, post=post
    )
    if description is None:
        return None
    last = POST_OPERATION * 2 | SRC_1
    operands: Operands = [(SRC, line), (SRC_1, line), (last, line), (DST, line)]
    kernel = _Bound(primitives.prepared(description, operands))
    return kernel if kernel.keeps_nan(size) else None
