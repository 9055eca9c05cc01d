"""Candidate names of local values, in order of preference."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from burn.dtypes import is_float
from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import singular, snake
from burn_import.tracing.trace import Apply, ModuleCall, Statement, Symbol
from burn_ir.types import Type

if TYPE_CHECKING:
    from burn_import.codegen.printing.line_writer import LineWriter

#: Names of values without a noun, in order of preference.
STREAMS = ("x", "y", "z", "w", "v", "u")

#: Maximum number of simultaneously live results that are numbered per word.
MOST_NUMBERED = 4

#: The least number of results of a module that are numbered as feature maps, and the
#: least number of their axes.
FEATURE_MAPS, IMAGE = 3, 4
#: Maximum number of results that a module returns as a plain tuple.
MOST_IN_TUPLE = 3

#: Nouns of results by primitive.
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
#: Words for results by primitive if all generic names are in use.
WORDS = {
    "add": "total",
    "sub": "difference",
    "mul": "product",
    "div": "ratio",
    "neg": "negated",
    "pow": "power",
    "exp": "exponentials",
    "log": "logs",
    "sum": "sums",
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
    "reshape": "reshaped",
    "transpose": "transposed",
    "permute": "transposed",
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

#: Words for results of layers, by attribute pattern.
LAYERS = (
    (r".*(attn|attention)\d*", "attention"),
    (r".*norm\w*|(ln|bn)_?\w*", "normed"),
    (r".*mlp\d*|ffn?\d*|feed_forward\d*", "hidden"),
    (r".*(embed|embedding|emb)\d*", "embeddings"),
    (r"(.*_)?(proj|projection|linear|lin|dense|fc)_?\d*", "projected"),
    (r"(.*_)?conv\w*", "features"),
)

#: Words for results of ONNX's operators whose name differs from the primitive's.
ONNX_WORDS = {
    "slice": "piece",
    "gather": "rows",
    "reduce_mean": "mean",
    "reduce_sum": "sums",
    "reduce_max": "peak",
    "reduce_min": "least",
}

#: Qualifiers by primitive for results with the same noun.
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


def noun_of(writer: LineWriter, symbol: Symbol, statement: Statement) -> str:
    """Return the noun of a result, "" if it has none."""
    if isinstance(statement, ModuleCall) and statement.visit:
        leaf = snake(statement.path[-1])
        return "bias" if leaf.endswith("bias") else leaf
    noun = writer.outputs.get(symbol) or writer.nouns.get(symbol.name)
    return noun or _role(statement, ROLES)


def name_candidates(
    writer: LineWriter, symbol: Symbol, statement: Statement, expression: Expression
) -> Iterator[str]:
    """Yield candidate names of a result, in order of preference.

    Without a noun, a result prefers the name of the generic value that it replaces.
    """
    noun = noun_of(writer, symbol, statement)
    if noun:
        yield noun
        yield from _qualified(writer, noun, statement)
        return
    numbered = _numbered_results(writer, statement)
    if symbol in numbered:
        yield f"{result_word(symbol.type)}_{numbered.index(symbol)}"
    sources = {writer.render.names[s]: None for s in expression.symbols}
    if len(statement.targets) == 1:
        yield from (stream for stream in STREAMS if stream in sources)
        yield STREAMS[0]
        yield from (name for name in sources if name in writer.plain)
    word = writer.uses.word(symbol)
    if word:
        yield word
    words = list(_words(statement))
    yield from words
    for number in range(2, MOST_NUMBERED + 1):
        yield from (f"{word}{number}" for word in words[:1])
    yield from STREAMS


def result_word(value_type: Type | None) -> str:
    """Return a word for one of several results without nouns, by its rank."""
    shape = None if value_type is None else value_type.shape
    if shape is None or value_type is None or not is_float(value_type.dtype):
        return "output"
    return "features" if len(shape) >= IMAGE else "hidden_state"


def _numbered_results(writer: LineWriter, statement: Statement) -> list[Symbol]:
    """Return the results of a module that are one series: none of them has a noun.

    They are images of different sizes, at least ``FEATURE_MAPS``, or all results of a
    module that returns a NamedTuple.
    """
    if not isinstance(statement, ModuleCall):
        return []
    series = [s for s in statement.targets if not noun_of(writer, s, statement)]
    words = {result_word(symbol.type) for symbol in series}
    if len(series) == len(statement.targets) > MOST_IN_TUPLE and len(words) == 1:
        return series
    maps = [s for s in series if result_word(s.type) == "features"]
    sizes = {symbol.shape[2:] for symbol in maps}
    return maps if len(maps) == len(sizes) >= FEATURE_MAPS else []


def _qualified(writer: LineWriter, noun: str, statement: Statement) -> Iterator[str]:
    """Yield ``noun`` qualified by its producer."""
    if isinstance(statement, ModuleCall):
        nouns = [writer.nouns.get(target.name) for target in statement.targets]
        index = next((s for s in reversed(statement.path) if s.isdigit()), "")
        if index and nouns.count(noun) == 1:
            yield f"{noun}_{index}"
        yield from _words(statement)
    kind = _role(statement, KINDS)
    if kind:
        yield f"{kind}_{noun}"


def _words(statement: Statement) -> Iterator[str]:
    """Yield names for a statement's result once all stream names are taken."""
    if isinstance(statement, ModuleCall):
        names = [s for s in statement.path if not s.isdigit()]
        if names and len(statement.targets) == 1:
            yield from _layer_words(singular(snake(names[-1])))
    word = _role(statement, WORDS)
    if word:
        yield word


def _layer_words(leaf: str) -> Iterator[str]:
    """Yield names for the result of the layer with the attribute ``leaf``.

    The attribute of a quantizer begins with that of the layer, or with the operator,
    whose result it rounds.
    """
    match = re.fullmatch(r"(.*?)_?quantizer_?\d*", leaf)
    name = match[1] if match else leaf
    yield from (word for form, word in LAYERS if re.fullmatch(form, name))
    if match:
        words = (table.get(name) for table in (ROLES, ONNX_WORDS, WORDS))
        yield from filter(None, words)
        yield "rounded"
    elif not re.fullmatch(r"[a-z]\d*", leaf):
        yield leaf


def _role(statement: Statement, words: Mapping[str, str]) -> str:
    """Return the noun of a primitive's result, from ``words``."""
    if not isinstance(statement, Apply) or len(statement.targets) > 1:
        return ""
    return words.get(statement.primitive.name, "")


def tuple_names(names: list[str], statement: Statement) -> list[str]:
    """Return ``names`` with parentheses for a tuple result: ``y, (h, c)``."""
    places = getattr(statement, "results", None) or range(len(names))
    targets = []
    for slot in places:
        inner = [slot] if isinstance(slot, int) else list(slot)
        text = ", ".join(names[i] for i in inner)
        unread = all(names[i] == "_" for i in inner)
        whole = text if isinstance(slot, int) else f"({text})"
        targets.append("_" if unread else whole)
    is_first = isinstance(statement, ModuleCall) and statement.is_first_result
    return [*targets, "_"] if is_first else targets
