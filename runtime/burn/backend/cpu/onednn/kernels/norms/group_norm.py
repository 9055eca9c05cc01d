"""Group normalization with oneDNN, which has no primitive for it.

If a group is contiguous in memory it is a row of a layer norm. For channels-last images
small inputs are copied to rows and back, and for large ones the statistics of channels
are computed and combined into those of groups.
"""

from collections.abc import Callable
from math import prod
from typing import TypeAlias

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import (
    BINARY_ADD,
    BINARY_MUL,
    BINARY_SUB,
    DST,
    INFERENCE,
    POST_OPERATION,
    SRC,
    SRC_1,
    TRAINING,
    USE_SCALE,
    USE_SHIFT,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import compact, noting
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    Handle,
    channels_last,
    row_major,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import lies_as
from burn.backend.cpu.onednn.binding.prepared import (
    Operands,
    PostOps,
    Prepared,
    described,
)
from burn.backend.cpu.onednn.kernels.norms.group_norm_primitives import (
    Channels,
    Norm,
    Rows,
    Samples,
    WithActivation,
)
from burn.backend.cpu.onednn.kernels.norms.long_sums import (
    LEAST,
    LEAST_OF_GRADIENTS,
    divided,
    parts_of,
)
from burn.backend.cpu.onednn.kernels.norms.normalization import (
    fills,
    prepared_batch_norm,
    session_for,
)
from burn.backend.cpu.onednn.kernels.post_ops import (
    After,
    activation_description,
    activations,
)
from burn.ops.fused import group_norm_then as group_norm_then_op
from burn.ops.norm import group_norm as group_norm_op

# An element takes as long as that many multiplications.
_COST = 16
#: With more elements per sample, copying takes longer than additional calls.
_MUCH = 16_384
#: With more samples, the calls take longer than copying.
_FEW = 2

#: Samples, channels, and the spatial axes, which are one axis in memory.
Extents: TypeAlias = tuple[int, int, int, int]


@group_norm_op.on(Cpu)
def group_norm(
    x: Array,
    weight: Array | None = None,
    bias: Array | None = None,
    *,
    groups: int,
    epsilon: float = 1e-5,
) -> Array:
    """Compute :func:`burn.ops.group_norm` with oneDNN if faster, else with NumPy."""
    out = _group_norm(x, weight, bias, groups, epsilon, ())
    if out is not None:
        return out
    return group_norm_op.kernel(x, weight, bias, groups=groups, epsilon=epsilon)


@group_norm_then_op.on(Cpu)
def group_norm_then(
    x: Array,
    weight: Array,
    bias: Array,
    residual: None = None,
    *,
    after: After,
    groups: int,
    epsilon: float = 1e-5,
) -> Array:
    """Compute :func:`burn.ops.fused.group_norm_then`, the epilogue in the last pass."""
    out = _group_norm(x, weight, bias, groups, epsilon, after)
    if out is not None:
        return out
    return group_norm_then_op.kernel(
        *(x, weight, bias, residual), after=after, groups=groups, epsilon=epsilon
    )


def _group_norm(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    groups: int,
    epsilon: float,
    after: After,
) -> Array | None:
    """Return the norm in the memory order of ``x``; None to compute it with NumPy."""
    session = session_for(x, weight, bias) if x.ndim > 2 else None
    if session is None or x.shape[1] % groups:
        return None
    if not all(fills(part, x.shape[1]) for part in (weight, bias)):
        return None
    extents = (*x.shape[:2], 1, x.size // (x.shape[0] * x.shape[1]))
    if extents[-1] == 1:  # the library confuses the channels of images of one element
        return None
    last = lies_as(x, channels_last(x.shape))
    if not last and not x.flags.c_contiguous:
        if noting() is None:
            return None
        x = compact(x)
    plain = x.flags.c_contiguous
    flags = (weight is not None) * USE_SCALE | (bias is not None) * USE_SHIFT

    def make(primitives: Primitives) -> Norm | None:
        maker = _NormBuilder(primitives, extents, groups, epsilon, flags, after)
        return maker.fastest(plain)

    key = ("group_norm", extents, groups, epsilon, flags, after, plain)
    much = (
        not plain and x.size // x.shape[0] >= _MUCH
    )  # then samples are normalized one by one
    work = x.size * _COST // (x.shape[0] if much else 1)
    kernel: Norm | None = session.primitives.get(key, make, work)
    return None if kernel is None else kernel.run(x, weight, bias)


class _NormBuilder:
    """Builder of norms over ``groups`` of channels."""

    def __init__(
        self,
        primitives: Primitives,
        extents: Extents,
        groups: int,
        epsilon: float,
        flags: int,
        after: After,
    ) -> None:
        self._primitives, self._extents = primitives, extents
        self._groups, self._epsilon = groups, epsilon
        self._flags, self._after = flags, after

    def fastest(self, plain: bool) -> Norm | None:
        """Return the fastest norm for images in row-major memory, or another order."""
        samples, channels, _, size = self._extents
        much = size * channels >= _MUCH
        if plain:
            return self._rows(plain, copied=False)
        if self._groups == 1:
            return self._then(self._rows(plain, copied=False))
        is_long = parts_of((1, *self._extents[1:]), LEAST_OF_GRADIENTS) > 1
        if self._groups == channels and not is_long and (much or samples <= _FEW):
            return self._then(self._channels())
        if much:
            return self._then(self._samples())
        return self._rows(plain, copied=True)

    def _then(self, norm: Rows | Samples | Channels | None) -> Norm | None:
        """Return ``norm`` with a separate pass for its epilogue.

        For channels-last images the pass is too short to include it.
        """
        if norm is None or not self._after:
            return norm
        api = self._primitives.api
        line = strided(api, (prod(self._extents),), (1,))
        description = activation_description(api, self._after, line)
        if description is None:
            return None
        done = self._primitives.prepared(description, [(SRC, line), (DST, line)])
        return WithActivation(norm, done)

    def _rows(self, plain: bool, *, copied: bool) -> Rows | None:
        api, (samples, channels, _, size) = self._primitives.api, self._extents
        rows = (samples * self._groups, size * channels // self._groups)
        matrix = strided(api, rows, row_major(rows))
        description = described(
            *(api, "layer_normalization_forward", api.engine, INFERENCE),
            *(matrix, matrix, None, self._epsilon, 0),
        )
        if description is None:
            return None
        norm = self._primitives.prepared(description, [(SRC, matrix), (DST, matrix)])
        kinds = self._affine_kinds()
        if plain or copied:
            affine = self._affine(self._image(row_major), kinds, self._after)
        else:
            affine = self._affine(self._image(channels_last), kinds)
        copies = self._copies() if copied else None
        if (affine is None and kinds) or (copies is None and copied):
            return None
        return Rows(norm, copies, affine)

    def _copies(self) -> tuple[Prepared, Prepared] | None:
        """Return the copies of images to rows and back, None if unsupported."""
        image, line = self._image(channels_last), self._image(row_major)
        there = self._primitives.reorder(image, line)
        back = self._primitives.reorder(line, image)
        return None if there is None or back is None else (there, back)

    def _samples(self) -> Samples | None:
        shape = (1, *self._extents[1:])
        parts = parts_of(shape, LEAST)
        statistics = prepared_batch_norm(
            *(self._primitives, divided(shape, parts), self._epsilon, 0, TRAINING)
        )
        kinds = [BINARY_SUB, BINARY_MUL]
        kinds += [BINARY_ADD] * bool(self._flags & USE_SHIFT)
        image = strided(self._primitives.api, shape, channels_last(shape))
        affine = self._affine(image, kinds)
        if statistics is None or affine is None:
            return None
        return Samples(statistics, affine, self._groups, self._epsilon, parts)

    def _channels(self) -> Channels | None:
        shape = (1, *self._extents[1:])
        norm = prepared_batch_norm(
            *(self._primitives, shape, self._epsilon, self._flags, TRAINING)
        )
        return None if norm is None else Channels(norm)

    def _image(self, strides: Callable[[Extents], tuple[int, ...]]) -> Handle:
        return strided(self._primitives.api, self._extents, strides(self._extents))

    def _affine_kinds(self) -> list[int]:
        """Return the operations with one parameter per channel."""
        pairs = ((USE_SCALE, BINARY_MUL), (USE_SHIFT, BINARY_ADD))
        return [kind for flag, kind in pairs if self._flags & flag]

    def _affine(
        self, image: Handle, kinds: list[int], after: After = ()
    ) -> Prepared | None:
        """Return operations with a parameter per channel, and an ``after`` epilogue."""
        if not kinds:
            return None
        api, channels = self._primitives.api, self._extents[1]
        line = strided(api, (1, channels, 1, 1), (channels, 1, 1, 1))
        post = PostOps(api)
        for kind in kinds[1:]:
            post.binary(kind, line)
        activations(post, after)
        description = described(
            *(api, "binary", api.engine, kinds[0], image, line, image), post=post
        )
        if description is None:
            return None
        operands: Operands = [(SRC, image), (SRC_1, line)]
        operands += [
            (POST_OPERATION * (index + 1) | SRC_1, line)
            for index in range(len(kinds) - 1)
        ]
        return self._primitives.prepared(description, [*operands, (DST, image)])
