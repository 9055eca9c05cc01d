"""Shorter names for parameters of a method whose signature needs several lines."""

import re
from collections.abc import Iterator, Mapping

from burn_import.structure import ModuleNode
from burn_import.structure.module_tree import calls_of
from burn_ir.graph import Node

#: Maximum length of a line.
LINE = 88
#: Long names, and the words of attention for the same values.
SHORTER = (
    (re.compile(r"(?:attention|padding|key_padding)_mask"), "mask"),
    (re.compile(r"encoder_hidden_states?"), "context"),
)


def short_names(part: ModuleNode, nouns: Mapping[str, str]) -> dict[str, str]:
    """Return ``nouns`` such that the signature of ``__call__`` fits a line.

    They are unchanged if it does already, or if shorter ones do not help.
    """
    if not _fits(part, nouns):
        for shorter in _choices(part, nouns):
            names = {name: shorter.get(noun, noun) for name, noun in nouns.items()}
            if _fits(part, names):
                return names
    return dict(nouns)


def _choices(part: ModuleNode, nouns: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Yield replacements of nouns: one of each kind, then all together."""
    choices: dict[str, str] = {}
    for pattern, word in SHORTER:
        inputs = [n for n in part.inputs if pattern.fullmatch(nouns.get(n, ""))]
        if len(inputs) == 1 and _is_free(word, part, inputs[0], nouns):
            choices[nouns[inputs[0]]] = word
            yield {nouns[inputs[0]]: word}
    if len(choices) > 1:
        yield choices


def _is_free(
    word: str, part: ModuleNode, source: str, nouns: Mapping[str, str]
) -> bool:
    """Return whether only values that are computed from ``source`` have a noun."""
    derived = {source}
    for item in part.items:
        calls = [item] if isinstance(item, Node) else calls_of(item)
        for call in calls:
            if not derived.isdisjoint(call.inputs):
                derived.update(name for name in call.outputs if name is not None)
    return all(name in derived for name, noun in nouns.items() if noun == word)


def _fits(part: ModuleNode, nouns: Mapping[str, str]) -> bool:
    """Return whether a signature with the nouns is one line."""
    parameters = "".join(f", {nouns.get(name, 'x')}: Tensor" for name in part.inputs)
    result = ", ".join(["Tensor"] * len(part.outputs))
    annotation = f"tuple[{result}]" if len(part.outputs) > 1 else result
    return len(f"    def __call__(self{parameters}) -> {annotation}:") <= LINE
