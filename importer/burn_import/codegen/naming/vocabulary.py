"""Nouns of values, by producer, by consumer and by layer."""

from __future__ import annotations

import re

#: Nouns of results by operator and position; "" is none.
RESULT_NOUNS: dict[str, tuple[str, ...]] = {
    "Attention": ("", "key", "value", "scores"),
    "Softmax": ("weights",),
    "Cos": ("cos",),
    "Sin": ("sin",),
    "Range": ("positions",),
    "ArgMax": ("indices",),
    "ArgMin": ("indices",),
    "NonZero": ("indices",),
    "TopK": ("", "indices"),
    "NonMaxSuppression": ("kept",),
    "LSTM": ("", "hidden", "cell"),
    "GRU": ("", "hidden"),
    "RNN": ("", "hidden"),
    "GlobalAveragePool": ("pooled",),
}

#: Nouns of results of the model whose readers are not known.
MODEL_RESULT_NOUNS = {"weights": "probabilities"}
#: Nouns of operands by operator and position.
OPERAND_NOUNS: dict[str, dict[int, str]] = {
    "Attention": {0: "query", 1: "key", 2: "value", 3: "mask"},
    "MultiheadAttention": {3: "padding", 4: "mask"},
    "RotaryEmbedding": {1: "cos", 2: "sin", 3: "positions"},
    "Softmax": {0: "scores"},
    "Cos": {0: "angles"},
    "Sin": {0: "angles"},
    "LSTM": {5: "hidden", 6: "cell"},
    "GRU": {5: "hidden"},
    "RNN": {5: "hidden"},
    "GridSample": {1: "grid"},
    "TopK": {0: "scores"},
    "NonMaxSuppression": {0: "boxes", 1: "scores"},
}

#: Operators whose result is a view or selection of the first operand.
VIEW_OPS = frozenset(
    {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Cast", "Identity", "Expand"}
    | {"Flatten", "Tile", "Slice", "Dropout", "CastLike", "GatherElements", "Gather"}
    | {"QuantizeDequantize"}
)
#: Operators whose result says little about the noun of the operand.
SIZE_OPS = frozenset({"Shape", "ReduceL2"})
#: Nouns of operands with one number for each row, by operator.
ROW_NOUNS = {"Mul": "scale", "Div": "norm"}
#: Operators for sums, products, ... of a value and a number.
SCALAR_OPS = frozenset({"Add", "Sub", "Mul", "Div", "Clip", "Neg"})
#: Operators on conditions and masks.
MASK_OPS = frozenset({"Where", "And", "Or", "Not", "Xor", "Sub", "Mul", "Min", "Max"})
#: Comparison operators.
COMPARISONS = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"})

#: Nouns of terms added to scores, with the noun of a float term beside a mask.
MASK_NOUNS = {"mask": "bias", "cross_mask": "cross_bias"}
#: Nouns that apply even if other nodes read the value.
SHARED_NOUNS = frozenset(
    {"mask", "cross_mask", "bias", "cross_bias", "cos", "sin"}
    | {"angles", "positions", "grid"}
)
#: Nouns that take precedence over the author's name.
ATTENTION_NOUNS = frozenset({"query", "key", "value"})
#: Nouns that scaling preserves, in both directions.
SCALED_NOUNS = frozenset({"query", "key", "value", "scores", "angles", "cos", "sin"})

#: Nouns of results of layers and modules, by attribute pattern.
_RESULTS = (
    (r"(to_?|w|lin_?)?q(uery)?(_proj|_lin|_layer|_linear|_b_proj)?", "query"),
    (r"(to_?|w|lin_?)?k(ey)?(_proj|_lin|_layer|_linear)?", "key"),
    (r"(to_?|w|lin_?)?v(al(ue)?)?(_proj|_lin|_layer|_linear)?", "value"),
    (r"(q|query)_?(norm|ln|layer_?norm)", "query"),
    (r"(k|key)_?(norm|ln|layer_?norm)", "key"),
    (r"gate(_proj)?|(.*_)?gate", "gate"),
    (r"up_proj", "up"),
    (r"lm_head|classifier|score|.*_classifier|qa_outputs|embed_out", "logits"),
    (r"pooler", "pooled"),
    (r"shortcut", "shortcut"),
    (r"(relative_)?(attention|position)_bias(_table)?", "bias"),
)
#: Nouns of indices into an embedding, by attribute pattern.
_INDICES = (
    (r"(embed_|wpe$)?pos(itions?)?(_emb.*|ition_emb.*)?|wpe", "positions"),
    (r"position_embeddings?|embed_positions", "positions"),
    (r"token_type_embeddings?", "token_types"),
    (r"(relative_)?(attention|position)_bias(_table)?", "buckets"),
)
_NORM = re.compile(r"(q|query|k|key)_?(norm|ln|layer_?norm)")


def result_of(attribute: str) -> str:
    """Return the noun for the result of a layer called ``attribute``, "" if unknown."""
    return _find(_RESULTS, re.sub(r"_\d+$", "", attribute))


def indices_of(attribute: str) -> str:
    """Return the noun for indices of the embedding ``attribute``, "" if unknown."""
    return _find(_INDICES, attribute)


def keeps_noun(attribute: str) -> bool:
    """Return whether a layer called ``attribute`` normalizes queries or keys."""
    return _NORM.fullmatch(attribute.lower()) is not None


def _find(table: tuple[tuple[str, str], ...], attribute: str) -> str:
    word = attribute.lower()
    return next((noun for form, noun in table if re.fullmatch(form, word)), "")
