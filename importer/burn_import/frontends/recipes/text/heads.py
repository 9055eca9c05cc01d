"""Heads of encoders and decoders of text."""

from burn.record.errors import shown
from burn_import.frontends.recipes.config import Config, NotClaimed
from burn_import.frontends.recipes.graph_writer import RecipeWriter
from burn_ir.raw import RawModel

#: Suffixes of Hugging Face's classes that predict the next token.
HEADED = ("LMHeadModel", "ForCausalLM", "ForConditionalGeneration")


def scores(w: RecipeWriter, family: str, x: str, pooled: str | None) -> RawModel | None:
    """Return a model with a classification or question answering head, or None.

    ``pooled`` is the pooled first token, for a class of the whole text.
    """
    if w.has("qa_outputs.weight"):
        w.called(f"{family}ForQuestionAnswering")
        start, end = span_scores(w, w.linear("qa_outputs", x))
        return w.model(start_logits=start, end_logits=end)
    if w.has("classifier.weight"):
        kind = "Token" if pooled is None else "Sequence"
        w.called(f"{family}For{kind}Classification")
        return w.model(logits=w.linear("classifier", pooled or x))
    return None


def classes(w: RecipeWriter, family: str, x: str, attention_mask: str) -> RawModel:
    """Return the model with the layer ``score``: classes of a text, or of each token.

    A text is represented by its last token that is not padding, which has seen all
    others. For classes of tokens the layer has a bias.
    """
    kind = "Token" if w.has("score.bias") else "Sequence"
    w.called(f"{family}For{kind}Classification")
    if kind == "Sequence":
        places = w.op("Mul", w.positions(attention_mask), attention_mask)
        last = w.op("ReduceMax", places, [1], keepdims=1, name="last")
        x = w.op("GatherND", x, last, batch_dims=1)
    return w.model(logits=w.linear("score", x))


def span_scores(w: RecipeWriter, logits: str) -> list[str]:
    """Return the scores of tokens as start and as end of an answer."""
    parts = w.many("Split", 2, logits, axis=-1, num_outputs=2)
    return [w.op("Squeeze", part, [-1]) for part in parts]


def vocabulary(w: RecipeWriter, name: str, x: str, table: str, bias: str = "") -> str:
    """Return the scores of all tokens by the layer ``name``.

    Its weight may be tied to the embedding at the key ``table``. A ``bias`` beside the
    layer replaces the layer's own, or is a copy of it.
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
    """Return whether a decoder predicts the next token.

    That is so if there are weights for it, if the decoder's weights are in the module
    ``base``, or if the configuration says so: tied weights are stored once.
    """
    if w.has(f"{name}.weight") or w.inside(base):
        return True
    return any(name.endswith(HEADED) for name in config.architectures)


def next_token(
    w: RecipeWriter, config: Config, x: str, table: str, name: str = "lm_head"
) -> str:
    """Return the scores of the next token by layer ``name``, maybe tied to ``table``.

    Raises:
        NotClaimed: the weight is missing, and the configuration does not tie it.
    """
    if not w.has(f"{name}.weight") and not config.get("tie_word_embeddings", True):
        raise NotClaimed(
            "config 'tie_word_embeddings': expected true, since there is no weight "
            f"{shown(w.key(f'{name}.weight'))}, got false"
        )
    return vocabulary(w, name, x, table)


def soft_cap(w: RecipeWriter, x: str, bound: float) -> str:
    """Return soft-capped scores: ``tanh(x / bound) * bound``."""
    if not bound:
        return x
    return w.op("Mul", w.op("Tanh", w.op("Div", x, bound)), bound)
