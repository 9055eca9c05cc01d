"""Indices of window maxima, and gradients of max pooling, with oneDNN.

It has the same format of indices, positions in windows, so NumPy may compute either
direction.
"""

from typing import Any

import numpy as np

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import (
    DIFF_DST,
    DIFF_SRC,
    DST,
    POOL_MAX,
    SRC,
    TRAINING,
    WORKSPACE,
    WORKSPACE_MD,
    dims,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import has_nan, noting
from burn.backend.cpu.onednn.binding.engine import current, limits
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    channels_last,
    empty_channels_last,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import (
    Arranged,
    are_float32,
    form,
    in_channels_last,
)
from burn.backend.cpu.onednn.binding.prepared import (
    Description,
    Operands,
    Prepared,
    described,
)
from burn.backend.cpu.onednn.kernels.pooling import RANKS, covers_elements
from burn.ops.fused import max_pool_with_places as max_pool_with_places_op
from burn.ops.pool import (
    window_argmax as window_argmax_op,
    window_scatter as window_scatter_op,
)
from burn.ops.window import Windows, windows

_BYTE = np.dtype(np.uint8)


@window_argmax_op.on(Cpu)
def window_argmax(x: Array, out: Array, *, kernel_size: Any, **static: Any) -> Array:
    """Compute :func:`burn.ops.window_argmax` with oneDNN if faster, else with NumPy."""
    if are_float32(x) and x.size >= max(limits().elements, 1) and not has_nan(x):
        kernel = _prepared(x.shape, x, kernel_size, static)
        if kernel is not None:
            return kernel.places(x)
    return window_argmax_op.kernel(x, out, kernel_size=kernel_size, **static)


@max_pool_with_places_op.on(Cpu)
def max_pool_with_places(x: Array, *, kernel_size: Any, **static: Any) -> Any:
    """Compute :func:`burn.ops.fused.max_pool_with_places`, in plans with oneDNN."""
    if noting() is not None and are_float32(x) and x.size:
        kernel = _prepared(x.shape, x, kernel_size, static)
        if kernel is not None:
            return kernel.largest(x)
    return max_pool_with_places_op.kernel(x, kernel_size=kernel_size, **static)


@window_scatter_op.on(Cpu)
def window_scatter(
    grad: Array, choice: Array, *, size: Any, kernel_size: Any, **static: Any
) -> Array:
    """Compute :func:`burn.ops.window_scatter` with oneDNN if faster, or with NumPy."""
    shape = (*grad.shape[:2], *size)
    if are_float32(grad) and choice.dtype == _BYTE and grad.size >= limits().elements:
        kernel = _prepared(shape, grad, kernel_size, static) if grad.size else None
        if kernel is not None:
            return kernel.spread(grad, choice)
    return window_scatter_op.kernel(
        grad, choice, size=size, kernel_size=kernel_size, **static
    )


def _prepared(
    shape: tuple[int, ...], like: Array, kernel_size: Any, static: dict[str, Any]
) -> "_Largest | None":
    """Return the primitives for an input of ``shape``, in the layout of ``like``."""
    session = current() if like.ndim in RANKS else None
    if session is None:
        return None

    def make(primitives: Primitives) -> "_Largest | None":
        wins = windows(shape[2:], kernel_size, **static).trimmed
        return _largest(primitives, shape, like, wins)

    key = ("places", shape, kernel_size, tuple(static.items()), form(like))
    kernel: _Largest | None = session.primitives.get(key, make, like.size * 4)
    return kernel


class _Largest:
    """Forward and backward max pooling for one shape."""

    __slots__ = ("_arranged", "_backward", "_forward", "_shapes")

    def __init__(
        self, arranged: Arranged, forward: Prepared, backward: Prepared, shapes: Any
    ) -> None:
        self._arranged, self._shapes = arranged, shapes
        self._forward, self._backward = forward, backward

    @property
    def implementation(self) -> str:
        return self._backward.description.implementation

    def places(self, x: Array) -> Array:
        """Return the index of the largest element in each window of ``x``."""
        return self.largest(x)[1]

    def largest(self, x: Array) -> tuple[Array, Array]:
        """Return the largest element in each window of ``x``, and its index."""
        x = self._arranged(x)
        out = empty_channels_last(self._shapes[1])
        choice = empty_channels_last(self._shapes[1], _BYTE)
        self._forward.run(address(x), address(out), address(choice))
        return out, choice

    def spread(self, grad: Array, choice: Array) -> Array:
        """Return ``grad`` at the chosen positions, zero elsewhere."""
        grad, choice = self._arranged(grad), in_channels_last(choice)
        out = empty_channels_last(self._shapes[0])
        self._backward.run(address(grad), address(choice), address(out))
        return out


def _largest(
    primitives: Primitives, shape: tuple[int, ...], like: Array, wins: Windows
) -> _Largest | None:
    api, result = primitives.api, (*shape[:2], *wins.count)
    if not covers_elements(wins):
        return None
    source = strided(api, shape, channels_last(shape))
    target = strided(api, result, channels_last(result))
    pads = wins.exact
    geometry = (
        *(dims(wins.stride), dims(wins.kernel), dims(d - 1 for d in wins.dilation)),
        *(dims(before for before, _ in pads), dims(after for _, after in pads)),
    )
    forward = described(
        *(api, "pooling_forward", api.engine, TRAINING, POOL_MAX, source, target),
        *geometry,
    )
    backward = forward and described(
        *(api, "pooling_backward", api.engine, POOL_MAX, source, target),
        *(*geometry, forward.handle),
    )
    if forward is None or backward is None or not _are_bytes(forward, result):
        return None
    places = forward.descriptor(WORKSPACE_MD)
    to_places: Operands = [(SRC, source), (DST, target), (WORKSPACE, places)]
    back: Operands = [(DIFF_DST, target), (WORKSPACE, places), (DIFF_SRC, source)]
    return _Largest(
        Arranged(primitives, like, channels_last(like.shape)),
        primitives.prepared(forward, to_places),
        primitives.prepared(backward, back),
        (shape, result),
    )


def _are_bytes(forward: Description, result: tuple[int, ...]) -> bool:
    """Return whether indices are bytes, in the memory order of the result."""
    api = forward.api
    wanted = strided(api, result, channels_last(result), _BYTE)
    return bool(api.same(forward.descriptor(WORKSPACE_MD), wanted))
