"""What a local value would like to be called, the best first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import singular, snake
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol

if TYPE_CHECKING:
    from burn_import.codegen.printing.writer import Writer

#: What has no noun, in the order in which names are taken.
STREAMS = ("x", "y", "z", "w", "v", "u")

#: Results of these primitives are known by a noun.
ROLES = {
    "softmax": "weights",
    "sigmoid": "gate",
    "mean": "mean",
    "sqrt": "root",
    "shape": "shape",
    "size": "size",
    "arange": "positions",
    "cos": "cos",
    "sin": "sin",
    "lstm": "hidden",
}
#: What the others are called if all streams are taken.
WORDS = {
    "add": "added",
    "sub": "difference",
    "mul": "product",
    "div": "ratio",
    "neg": "negated",
    "pow": "power",
    "exp": "exps",
    "log": "logs",
    "sum": "total",
    "max": "peak",
    "min": "least",
    "maximum": "larger",
    "minimum": "smaller",
    "equal": "same",
    "not_equal": "differs",
    "logical_not": "flag",
    "logical_and": "both",
    "logical_or": "either",
    "less": "below",
    "greater": "above",
    "take": "rows",
    "embedding": "rows",
    "gather_elements": "picked",
    "getitem": "piece",
    "concat": "joined",
    "stack": "stacked",
    "split": "part",
    "chunk": "part",
    "pad": "padded",
    "where": "chosen",
    "reshape": "shaped",
    "transpose": "turned",
    "permute": "turned",
    "expand": "spread",
    "tile": "tiled",
    "matmul": "projected",
    "linear": "projected",
    "cast": "numbers",
    "clip": "clipped",
    "resize": "resized",
    "argmax": "best",
    "topk": "top",
    "conv": "filtered",
    "layer_norm": "normed",
    "rms_norm": "normed",
    "tanh": "squashed",
    "relu": "rectified",
    "gelu": "activated",
    "silu": "activated",
    "attention": "attended",
}

#: What tells a result from another of the same noun.
KINDS = {
    "add": "shifted",
    "sub": "shifted",
    "mul": "scaled",
    "div": "scaled",
    "neg": "negative",
    "concat": "joined",
    "stack": "stacked",
    "reshape": "flat",
    "flatten": "flat",
    "unsqueeze": "wide",
    "expand": "wide",
    "tile": "wide",
    "squeeze": "narrow",
    "transpose": "turned",
    "permute": "turned",
    "getitem": "partial",
    "take": "picked",
    "embedding": "picked",
    "gather_elements": "picked",
    "cast": "plain",
    "clip": "clipped",
    "logical_not": "inverse",
    "where": "final",
    "rotary_embedding": "rotated",
    "linear": "projected",
    "matmul": "projected",
    "pad": "padded",
    "roll": "shifted",
    "rms_norm": "normed",
    "layer_norm": "normed",
    "logical_and": "joint",
    "logical_or": "joint",
}


def noun_of(writer: Writer, symbol: Symbol, statement: Statement) -> str:
    """What a result is, as far as that is known."""
    if isinstance(statement, ModuleCall) and statement.visit:
        leaf = snake(statement.path[-1])
        return "bias" if leaf.endswith("bias") else leaf
    known = writer.outputs.get(symbol) or writer.nouns.get(symbol.name)
    return known or _role(statement, ROLES)


def wishes(
    writer: Writer, symbol: Symbol, statement: Statement, expression: Expression
) -> Iterator[str]:
    """What a result would like to be called, the best first.

    Without a noun, a value that replaces the stream it came from keeps that name.
    """
    noun = noun_of(writer, symbol, statement)
    if noun:
        yield noun
        yield from _qualified(writer, noun, statement)
        return
    sources = {writer.render.names[s] for s in expression.symbols}
    if len(statement.targets) == 1:
        yield from (stream for stream in STREAMS if stream in sources)
    yield from STREAMS
    yield from _words(statement)


def _qualified(writer: Writer, noun: str, statement: Statement) -> Iterator[str]:
    """``noun`` told from another of its kind by what makes it."""
    if isinstance(statement, ModuleCall):
        nouns = [writer.nouns.get(target.name) for target in statement.targets]
        place = next((s for s in reversed(statement.path) if s.isdigit()), "")
        if place and nouns.count(noun) == 1:
            yield f"{noun}_{place}"
        yield from _words(statement)
    kind = _role(statement, KINDS)
    if kind:
        yield f"{kind}_{noun}"


def _words(statement: Statement) -> Iterator[str]:
    """What the result of a statement is called if all streams are taken."""
    if isinstance(statement, ModuleCall):
        names = [s for s in statement.path if not s.isdigit()]
        if names and len(statement.targets) == 1:
            yield singular(snake(names[-1]))
    word = _role(statement, WORDS)
    if word:
        yield word


def _role(statement: Statement, words: Mapping[str, str]) -> str:
    """What the result of a primitive is called, by ``words``."""
    if not isinstance(statement, Apply) or len(statement.targets) > 1:
        return ""
    return words.get(statement.primitive.name, "")


def nested(names: list[str], statement: Statement) -> list[str]:
    """``names`` with parentheses where one result is a tuple: ``y, (h, c)``."""
    places = getattr(statement, "results", None) or range(len(names))
    found = []
    for place in places:
        inner = [place] if isinstance(place, int) else list(place)
        text = ", ".join(names[i] for i in inner)
        unread = all(names[i] == "_" for i in inner)
        whole = text if isinstance(place, int) else f"({text})"
        found.append("_" if unread else whole)
    return found
