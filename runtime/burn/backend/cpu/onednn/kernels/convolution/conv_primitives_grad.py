"""Prepared gradients of convolution weights."""

import numpy as np

from burn.backend.cpu.onednn.binding.api import (
    CONVOLUTION,
    DIFF_BIAS,
    DIFF_DST,
    DIFF_WEIGHTS,
    DIFF_WEIGHTS_MD,
    SRC,
    TRAINING,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import empty
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    any_layout,
    channels_last,
    of_array,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import Arranged
from burn.backend.cpu.onednn.binding.prepared import Operands, Prepared, described
from burn.backend.cpu.onednn.kernels.convolution.conv_operands import (
    Grouped,
    geometry,
    image,
)
from burn.ops.window import Windows

_BYTE = np.dtype(np.uint8)


class WeightGrad:
    """The prepared gradient of a convolution's weights."""

    __slots__ = ("_grad", "_like", "_prepared", "_reorder", "_size", "_x")

    def __init__(
        self, x: Arranged, grad: Arranged, prepared: Prepared, like: Array
    ) -> None:
        self._x, self._grad, self._prepared = x, grad, prepared
        self._like = (like.shape, like.dtype)
        self._reorder: Prepared | None = None
        self._size = 0

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def unpack(self, reorder: Prepared | None, size: int) -> None:
        """Compute into a buffer of ``size`` bytes, and copy it with ``reorder``."""
        self._reorder, self._size = reorder, size

    def run(self, x: Array, grad: Array, bias: Array | None = None) -> Array:
        """Return the gradient, row-major; that of the bias is written to ``bias``."""
        x, grad = self._x(x), self._grad(grad)
        out = empty(*self._like)
        memory = out if self._reorder is None else empty((self._size,), _BYTE)
        more = () if bias is None else (address(bias),)
        self._prepared.run(address(x), address(grad), address(memory), *more)
        if self._reorder is not None:
            self._reorder.run(address(memory), address(out))
        return out


def weight_grad(
    primitives: Primitives,
    x: Array,
    grad: Array,
    wins: Windows,
    groups: int,
    biased: bool,
) -> WeightGrad | None:
    """Return the gradients of weights and, if ``biased``, bias; None if unsupported."""
    api, axes = primitives.api, tuple(range(len(wins.size)))
    where = geometry(wins, axes)
    if where is None:
        return None
    shape = (grad.shape[1], x.shape[1] // groups, *wins.kernel)
    out: Array = np.empty(shape, x.dtype)
    view = Grouped.of_conv(out, groups)
    source, outer = (image(api, array.shape, array.dtype) for array in (x, grad))
    chosen = any_layout(api, view.shape, view.dtype)
    line = strided(api, (shape[0],), (1,)) if biased else None
    hint = described(
        *(api, "convolution_forward", api.engine, TRAINING, CONVOLUTION),
        *(source, chosen, line, outer, *where),
    )
    description = hint and described(
        *(api, "convolution_backward_weights", api.engine, CONVOLUTION),
        *(source, chosen, line, outer, *where, hint.handle),
    )
    if description is None:
        return None
    wanted = description.descriptor(DIFF_WEIGHTS_MD)
    operands: Operands = [(SRC, source), (DIFF_DST, outer), (DIFF_WEIGHTS, wanted)]
    if line is not None:
        operands.append((DIFF_BIAS, line))
    kernel = WeightGrad(
        Arranged(primitives, x, channels_last(x.shape)),
        Arranged(primitives, grad, channels_last(grad.shape)),
        primitives.prepared(description, operands),
        out,
    )
    plain = of_array(api, view)
    if not api.same(plain, wanted):
        kernel.unpack(primitives.reorder(wanted, plain), api.size_of(wanted))
    return kernel
