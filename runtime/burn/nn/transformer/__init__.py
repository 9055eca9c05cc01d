"""Attention and transformer layers, with PyTorch's names and keys."""

from burn.nn.transformer.attention import (
    Attention as Attention,
    MultiheadAttention as MultiheadAttention,
)
from burn.nn.transformer.caches import (
    DecoderLayerCache as DecoderLayerCache,
    KeyValueCache as KeyValueCache,
    TransformerCache as TransformerCache,
)
from burn.nn.transformer.layers import (
    TransformerDecoderLayer as TransformerDecoderLayer,
    TransformerEncoderLayer as TransformerEncoderLayer,
)
from burn.nn.transformer.positions import (
    PositionalEncoding as PositionalEncoding,
    RotaryEmbedding as RotaryEmbedding,
)
from burn.nn.transformer.stacks import (
    Transformer as Transformer,
    TransformerDecoder as TransformerDecoder,
    TransformerEncoder as TransformerEncoder,
)
