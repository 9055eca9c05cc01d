"""Prepared group norms."""

from functools import partial
from typing import TypeAlias

import numpy as np

from burn.backend.cpu.onednn.binding.capture import do, empty, empty_like
from burn.backend.cpu.onednn.binding.memory import Array, address
from burn.backend.cpu.onednn.binding.prepared import Prepared
from burn.backend.cpu.onednn.kernels.norms.long_sums import combine


class Rows:
    """A group norm as a norm of rows, with its epilogue in place.

    ``copies`` convert images to rows and back, unless they are rows already.
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
        """Return ``x`` normalized, in its memory order."""
        parts = [part for part in (weight, bias) if part is not None]
        if self._copies is None:
            out = empty_like(x, *parts)
            self._normalize(x, out, parts)
            return out
        there, back = self._copies
        rows = empty((x.size,))
        there.run(address(x), address(rows))
        self._normalize(rows, rows, parts)
        out = empty_like(x)
        back.run(address(rows), address(out))
        return out

    def _normalize(self, x: Array, out: Array, parts: list[Array]) -> None:
        self._norm.run(address(x), address(out))
        if self._affine is not None:
            self._affine.run(*map(address, (out, *parts, out)))


class Samples:
    """A group norm by channel statistics, sample by sample.

    ``statistics`` are those of ``parts`` of the pixels.
    """

    __slots__ = ("_affine", "_epsilon", "_groups", "_parts", "_statistics")

    def __init__(
        self,
        statistics: Prepared,
        affine: Prepared,
        groups: int,
        epsilon: float,
        parts: int,
    ) -> None:
        self._statistics, self._affine = statistics, affine
        self._groups, self._epsilon, self._parts = groups, epsilon, parts

    @property
    def implementation(self) -> str:
        return self._statistics.description.implementation

    def run(self, x: Array, weight: Array | None, bias: Array | None) -> Array:
        """Return ``x`` normalized, in its memory order."""
        mean, var = empty(x.shape[:2]), empty(x.shape[:2])
        shape = (len(x), self._parts, x.shape[1])
        means, variances, unused = empty(shape), empty(shape), empty(x.shape[1:])
        for sample, *line in zip(x, means, variances, strict=True):
            self._statistics.run(*map(address, (sample, unused, *line)))
        do(partial(combine, means, variances, mean, var))
        do(partial(_reduce_to_groups, mean, var, weight, self._groups, self._epsilon))
        shift = () if bias is None else (bias,)
        out = empty_like(x, *shift)
        for sample, *line, to in zip(x, mean, var, out, strict=True):
            self._affine.run(*map(address, (sample, *line, *shift, to)))
        return out


class Channels:
    """An instance norm, sample by sample."""

    __slots__ = ("_norm",)

    def __init__(self, norm: Prepared) -> None:
        self._norm = norm

    @property
    def implementation(self) -> str:
        return self._norm.description.implementation

    def run(self, x: Array, weight: Array | None, bias: Array | None) -> Array:
        """Return ``x`` normalized, in its memory order."""
        parts = [part for part in (weight, bias) if part is not None]
        mean, var = empty(x.shape[1:2]), empty(x.shape[1:2])
        out = empty_like(x, *parts)
        for sample, to in zip(x, out, strict=True):
            self._norm.run(*map(address, (sample, to, mean, var, *parts)))
        return out


def _reduce_to_groups(
    mean: Array, var: Array, weight: Array | None, groups: int, epsilon: float
) -> None:
    """Replace channel statistics [N, C] in place by group means and scale factors.

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


class WithActivation:
    """A norm, and an activation in place."""

    __slots__ = ("_activation", "_norm")

    def __init__(self, norm: Rows | Samples | Channels, activation: Prepared) -> None:
        self._norm, self._activation = norm, activation

    @property
    def implementation(self) -> str:
        return self._norm.implementation

    def run(self, x: Array, weight: Array | None, bias: Array | None) -> Array:
        """Return ``x`` normalized and activated, in its memory order."""
        out = self._norm.run(x, weight, bias)
        self._activation.run(address(out), address(out))
        return out


Norm: TypeAlias = Rows | Samples | Channels | WithActivation
