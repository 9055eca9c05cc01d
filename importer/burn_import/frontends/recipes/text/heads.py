"""Heads of encoders and decoders of text."""

from __future__ import annotations

from burn.record.errors import shown
from burn_import.frontends.recipes.config import Config, NotClaimed
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_ir.raw import RawModel

#: How classes of Hugging Face end that give scores of the next token.
HEADED = ("LMHeadModel", "ForCausalLM", "ForConditionalGeneration")


def scores(w: RecipeWriter, family: str, x: str, pooled: str | None) -> RawModel | None:
    """The model with a head that many families have: classes, or ends of an answer.

    ``pooled`` is what is made of the first token, for a class of the whole text.
    """
    if w.has("qa_outputs.weight"):
        w.called(f"{family}ForQuestionAnswering")
        start, end = ends(w, w.linear("qa_outputs", x))
        return w.model(start_logits=start, end_logits=end)
    if w.has("classifier.weight"):
        kind = "Token" if pooled is None else "Sequence"
        w.called(f"{family}For{kind}Classification")
        return w.model(logits=w.linear("classifier", pooled or x))
    return None


def classes(w: RecipeWriter, family: str, x: str, attention_mask: str) -> RawModel:
    """The model with the layer ``score``: classes of a text, or of each token.

    A text is read up to its last token that is no padding, which has seen all others.
    Where each token has a class, the layer has a bias.
    """
    kind = "Token" if w.has("score.bias") else "Sequence"
    w.called(f"{family}For{kind}Classification")
    if kind == "Sequence":
        places = w.op("Mul", w.positions(attention_mask), attention_mask)
        last = w.op("ReduceMax", places, [1], keepdims=1, name="last")
        x = w.op("GatherND", x, last, batch_dims=1)
    return w.model(logits=w.linear("score", x))


def ends(w: RecipeWriter, logits: str) -> list[str]:
    """The scores of tokens as the start and as the end of an answer."""
    parts = w.many("Split", 2, logits, axis=-1, num_outputs=2)
    return [w.op("Squeeze", part, [-1]) for part in parts]


def vocabulary(w: RecipeWriter, name: str, x: str, table: str, bias: str = "") -> str:
    """The scores of all tokens by the layer ``name``.

    The weight may be the one at the key ``table``, that of tokens. A ``bias`` beside
    the layer is the layer's own once more, or stands for it.
    """
    with w.module(name, "Linear"):
        own = w.weight("weight") if w.has("weight") else w.shared(table)
        inner = w.weight("bias") if w.has("bias") else None
        x = w.op("Linear", x, own, inner)
    if not bias or not w.has(bias):
        return x
    if inner is None:
        return w.add(x, w.weight(bias))
    w.weights.ignore(w.key(bias))
    return x


def is_headed(
    w: RecipeWriter, config: Config, base: str, name: str = "lm_head"
) -> bool:
    """Whether a decoder gives scores of the next token, and not hidden states alone.

    It does if it has weights for them, if the module ``base`` stands around its own
    weights, or if the configuration says so: weights that are tied are stored once.
    """
    if w.has(f"{name}.weight") or w.inside(base):
        return True
    return any(name.endswith(HEADED) for name in config.architectures)


def next_token(
    w: RecipeWriter, config: Config, x: str, table: str, name: str = "lm_head"
) -> str:
    """The scores of the next token by the layer ``name``, with its weight or ``table``.

    Raises:
        NotClaimed: there is no weight, and the configuration allows no other.
    """
    if not w.has(f"{name}.weight") and not config.get("tie_word_embeddings", True):
        raise NotClaimed(
            "config 'tie_word_embeddings': expected true, since there is no weight "
            f"{shown(w.key(f'{name}.weight'))}, got false"
        )
    return vocabulary(w, name, x, table)


def capped(w: RecipeWriter, x: str, bound: float) -> str:
    """Scores that come near to ``bound`` and do not reach it."""
    if not bound:
        return x
    return w.op("Mul", w.op("Tanh", w.op("Div", x, bound)), bound)
