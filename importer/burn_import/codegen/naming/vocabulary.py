"""What values are called: by what makes them, by what reads them, by whose they are."""

from __future__ import annotations

import re

#: Results that are known by what makes them; "" is no name, others go by place.
MADE: dict[str, tuple[str, ...]] = {
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

#: Operands that are known by what reads them.
USES: dict[str, dict[int, str]] = {
    "Attention": {0: "query", 1: "key", 2: "value", 3: "mask"},
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

#: Operators that give what they are given in another form.
MOVES = frozenset(
    {"Reshape", "Transpose", "Squeeze", "Unsqueeze", "Cast", "Identity", "Expand"}
    | {"Flatten", "Tile", "Slice", "Dropout", "CastLike", "GatherElements", "Gather"}
)
#: Operators that give the sum, product ... of what they are given and a number.
SCALES = frozenset({"Add", "Sub", "Mul", "Div", "Clip", "Neg"})
#: Operators from conditions and masks to these.
JOINS = frozenset({"Where", "And", "Or", "Not", "Xor", "Sub", "Mul", "Min", "Max"})
#: Operators that compare.
COMPARES = frozenset({"Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Equal"})

#: What is added to scores; beside a mask, what is no mask is a bias.
MASKS = {"mask": "bias", "cross_mask": "cross_bias"}
#: Nouns that a value has however many others read it.
LASTING = frozenset(
    {"mask", "cross_mask", "bias", "cross_bias", "cos", "sin"}
    | {"angles", "positions", "grid"}
)
#: Nouns that tell more than what an author may have called all three.
OPERANDS = frozenset({"query", "key", "value"})
#: Nouns that pass through scaling, from what is scaled to the result and back.
SCALED = frozenset({"query", "key", "value", "scores", "angles", "cos", "sin"})

#: What the result of a layer or module is, by how its attribute is called.
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
#: What the indices into an embedding are, by how its attribute is called.
_INDICES = (
    (r"(embed_|wpe$)?pos(itions?)?(_emb.*|ition_emb.*)?|wpe", "positions"),
    (r"position_embeddings?|embed_positions", "positions"),
    (r"token_type_embeddings?", "token_types"),
    (r"(relative_)?(attention|position)_bias(_table)?", "buckets"),
)
_NORM = re.compile(r"(q|query|k|key)_?(norm|ln|layer_?norm)")


def result_of(attribute: str) -> str:
    """What a layer called ``attribute`` gives, "" if that says nothing."""
    return _find(_RESULTS, re.sub(r"_\d+$", "", attribute))


def indices_of(attribute: str) -> str:
    """What an embedding called ``attribute`` is given, "" if that says nothing."""
    return _find(_INDICES, attribute)


def keeps_noun(attribute: str) -> bool:
    """Whether a layer called ``attribute`` normalises queries or keys."""
    return _NORM.fullmatch(attribute.lower()) is not None


def _find(table: tuple[tuple[str, str], ...], attribute: str) -> str:
    word = attribute.lower()
    return next((noun for form, noun in table if re.fullmatch(form, word)), "")
