"""Transformer encoder and decoder layers."""

from collections.abc import Callable
from typing import ClassVar, Literal

from burn import ops
from burn.nn.dropout import Dropout
from burn.nn.linear import Linear
from burn.nn.module import Module
from burn.nn.norm import LayerNorm
from burn.nn.transformer.attention import MultiheadAttention
from burn.nn.transformer.caches import DecoderLayerCache, KeyValueCache
from burn.tensor import Tensor

#: The activation of a feed-forward part.
Activation = Literal["relu", "gelu"] | Callable[[Tensor], Tensor]


class _Layer(Module):
    """The common base of encoder and decoder layers.

    With ``norm_first`` the norm is applied before each sublayer, otherwise after the
    residual addition.
    """

    #: The fields of the attention parts.
    attentions: ClassVar[tuple[str, ...]]

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.norm_first = norm_first
        self.activation = _function(activation)
        for name in self.attentions:
            attention = MultiheadAttention(
                d_model, nhead, dropout, bias, batch_first=batch_first
            )
            setattr(self, name, attention)
        self.linear1 = Linear(d_model, dim_feedforward, bias=bias)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, bias=bias)
        for number in range(1, len(self.attentions) + 2):
            norm = LayerNorm(d_model, layer_norm_eps, bias=bias)
            setattr(self, f"norm{number}", norm)
            setattr(self, f"dropout{number}", Dropout(dropout))

    def _feed_forward(self, x: Tensor) -> Tensor:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))

    def _with(
        self,
        x: Tensor,
        norm: LayerNorm,
        dropout: Dropout,
        part: Callable[[Tensor], Tensor],
    ) -> Tensor:
        """Return ``x`` plus the result of a sublayer, with norm and dropout."""
        if self.norm_first:
            return x + dropout(part(norm(x)))
        return norm(x + dropout(part(x)))


class TransformerEncoderLayer(_Layer):
    """A transformer encoder layer: self-attention and a feed-forward network.

    The sequence is [length, batch, d_model], or [batch, length, d_model] with
    ``batch_first``. Masks are those of :class:`MultiheadAttention`. The activation is
    ``"relu"``, ``"gelu"`` or a function.

    Raises:
        ValueError: the heads do not divide ``d_model``, or an activation is unknown.
    """

    attentions = ("self_attn",)
    self_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    dropout1: Dropout
    dropout2: Dropout

    def __call__(
        self,
        src: Tensor,
        src_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """Return the sequence after the layer, of the shape of ``src``.

        With a cache of :meth:`new_cache` it follows those of earlier calls.
        """

        def attend(x: Tensor) -> Tensor:
            masks = (src_key_padding_mask, False, src_mask, True, is_causal)
            return self.self_attn(x, x, x, *masks, cache)[0]

        x = self._with(src, self.norm1, self.dropout1, attend)
        return self._with(x, self.norm2, self.dropout2, self._feed_forward)

    def new_cache(
        self, capacity: int, batch: int = 1, *, padding: bool = False
    ) -> KeyValueCache:
        """Return an empty cache, as :meth:`MultiheadAttention.new_cache` does."""
        return self.self_attn.new_cache(capacity, batch, padding=padding)


class TransformerDecoderLayer(_Layer):
    """A decoder layer: self-attention, cross-attention to ``memory``, feed-forward.

    Arguments are those of :class:`TransformerEncoderLayer`. A decoder usually calls it
    with ``tgt_is_causal=True``.
    """

    attentions = ("self_attn", "multihead_attn")
    self_attn: MultiheadAttention
    multihead_attn: MultiheadAttention
    norm1: LayerNorm
    norm2: LayerNorm
    norm3: LayerNorm
    dropout1: Dropout
    dropout2: Dropout
    dropout3: Dropout

    def __call__(
        self,
        tgt: Tensor,
        memory: Tensor | None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
        cache: DecoderLayerCache | None = None,
    ) -> Tensor:
        """Return the sequence after the layer, of the shape of ``tgt``.

        With a cache of :meth:`new_cache` it follows those of earlier calls, and
        ``memory`` is None.
        """
        caches = (None, None) if cache is None else (cache.self_attn, cache.memory)

        def attend(x: Tensor) -> Tensor:
            masks = (tgt_key_padding_mask, False, tgt_mask, True, tgt_is_causal)
            return self.self_attn(x, x, x, *masks, caches[0])[0]

        def attend_to_memory(x: Tensor) -> Tensor:
            padding = memory_key_padding_mask
            masks = (padding, False, memory_mask, True, memory_is_causal)
            return self.multihead_attn(x, memory, memory, *masks, caches[1])[0]

        x = self._with(tgt, self.norm1, self.dropout1, attend)
        x = self._with(x, self.norm2, self.dropout2, attend_to_memory)
        return self._with(x, self.norm3, self.dropout3, self._feed_forward)

    def new_cache(
        self,
        memory: Tensor,
        capacity: int,
        memory_key_padding_mask: Tensor | None = None,
        *,
        padding: bool = False,
    ) -> DecoderLayerCache:
        """Return a cache with the keys and values of ``memory``, which are computed
        once.
        """
        known = self.multihead_attn.cache_of(memory, memory, memory_key_padding_mask)
        batch = known.key.shape[0]
        own = self.self_attn.new_cache(capacity, batch, padding=padding)
        return DecoderLayerCache(own, known)


def _function(activation: Activation) -> Callable[[Tensor], Tensor]:
    if not isinstance(activation, str):
        return activation
    named: dict[str, Callable[[Tensor], Tensor]] = {"relu": ops.relu, "gelu": ops.gelu}
    if activation not in named:
        names = ", ".join(map(repr, named))
        raise ValueError(f"expected {names} or a function, got {activation!r}")
    return named[activation]
