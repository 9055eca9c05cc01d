"""Multi-head attention."""

from typing import Any

from burn import ops
from burn.box import Parameter
from burn.dtypes import DType, float32
from burn.nn import init
from burn.nn.dropout import Dropout
from burn.nn.linear import Linear
from burn.nn.module import Module
from burn.nn.transformer.caches import CachedKeys, KeyValueCache
from burn.nn.transformer.masks import attention_mask
from burn.ops.attention import EVERYWHERE
from burn.tensor import Tensor


class Attention(Module):
    """:func:`burn.ops.attention` with dropout of the weights in training.

    ``dropout`` is the probability with which a weight becomes 0; the options are those
    of the function. In inference a call is the function itself, which is one kernel
    where a device has one. ``seed`` determines the masks, as in :class:`Dropout`.

    Called with ``query`` [batch, heads, rows, size], ``key`` [batch, groups, columns,
    size], ``value`` [batch, groups, columns, out] and perhaps a ``mask``, or with
    operands without a head axis, it returns [batch, heads, rows, out].

    Raises:
        ValueError: ``dropout`` is not in [0, 1].
    """

    def __init__(
        self,
        dropout: float = 0.0,
        *,
        scale: float | None = None,
        softcap: float = 0.0,
        causal: bool = False,
        window: tuple[int, int] = EVERYWHERE,
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.dropout = Dropout(dropout, seed=seed)
        self.scale, self.softcap = scale, softcap
        self.causal, self.window = causal, window

    def __call__(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        options: dict[str, Any] = {
            "scale": self.scale,
            "softcap": self.softcap,
            "causal": self.causal,
            "window": self.window,
        }
        random_state = self.dropout.random_state
        if self.dropout.p == 0.0 or not random_state.backend.tracks_gradients:
            return ops.attention(query, key, value, mask, **options)
        has_one_head = query.ndim == 3
        if has_one_head:
            query, key, value = (x.unsqueeze(1) for x in (query, key, value))
            mask = mask.unsqueeze(1) if mask is not None and mask.ndim == 3 else mask
        weights = ops.attention_weights(query, key, mask, **options)
        out = ops.weighted_values(self.dropout(weights), value)
        return out.squeeze(1) if has_one_head else out

    def describe(self) -> str:
        return f"dropout={self.dropout.p}"


class MultiheadAttention(Module):
    """Multi-head attention with ``num_heads`` heads (A. Vaswani et al., 2017).

    ``in_proj_weight`` is [3 embed, embed]: the weights of queries, keys and values.
    Where keys have ``kdim`` features or values ``vdim``, and not ``embed_dim``, there
    are ``q_proj_weight`` [embed, embed], ``k_proj_weight`` [embed, kdim] and
    ``v_proj_weight`` [embed, vdim] instead. ``in_proj_bias`` is [3 embed]; ``out_proj``
    is a :class:`Linear`. ``dropout`` is the probability with which weights of attention
    become 0 in training.

    Called with queries [rows, batch, embed], keys [columns, batch, kdim] and values
    [columns, batch, vdim]; with the batch before rows and columns if it is
    ``batch_first``; without an axis for it there is one element. ``attn_mask`` is
    [rows, columns] or [batch heads, rows, columns], ``key_padding_mask`` [batch,
    columns]. Where a mask of bool is true, it hides columns; floats are added to the
    scores. With ``is_causal`` no row sees columns behind it, with or without a mask.
    As in PyTorch, a row that sees nothing is NaN with ``need_weights``, and gives 0
    before ``out_proj`` without. Without ``need_weights`` attention is one kernel where
    a device has one.

    With a ``cache`` the keys and values of a call are written behind those of earlier
    calls, and queries attend to all of them. ``key_padding_mask`` is that of the new
    positions; ``attn_mask`` is [rows, capacity], ``is_causal`` counts rows from the
    first new position. Weights are [..., rows, capacity].

    Raises:
        ValueError: ``embed_dim`` is not a multiple of ``num_heads``.
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        dtype: DType = float32,
    ) -> None:
        super().__init__()
        if embed_dim % num_heads:
            raise ValueError(
                f"expected an embed_dim that is a multiple of {num_heads} heads, "
                f"got {embed_dim}"
            )
        self.embed_dim, self.num_heads = embed_dim, num_heads
        self.batch_first = batch_first
        self.kdim, self.vdim = kdim or embed_dim, vdim or embed_dim
        widths = {"q": embed_dim, "k": self.kdim, "v": self.vdim}
        if set(widths.values()) == {embed_dim}:
            stacked = init.xavier_uniform((3 * embed_dim, embed_dim), dtype=dtype)
            self.in_proj_weight = Parameter(stacked)
        else:
            for name, width in widths.items():
                value = init.xavier_uniform((embed_dim, width), dtype=dtype)
                setattr(self, f"{name}_proj_weight", Parameter(value))
        zeros = init.constant((3 * embed_dim,), 0.0, dtype)
        self.in_proj_bias = Parameter(zeros) if bias else None
        self.out_proj = Linear(embed_dim, embed_dim, bias=bias, dtype=dtype)
        if self.out_proj.bias is not None:
            self.out_proj.bias = Parameter(init.constant((embed_dim,), 0.0, dtype))
        self.dropout = Dropout(dropout)

    def __call__(
        self,
        query: Tensor,
        key: Tensor | None,
        value: Tensor | None,
        key_padding_mask: Tensor | None = None,
        need_weights: bool = True,
        attn_mask: Tensor | None = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> tuple[Tensor, Tensor | None]:
        """Return the output, of the shape of ``query``, and the weights of attention.

        There are no weights, but None, without ``need_weights``. They are means over
        heads, [batch, rows, columns], with ``average_attn_weights``.

        Raises:
            ValueError: a mask has another shape, or a cache has no room.
        """
        has_batch = query.ndim == 3
        is_first = self.batch_first or not has_batch
        if not has_batch:
            operands = (query, key, value, key_padding_mask)
            query, key, value, key_padding_mask = map(_with_batch, operands)
        parts = self._projected(query, key, value)
        heads: list[Any] = [
            None if x is None else self._heads(x, is_first) for x in parts
        ]
        q, k, v = heads
        keys = _keys(cache, k, v, key_padding_mask, is_causal)
        if attn_mask is not None:
            attn_mask = keys.columns(attn_mask)
        mask = attention_mask(attn_mask, keys.hidden, (*q.shape[:3], keys.key.shape[2]))
        mask = keys.masked(mask, q.shape[2], is_causal)
        is_causal &= cache is None
        attended, weights = self._attend(q, keys, mask, is_causal, need_weights)
        order = (0, 2, 1, 3) if is_first else (2, 0, 1, 3)
        out = self.out_proj(attended.permute(*order).reshape(*query.shape))
        if weights is not None and average_attn_weights:
            weights = ops.mean(weights, axis=1)
        if has_batch:
            return out, weights
        return out.squeeze(0), None if weights is None else weights.squeeze(0)

    def new_cache(
        self,
        capacity: int,
        batch: int = 1,
        *,
        padding: bool = False,
        dtype: DType | None = None,
    ) -> KeyValueCache:
        """Return an empty cache for ``capacity`` positions, to call this layer with.

        ``padding`` keeps the ``key_padding_mask`` of each call. The dtype is that of
        the weights unless another one is given.
        """
        weight = self.out_proj.weight
        shape = (batch, self.num_heads, capacity, self.embed_dim // self.num_heads)
        dtype = dtype or weight.dtype
        return KeyValueCache(shape, dtype, weight.backend, padding=padding)

    def cache_of(
        self, key: Tensor, value: Tensor, key_padding_mask: Tensor | None = None
    ) -> KeyValueCache:
        """Return a cache of a known sequence, as the memory of cross attention.

        Calls with it take None for ``key``, ``value`` and ``key_padding_mask``. The
        layout is that of a call; gradients do not reach ``key`` and ``value``.
        """
        is_first = self.batch_first or key.ndim == 2
        if key.ndim == 2:
            operands = (key, value, key_padding_mask)
            key, value, key_padding_mask = map(_with_batch, operands)
        projected = self._projected(None, key, value)[1:]
        keys, values = (self._heads(x, is_first) for x in projected)
        has_padding = key_padding_mask is not None
        shape = keys.shape[2], keys.shape[0]
        cache = self.new_cache(*shape, padding=has_padding, dtype=keys.dtype)
        cache.extended(keys, values, key_padding_mask)
        cache.grows = False
        return cache

    def _projected(
        self, query: Tensor | None, key: Tensor | None, value: Tensor | None
    ) -> tuple[Any, ...]:
        """Return queries, keys and values of all heads together; None for operands that
        are None.
        """
        bias = self.in_proj_bias
        parts: tuple[Tensor | None, ...] = (None, None, None)
        if hasattr(self, "in_proj_weight"):
            if query is key is value:
                return ops.chunk(ops.linear(query, self.in_proj_weight, bias), 3, -1)
            weights = ops.chunk(self.in_proj_weight, 3, 0)
        else:
            weights = tuple(getattr(self, f"{name}_proj_weight") for name in "qkv")
        if bias is not None:
            parts = ops.chunk(bias, 3, 0)
        operands = zip((query, key, value), weights, parts, strict=True)
        return tuple(
            x if x is None else ops.linear(x, *weight) for x, *weight in operands
        )

    def _heads(self, x: Tensor, is_first: bool) -> Tensor:
        """Return [batch, heads, length, size] of a projection."""
        size = self.embed_dim // self.num_heads
        split = x.reshape(*x.shape[:2], self.num_heads, size)
        return split.permute(*((0, 2, 1, 3) if is_first else (1, 2, 0, 3)))

    def _attend(
        self,
        query: Tensor,
        keys: CachedKeys,
        mask: Tensor | None,
        is_causal: bool,
        need_weights: bool,
    ) -> tuple[Tensor, Tensor | None]:
        key, value = (
            x if x.dtype == query.dtype else ops.cast(x, dtype=query.dtype)
            for x in (keys.key, keys.value)
        )
        drops = self.dropout.p > 0 and self.out_proj.weight.backend.tracks_gradients
        if not need_weights and not drops:
            out = ops.attention(query, key, value, mask, causal=is_causal)
            return keys.checked(out), None
        if need_weights:
            scores = ops.attention_scores(query, key, mask, causal=is_causal)
            weights = self.dropout(ops.softmax(scores))
        else:
            weights = ops.attention_weights(query, key, mask, causal=is_causal)
            weights = self.dropout(weights)
        out = keys.checked(ops.weighted_values(weights, value))
        return out, keys.positions(weights) if need_weights else None

    def describe(self) -> str:
        return f"{self.embed_dim}, {self.num_heads}, batch_first={self.batch_first}"


def _with_batch(x: Any) -> Any:
    return x if x is None else x.unsqueeze(0)


def _keys(
    cache: KeyValueCache | None,
    key: Tensor | None,
    value: Tensor | None,
    hidden: Tensor | None,
    is_causal: bool,
) -> CachedKeys:
    """Return keys and values of the attention: those of a call after a cache's."""
    if cache is not None:
        if is_causal and not cache.grows:
            raise ValueError("expected is_causal=False for a cache that does not grow")
        return cache.extended(key, value, hidden)
    if key is None or value is None:
        raise ValueError("expected a key and a value, or a cache that has them")
    return CachedKeys(key, value, hidden)
