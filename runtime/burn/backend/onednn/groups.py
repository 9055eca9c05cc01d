"""Norms of groups of channels by oneDNN, which has no primitive for them.

A group that is in one piece in memory is a row of its norm of rows. Where channels are
last it is not: little is copied to rows and back, and of much the statistics of each
channel are taken, which are those of groups together.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from burn.backend.cpu import Cpu
from burn.backend.onednn.after import After, activations
from burn.backend.onednn.api import (
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
from burn.backend.onednn.cache import Primitives
from burn.backend.onednn.memory import (
    Array,
    Handle,
    address,
    channels_last,
    row_major,
    strided,
)
from burn.backend.onednn.normalization import (
    fills,
    prepared_batch_norm,
    session_for,
)
from burn.backend.onednn.noting import compact, empty, empty_like, noting
from burn.backend.onednn.operands import lies_as
from burn.backend.onednn.prepared import Operands, PostOps, Prepared, described
from burn.ops.fused import group_norm_then as group_norm_then_op
from burn.ops.norm import group_norm as group_norm_op

_EACH = 16
#: From so many elements of a sample copying them takes longer than more calls.
_MUCH = 16_384
#: So many samples are as many calls as it takes to copy.
_FEW = 2

#: Samples, channels, and what is in space, as the one axis that it is in memory.
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
    """:func:`burn.ops.group_norm` by oneDNN where that pays, by NumPy elsewhere."""
    out = _normed(x, weight, bias, groups, epsilon, ())
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
    """:func:`burn.ops.fused.group_norm_then`, with what follows in the last pass."""
    out = _normed(x, weight, bias, groups, epsilon, after)
    if out is not None:
        return out
    return group_norm_then_op.kernel(
        *(x, weight, bias, residual), after=after, groups=groups, epsilon=epsilon
    )


def _normed(
    x: Array,
    weight: Array | None,
    bias: Array | None,
    groups: int,
    epsilon: float,
    after: After,
) -> Array | None:
    """The norm, in the memory order of ``x``; None where NumPy should compute it."""
    session = session_for(x, weight, bias) if x.ndim > 2 else None
    if session is None or x.shape[1] % groups:
        return None
    if not all(fills(part, x.shape[1]) for part in (weight, bias)):
        return None
    extents = (*x.shape[:2], 1, x.size // (x.shape[0] * x.shape[1]))
    if extents[-1] == 1:  # the library mixes up the channels of images of one element
        return None
    last = lies_as(x, channels_last(x.shape))
    if not last and not x.flags.c_contiguous:
        if noting() is None:
            return None
        x = compact(x)
    plain = x.flags.c_contiguous
    flags = (weight is not None) * USE_SCALE | (bias is not None) * USE_SHIFT

    def make(primitives: Primitives) -> "_Norm | None":
        maker = _Maker(primitives, extents, groups, epsilon, flags, after)
        return maker.made(plain)

    key = ("group_norm", extents, groups, epsilon, flags, after, plain)
    found: _Norm | None = session.primitives.get(key, make, x.size * _EACH)
    return None if found is None else found.run(x, weight, bias)


class _Rows:
    """A norm of groups as one of rows, and what follows it in place.

    ``copies`` brings them into rows, and back, unless they are rows as they are.
    """

    __slots__ = ("_affine", "_copies", "_norm")

    def __init__(
        self,
        norm: Prepared,
        copies: tuple[Prepared, Prepared] | None,
        affine: Prepared | None,
    ) -> None:
        self._norm, self._copies, self._affine = norm, copies, affine

    @property
    def implementation(self) -> str:
        return self._norm.description.implementation

    def run(self, x: Array, weight: Array | None, bias: Array | None) -> Array:
        """``x`` normalised, in its memory order."""
        parts = [part for part in (weight, bias) if part is not None]
        if self._copies is None:
            out = empty_like(x, *parts)
            self._normalise(x, out, parts)
            return out
        there, back = self._copies
        rows = empty((x.size,))
        there.run(address(x), address(rows))
        self._normalise(rows, rows, parts)
        out = empty_like(x)
        back.run(address(rows), address(out))
        return out

    def _normalise(self, x: Array, out: Array, parts: list[Array]) -> None:
        self._norm.run(address(x), address(out))
        if self._affine is not None:
            self._affine.run(*map(address, (out, *parts, out)))


class _Samples:
    """A norm of groups by the statistics of channels, one sample after the other."""

    __slots__ = ("_affine", "_epsilon", "_groups", "_statistics")

    def __init__(
        self, statistics: Prepared, affine: Prepared, groups: int, epsilon: float
    ) -> None:
        self._statistics, self._affine = statistics, affine
        self._groups, self._epsilon = groups, epsilon

    @property
    def implementation(self) -> str:
        return self._statistics.description.implementation

    def run(self, x: Array, weight: Array | None, bias: Array | None) -> Array:
        """``x`` normalised, in its memory order."""
        mean, var = empty(x.shape[:2]), empty(x.shape[:2])
        unused = empty(x.shape[1:])
        for sample, *line in zip(x, mean, var, strict=True):
            self._statistics.run(*map(address, (sample, unused, *line)))
        _do(partial(_of_groups, mean, var, weight, self._groups, self._epsilon))
        shift = () if bias is None else (bias,)
        out = empty_like(x, *shift)
        for sample, *line, to in zip(x, mean, var, out, strict=True):
            self._affine.run(*map(address, (sample, *line, *shift, to)))
        return out


class _Channels:
    """A norm of each channel, one sample after the other."""

    __slots__ = ("_norm",)

    def __init__(self, norm: Prepared) -> None:
        self._norm = norm

    @property
    def implementation(self) -> str:
        return self._norm.description.implementation

    def run(self, x: Array, weight: Array | None, bias: Array | None) -> Array:
        """``x`` normalised, in its memory order."""
        parts = [part for part in (weight, bias) if part is not None]
        mean, var = empty(x.shape[1:2]), empty(x.shape[1:2])
        out = empty_like(x, *parts)
        for sample, to in zip(x, out, strict=True):
            self._norm.run(*map(address, (sample, to, mean, var, *parts)))
        return out


def _do(call: Callable[[], Any]) -> None:
    """Make a call, now and whenever the plan runs."""
    call()
    notes = noting()
    if notes is not None:
        notes.note(call)


def _of_groups(
    mean: Array, var: Array, weight: Array | None, groups: int, epsilon: float
) -> None:
    """From statistics [N, C] of channels the means of groups, and what scales them.

    They take the place of the former.
    """
    lines = (len(mean), groups, -1)
    means, spread = mean.reshape(lines), var.reshape(lines)
    within = means.shape[-1]
    average = np.add.reduce(means, axis=-1, keepdims=True)
    average /= within
    means -= average
    means *= means
    spread += means
    inverse = np.add.reduce(spread, axis=-1, keepdims=True)
    inverse /= within
    inverse += epsilon
    np.sqrt(inverse, out=inverse)
    np.divide(1, inverse, out=inverse)
    means[...] = average
    if weight is None:
        spread[...] = inverse
    else:
        np.multiply(inverse, weight.reshape(lines[1:]), out=spread)


_Norm: TypeAlias = _Rows | _Samples | _Channels


class _Maker:
    """Makes what computes a norm of ``groups`` of channels."""

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

    def made(self, plain: bool) -> "_Norm | None":
        """The quickest there is for images whose memory is row-major, or not."""
        samples, channels, _, size = self._extents
        if plain or self._groups == 1:
            return self._rows(plain, copied=False)
        much = size * channels >= _MUCH
        if self._groups == channels and not self._after and (much or samples <= _FEW):
            return self._channels()
        return self._samples() if much else self._rows(plain, copied=True)

    def _rows(self, plain: bool, *, copied: bool) -> _Rows | None:
        api, (samples, channels, _, size) = self._primitives.api, self._extents
        rows = (samples * self._groups, size * channels // self._groups)
        matrix = strided(api, rows, row_major(rows))
        found = described(
            *(api, "layer_normalization_forward", api.engine, INFERENCE),
            *(matrix, matrix, None, self._epsilon, 0),
        )
        if found is None:
            return None
        norm = self._primitives.prepared(found, [(SRC, matrix), (DST, matrix)])
        kinds = self._affine_kinds()
        strides = row_major if plain or copied else channels_last
        affine = self._affine(self._image(strides), kinds)
        copies = self._copies() if copied else None
        if (affine is None and kinds) or (copies is None and copied):
            return None
        return _Rows(norm, copies, affine)

    def _copies(self) -> tuple[Prepared, Prepared] | None:
        """What copies images to rows, and what copies them back."""
        image, line = self._image(channels_last), self._image(row_major)
        there = self._primitives.reorder(image, line)
        back = self._primitives.reorder(line, image)
        return None if there is None or back is None else (there, back)

    def _samples(self) -> _Samples | None:
        self._extents = shape = (1, *self._extents[1:])
        statistics = prepared_batch_norm(
            *(self._primitives, shape, self._epsilon, 0, TRAINING)
        )
        kinds = [BINARY_SUB, BINARY_MUL]
        kinds += [BINARY_ADD] * bool(self._flags & USE_SHIFT)
        affine = self._affine(self._image(channels_last), kinds)
        if statistics is None or affine is None:
            return None
        return _Samples(statistics, affine, self._groups, self._epsilon)

    def _channels(self) -> _Channels | None:
        shape = (1, *self._extents[1:])
        norm = prepared_batch_norm(
            *(self._primitives, shape, self._epsilon, self._flags, TRAINING)
        )
        return None if norm is None else _Channels(norm)

    def _image(self, strides: Callable[[Extents], tuple[int, ...]]) -> Handle:
        return strided(self._primitives.api, self._extents, strides(self._extents))

    def _affine_kinds(self) -> list[int]:
        """The operations with a number for each channel."""
        pairs = ((USE_SCALE, BINARY_MUL), (USE_SHIFT, BINARY_ADD))
        return [kind for flag, kind in pairs if self._flags & flag]

    def _affine(self, image: Handle, kinds: list[int]) -> Prepared | None:
        """Operations with a number for each channel, and what is after them."""
        if not kinds:
            return None
        api, channels = self._primitives.api, self._extents[1]
        line = strided(api, (1, channels, 1, 1), (channels, 1, 1, 1))
        post = PostOps(api)
        for kind in kinds[1:]:
            post.binary(kind, line)
        activations(post, self._after)
        found = described(
            *(api, "binary", api.engine, kinds[0], image, line, image), post=post
        )
        if found is None:
            return None
        operands: Operands = [(SRC, image), (SRC_1, line)]
        operands += [
            (POST_OPERATION * (place + 1) | SRC_1, line)
            for place in range(len(kinds) - 1)
        ]
        return self._primitives.prepared(found, [*operands, (DST, image)])
