"""Pooling with oneDNN, for windows without gaps, and global means of images.

Its maximum is defined for numbers only: NumPy computes inputs with NaN.
"""

from math import prod
from typing import Any

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import (
    DST,
    INFERENCE,
    POOL_MAX,
    POOL_WITH_PADDING,
    POOL_WITHOUT_PADDING,
    SRC,
    dims,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import has_nan
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
    form,
    is_computed,
    lies_as,
)
from burn.backend.cpu.onednn.binding.prepared import Prepared, described
from burn.ops.pool import avg_pool as avg_pool_op, max_pool as max_pool_op
from burn.ops.reduction import mean as mean_op
from burn.ops.support import Axes, axes_of
from burn.ops.window import Windows, windows

RANKS = (3, 4, 5)
#: The most elements that are added up one after the other for a mean.
_PLACES = 4096


@max_pool_op.on(Cpu)
def max_pool(x: Array, *, kernel_size: Any, **static: Any) -> Array:
    """Compute :func:`burn.ops.max_pool` with oneDNN if faster, else with NumPy."""
    out = None
    if x.size and x.size >= limits().elements and not has_nan(x):
        out = _pool(x, POOL_MAX, kernel_size, **static)
    if out is None:
        return max_pool_op.kernel(x, kernel_size=kernel_size, **static)
    return out


@avg_pool_op.on(Cpu)
def avg_pool(
    x: Array, *, kernel_size: Any, count_include_pad: bool = False, **static: Any
) -> Array:
    """Compute :func:`burn.ops.avg_pool` with oneDNN if faster, else with NumPy."""
    out = None
    kind: int | None = POOL_WITHOUT_PADDING
    if count_include_pad:
        kind = _padded_mean(windows(x.shape[2:], kernel_size, **static))
    if kind is not None:
        out = _pool(x, kind, kernel_size, **static)
    if out is None:
        static["count_include_pad"] = count_include_pad
        return avg_pool_op.kernel(x, kernel_size=kernel_size, **static)
    return out


def _padded_mean(wins: Windows) -> int | None:
    """Return the kind of means that count the padding; None if oneDNN has none.

    With ``ceil_mode`` windows may reach beyond the padding, which oneDNN does not
    distinguish from padding: it counts both or none.
    """
    if not any(map(any, wins.pads)):
        return POOL_WITHOUT_PADDING
    pairs = zip(wins.exact, wins.pads, strict=True)
    is_beyond = any(after > padding for (_, after), (_, padding) in pairs)
    return None if is_beyond else POOL_WITH_PADDING


@mean_op.on(Cpu)
def mean(x: Array, axis: Axes = None, *, keepdims: bool = False) -> Array:
    """Compute :func:`burn.ops.mean` of channels-last images with oneDNN, else NumPy."""
    out = None
    if x.ndim in RANKS and sorted(axes_of(axis, x.ndim)) == list(range(2, x.ndim)):
        last = lies_as(x, channels_last(x.shape))
        if last and prod(x.shape[2:]) <= _PLACES:
            out = _pool(x, POOL_WITHOUT_PADDING, x.shape[2:])
    if out is None:
        return mean_op.kernel(x, axis, keepdims=keepdims)
    return out if keepdims else out.reshape(x.shape[:2])


def _pool(
    x: Array,
    kind: int,
    kernel_size: Any,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> Array | None:
    """Return the result channels-last in memory; None if NumPy should compute it."""
    if x.ndim not in RANKS or not is_computed(x) or not x.size:
        return None
    session = current() if x.size >= limits().elements else None
    if session is None:
        return None
    steps = (kernel_size, stride, padding, dilation, ceil_mode)

    def make(primitives: Primitives) -> "_Pool | None":
        return _prepare(primitives, x, kind, windows(x.shape[2:], *steps))

    key = ("pool", kind, steps, form(x))
    kernel: _Pool | None = session.primitives.get(key, make, x.size * 4)
    return None if kernel is None else kernel.run(x)


class _Pool:
    """A prepared pooling."""

    __slots__ = ("_arranged", "_prepared", "_shape")

    def __init__(self, arranged: Arranged, prepared: Prepared, shape: Any) -> None:
        self._arranged, self._prepared, self._shape = arranged, prepared, shape

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(self, x: Array) -> Array:
        """Return the result, channels-last in memory."""
        x = self._arranged(x)
        out = empty_channels_last(self._shape, x.dtype)
        self._prepared.run(address(x), address(out))
        return out


def _prepare(
    primitives: Primitives, x: Array, kind: int, wins: Windows
) -> _Pool | None:
    api, shape = primitives.api, (*x.shape[:2], *wins.count)
    if not covers_elements(wins):
        return None
    pads = wins.exact
    source = strided(api, x.shape, channels_last(x.shape), x.dtype)
    target = strided(api, shape, channels_last(shape), x.dtype)
    description = described(
        *(api, "pooling_forward", api.engine, INFERENCE, kind, source, target),
        *(dims(wins.stride), dims(wins.kernel), dims(d - 1 for d in wins.dilation)),
        *(dims(before for before, _ in pads), dims(after for _, after in pads)),
    )
    if description is None:
        return None
    prepared = primitives.prepared(description, [(SRC, source), (DST, target)])
    return _Pool(Arranged(primitives, x, channels_last(x.shape)), prepared, shape)


def covers_elements(wins: Windows) -> bool:
    """Return whether there are windows, each with at least one element.

    A window of padding alone has no maximum, and no mean.
    """
    reach = [d * (k - 1) for d, k in zip(wins.dilation, wins.kernel, strict=True)]
    return 0 not in wins.count and not any(
        before < 0 or before > far or after > far
        for (before, after), far in zip(wins.exact, reach, strict=True)
    )
