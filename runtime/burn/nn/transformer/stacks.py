"""Transformer encoders, decoders, and their combination."""

from copy import deepcopy
from typing import Any

import numpy as np

from burn.box import Parameter
from burn.nn import init
from burn.nn.containers.sequences import ModuleList
from burn.nn.dropout import Dropout
from burn.nn.module import Module
from burn.nn.norm import LayerNorm
from burn.nn.random import random_state
from burn.nn.transformer.caches import TransformerCache
from burn.nn.transformer.layers import (
    Activation,
    TransformerDecoderLayer,
    TransformerEncoderLayer,
)
from burn.tensor import Tensor, from_numpy


class TransformerEncoder(Module):
    """``num_layers`` copies of a layer in sequence, with an optional norm.

    The copies have the weights of ``encoder_layer`` and their own random states.
    """

    def __init__(
        self,
        encoder_layer: TransformerEncoderLayer,
        num_layers: int,
        norm: Module | None = None,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.norm = norm

    def __call__(
        self,
        src: Tensor,
        mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        is_causal: bool = False,
        cache: TransformerCache | None = None,
    ) -> Tensor:
        """Return the sequence after all layers, of the shape of ``src``.

        With a cache of :meth:`new_cache` it follows those of earlier calls.
        """
        masks = (mask, src_key_padding_mask, is_causal)
        for layer, own in zip(self.layers, _each(cache, self.layers), strict=True):
            src = layer(src, *masks, own)
        return _normalized(src, self.norm)

    def new_cache(
        self, capacity: int, batch: int = 1, *, padding: bool = False
    ) -> TransformerCache:
        """Return an empty cache for ``capacity`` positions of ``batch`` sequences.

        ``padding`` keeps the ``src_key_padding_mask`` of each call.
        """
        return TransformerCache(
            layer.new_cache(capacity, batch, padding=padding) for layer in self.layers
        )


class TransformerDecoder(Module):
    """``num_layers`` copies of a layer in sequence, with an optional norm.

    The copies have the weights of ``decoder_layer`` and their own random states.
    """

    def __init__(
        self,
        decoder_layer: TransformerDecoderLayer,
        num_layers: int,
        norm: Module | None = None,
    ) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.norm = norm

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
        cache: TransformerCache | None = None,
    ) -> Tensor:
        """Return the sequence after all layers, of the shape of ``tgt``.

        With a cache of :meth:`new_cache` it follows those of earlier calls, and
        ``memory`` and ``memory_key_padding_mask`` are None.
        """
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        options = (*masks, tgt_is_causal, memory_is_causal)
        for layer, own in zip(self.layers, _each(cache, self.layers), strict=True):
            tgt = layer(tgt, memory, *options, own)
        return _normalized(tgt, self.norm)

    def new_cache(
        self,
        memory: Tensor,
        capacity: int,
        memory_key_padding_mask: Tensor | None = None,
        *,
        padding: bool = False,
    ) -> TransformerCache:
        """Return a cache for ``capacity`` positions, with keys and values of
        ``memory``.

        ``padding`` keeps the ``tgt_key_padding_mask`` of each call.
        """
        options = (memory, capacity, memory_key_padding_mask)
        return TransformerCache(
            layer.new_cache(*options, padding=padding) for layer in self.layers
        )


class Transformer(Module):
    """An encoder and a decoder with a norm after each (A. Vaswani et al., 2017).

    Sequences are [length, batch, d_model], or [batch, length, d_model] with
    ``batch_first``. Matrices are drawn as by :func:`burn.nn.init.xavier_uniform`.
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Activation = "relu",
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
    ) -> None:
        super().__init__()
        size = (d_model, nhead, dim_feedforward, dropout, activation)
        form = (layer_norm_eps, batch_first, norm_first, bias)
        norms = [LayerNorm(d_model, layer_norm_eps, bias=bias) for _ in range(2)]
        encoder_layer = TransformerEncoderLayer(*size, *form)
        decoder_layer = TransformerDecoderLayer(*size, *form)
        self.encoder = TransformerEncoder(encoder_layer, num_encoder_layers, norms[0])
        self.decoder = TransformerDecoder(decoder_layer, num_decoder_layers, norms[1])
        for module in dict.fromkeys(m for _, m in self.modules()):
            for name, box in list(vars(module).items()):
                if isinstance(box, Parameter) and box.ndim > 1:
                    setattr(module, name, Parameter(init.xavier_uniform(box.shape)))

    def __call__(
        self,
        src: Tensor,
        tgt: Tensor,
        src_mask: Tensor | None = None,
        tgt_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
        src_key_padding_mask: Tensor | None = None,
        tgt_key_padding_mask: Tensor | None = None,
        memory_key_padding_mask: Tensor | None = None,
        src_is_causal: bool = False,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Tensor:
        """Return the decoder's sequence, of the shape of ``tgt``."""
        memory = self.encoder(src, src_mask, src_key_padding_mask, src_is_causal)
        masks = (tgt_mask, memory_mask, tgt_key_padding_mask, memory_key_padding_mask)
        return self.decoder(tgt, memory, *masks, tgt_is_causal, memory_is_causal)

    @staticmethod
    def generate_square_subsequent_mask(sz: int) -> Tensor:
        """Return float32 [sz, sz]: minus infinity above the diagonal, 0 elsewhere."""
        above = np.triu(np.full((sz, sz), -np.inf, np.float32), 1)
        return from_numpy(above)


def _each(cache: TransformerCache | None, layers: ModuleList[Any]) -> list[Any]:
    """Return the cache of each layer, None without a cache."""
    return [None] * len(layers) if cache is None else list(cache.layers)


def _copies(layer: Module, count: int) -> ModuleList[Any]:
    copies = [deepcopy(layer) for _ in range(count)]
    for copy in copies:
        for _, module in copy.modules():
            if isinstance(module, Dropout):
                module.random_state = random_state(None)
    return ModuleList(copies)


def _normalized(x: Tensor, norm: Module | None) -> Tensor:
    if norm is None:
        return x
    assert callable(norm)
    y: Tensor = norm(x)
    return y
