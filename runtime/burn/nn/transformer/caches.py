"""Caches of keys and values, for sequences that are computed position by position."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from burn import dtypes, ops
from burn.backend.base import Backend
from burn.box import Buffer, current_reader
from burn.dtypes import DType
from burn.nn.containers.sequences import ModuleList
from burn.nn.module import Module
from burn.ops.caches import update_slice
from burn.tensor import Tensor, from_numpy


class CachedKeys(NamedTuple):
    """Keys and values of an attention layer: [batch, heads, columns, size].

    ``hidden`` is the padding of columns, bool [batch, columns]. With a cache that grows
    the first ``past`` columns are those of the cache, of which ``length`` are written,
    and the others are new.
    """

    key: Tensor
    value: Tensor
    hidden: Tensor | None = None
    past: int = 0
    length: Tensor | None = None
    capacity: int = 0

    def masked(self, mask: Tensor | None, rows: int, is_causal: bool) -> Tensor | None:
        """Return ``mask`` without columns that are not written, or behind a row.

        Both masks are those of :func:`burn.ops.attention`. ``is_causal`` hides columns
        of a cache; without one that is left to attention.
        """
        if self.length is None:
            return mask
        column, past = ops.arange(self.key.shape[2]), self.past
        is_new: Any = column >= past
        if is_causal:
            row = ops.arange(rows).unsqueeze(1)
            is_new = ops.logical_and(is_new, column - past <= row)
        seen = ops.logical_or(
            is_new, ops.logical_and(column < past, column < self.length)
        )
        if mask is None:
            return seen
        if mask.dtype == dtypes.bool_:
            return ops.logical_and(mask, seen)
        return ops.where(seen, mask, -math.inf)

    def columns(self, attn_mask: Tensor) -> Tensor:
        """Return the columns of a mask [..., rows, capacity] in the order of the keys.

        Raises:
            ValueError: it has another number of columns.
        """
        if self.length is None:
            return attn_mask
        if attn_mask.shape[-1] != self.capacity:
            raise ValueError(
                f"attn_mask: expected {self.capacity} columns, the capacity of the "
                f"cache, got {attn_mask.shape[-1]}"
            )
        new = ops.arange(self.key.shape[2] - self.past) + self.length
        new = ops.minimum(new, self.capacity - 1)
        parts = [attn_mask[..., : self.past], ops.take(attn_mask, new, -1)]
        return ops.concat(parts, -1)

    def positions(self, weights: Tensor) -> Tensor:
        """Return weights [..., columns] by position, [..., capacity]."""
        if self.length is None:
            return weights
        missing = self.capacity - self.past
        old = ops.pad(weights[..., : self.past], (0, missing), 0.0, (-1,))
        return update_slice(old, weights[..., self.past :], self.length, axis=-1)

    def checked(self, out: Tensor) -> Tensor:
        """Return NaN in place of ``out`` if the cache has no room for the new keys."""
        if self.length is None:
            return out
        count = self.key.shape[2] - self.past
        return ops.where(self.length + count <= self.capacity, out, math.nan)


class KeyValueCache(Module):
    """The keys and values that an attention has computed, at most ``capacity`` of them.

    ``MultiheadAttention.new_cache`` makes one that grows with each call,
    ``MultiheadAttention.cache_of`` one of a sequence that is known, as the memory of
    cross attention. ``key`` and ``value`` are [batch, heads, capacity, size], and
    ``length``, int64 [1], is the number of positions that are written. A plan of
    ``burn.compile`` writes them in place and is the same for all positions. With
    ``padding`` the ``key_padding_mask`` of each call is kept, too.

    A cache is not part of a ``state_dict``. Gradients reach the keys and values of the
    same call, not those of earlier ones.
    """

    def __init__(
        self,
        shape: tuple[int, int, int, int],
        dtype: DType,
        backend: Backend,
        *,
        padding: bool = False,
    ) -> None:
        super().__init__()
        self.capacity, self.grows = shape[2], True
        self.key = _zeros(shape, dtype, backend)
        self.value = _zeros(shape, dtype, backend)
        self.length = _zeros((1,), dtypes.int64, backend)
        self.hidden: Buffer | None = None
        if padding:
            self.hidden = _zeros((shape[0], shape[2]), dtypes.bool_, backend)

    def reset(self) -> None:
        """Remove all positions of a cache that grows; memory and plans are kept."""
        if self.grows:
            self.length.set(ops.zeros_like(self.length.value))

    def extended(
        self, key: Tensor | None, value: Tensor | None, hidden: Tensor | None
    ) -> CachedKeys:
        """Write keys and values [batch, heads, new, size] behind those that are here.

        ``hidden``, bool [batch, new], is their padding. A cache that does not grow
        takes None.

        Raises:
            ValueError: there is no room for the new positions (in a compiled function
                results are NaN instead), or the arguments do not fit the cache.
        """
        if not self.grows:
            if not (key is value is hidden is None):
                raise ValueError(
                    "expected None for key, value and key_padding_mask: the cache is "
                    "of a known sequence, and has them"
                )
            mask = None if self.hidden is None else self.hidden.value
            return CachedKeys(self.key.value, self.value.value, mask)
        if key is None or value is None:
            raise ValueError("expected a key and a value for a cache that grows")
        if hidden is not None and self.hidden is None:
            raise ValueError("key_padding_mask: make the cache with padding=True")
        past = self._past(key)
        if self.hidden is not None and hidden is None:
            hidden = ops.zeros((key.shape[0], key.shape[2]), dtype=dtypes.bool_)
        length = self.length.value
        keys = self._append(self.key, key, past, length)
        values = self._append(self.value, value, past, length)
        mask = None
        if self.hidden is not None:
            mask = self._append(self.hidden, hidden, past, length, axis=1)
        self.length.set(length + key.shape[2])
        return CachedKeys(keys, values, mask, past, length, self.capacity)

    def _append(
        self, box: Buffer, new: Any, past: int, length: Tensor, axis: int = 2
    ) -> Tensor:
        """Write ``new`` into ``box``, and return it behind the first ``past`` entries.

        Nothing but the box reads the result of ``update_slice``: plans compute it in
        place.
        """
        if new.dtype != box.dtype:
            new = ops.cast(new, dtype=box.dtype)
        old = box.value
        if past < self.capacity:
            old = ops.getitem(old, (slice(None),) * axis + (slice(past),))
        box.set(update_slice(box.value, new, length, axis=axis))
        return ops.concat([old, new], axis) if past else new

    def _past(self, key: Tensor) -> int:
        """Return how many entries of the cache queries attend to: eagerly those that
        are written, in a plan all, so that it is the same for all positions.
        """
        batch, heads, capacity, size = self.key.shape
        if (key.shape[0], *key.shape[1::2]) != (batch, heads, size):
            raise ValueError(
                f"expected keys [{batch}, {heads}, new, {size}] for this cache, "
                f"got {list(key.shape)}"
            )
        is_eager, count = current_reader() is None, key.shape[2]
        written = int(self.length.numpy()[0]) if is_eager else 0
        if written + count > capacity:
            raise ValueError(
                f"the cache has room for {capacity} positions: {written} are there, "
                f"{count} more were given"
            )
        return written if is_eager else capacity

    def describe(self) -> str:
        batch, heads, capacity, size = self.key.shape
        return f"batch={batch}, heads={heads}, capacity={capacity}, size={size}"


class DecoderLayerCache(Module):
    """The caches of a decoder layer: of its own sequence, and of the memory."""

    def __init__(self, self_attn: KeyValueCache, memory: KeyValueCache) -> None:
        super().__init__()
        self.self_attn, self.memory = self_attn, memory

    @property
    def length(self) -> Buffer:
        """The number of positions of the sequence, int64 [1]."""
        return self.self_attn.length

    def reset(self) -> None:
        """Remove all positions of the sequence; the memory stays."""
        self.self_attn.reset()


class TransformerCache(Module):
    """The caches of the layers of an encoder or decoder."""

    def __init__(self, layers: Iterable[Any]) -> None:
        super().__init__()
        self.layers: ModuleList[Any] = ModuleList(layers)

    @property
    def length(self) -> Buffer:
        """The number of positions of the sequence, int64 [1]."""
        length: Buffer = self.layers[0].length
        return length

    def reset(self) -> None:
        """Remove all positions of the sequence; memory and plans are kept."""
        for layer in self.layers:
            layer.reset()


def _zeros(shape: tuple[int, ...], dtype: DType, backend: Backend) -> Buffer:
    return Buffer(from_numpy(np.zeros(shape, dtype), backend), persistent=False)
