"""Descriptive class names instead of numbered ones.

Exporters often name modules after their place in a list: the three layers of a block of
T5 are all a ``Layer``. Named after a module that only some of them hold, they are
``SelfAttentionLayer`` and ``DenseReluDenseLayer`` instead of ``Layer`` and ``Layer3``.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.syntax import (
    ARRAYS,
    called_name,
    fields_of,
    parameters_of,
    replace_names,
)
from burn_import.tracing.identifiers import Namespace, camel, singular

_WORD = re.compile(r"([A-Za-z_]+)\d*")
_NUMBERED = re.compile(r"(.*?[A-Za-z])V?\d+")
#: Up to so many classes, the first keeps its name.
FEW = 2
#: Maximum length of a name.
LONGEST = 40


def distinctive_names(texts: Sequence[ClassText]) -> dict[str, str]:
    """Return new names of classes that differ only in a number."""
    groups: dict[str, list[ClassText]] = {}
    for text in texts:
        groups.setdefault(_stem(text.name), []).append(text)
    names = Namespace(text.name for text in texts)
    renamed: dict[str, str] = {}
    for stem, group in groups.items():
        is_numbered = any(text.name != stem for text in group)
        if len(group) > 1 and is_numbered and not any(text.root for text in group):
            renamed.update(_renamed(stem, group, names))
    return renamed


def with_names(texts: Sequence[ClassText], names: dict[str, str]) -> list[ClassText]:
    """Return the classes with new names, in their own and other classes."""
    if not names:
        return list(texts)
    return [
        replace(
            text,
            name=names.get(text.name, text.name),
            fields=[replace_names(line, names) for line in text.fields],
            steps=replace_names(f"({text.steps})", names)[1:-1],
        )
        for text in texts
    ]


def _renamed(stem: str, group: Sequence[ClassText], names: Namespace) -> dict[str, str]:
    """Return the new names of the classes of one stem."""
    words = _distinctive_words(group)
    renamed = {}
    for text in group:
        if text.name == stem and len(group) <= FEW:
            continue
        word = words.get(text.name, "")
        word = _without_last_word_of(stem, word)
        if word and not stem.startswith(word) and len(word + stem) <= LONGEST:
            renamed[text.name] = names.unique(word + stem)
    if not renamed and len(group) == FEW and words.get(stem):
        (second,) = (text.name for text in group if text.name != stem)
        word = _without_last_word_of(stem, words[stem])
        if word and not stem.startswith(word) and len(word + stem) <= LONGEST:
            renamed = {stem: names.unique(word + stem), second: stem}
    return renamed


def _without_last_word_of(stem: str, word: str) -> str:
    """Return ``word`` without the last word of ``stem``: one ``Layer`` is enough."""
    last = re.findall(r"[A-Z][a-z]*", stem)[-1:]
    return word.removesuffix(last[0]) if last else word


def _distinctive_words(group: Sequence[ClassText]) -> dict[str, str]:
    """Return for each class a module or an operand that other classes lack."""
    attributes = {text.name: _attributes(text) for text in group}
    operands = {text.name: _operands(text) for text in group}
    words: dict[str, str] = {}
    for name, own in attributes.items():
        counts = {one: sum(one in kept for kept in attributes.values()) for one in own}
        distinctive = [one for one, count in counts.items() if count < len(group)]
        others = set[str]().union(*(o for n, o in operands.items() if n != name))
        if distinctive:
            words[name] = min(distinctive, key=counts.__getitem__)
        elif operands[name] > others:
            words[name] = min(operands[name] - others)
    return {name: camel(singular(word)) for name, word in words.items()}


def _attributes(text: ClassText) -> list[str]:
    """Return the attributes for modules and flags, without numbers at their ends."""
    types = parameters_of(text.constructor)
    modules = (
        _WORD.fullmatch(name)
        for name, value in fields_of(text)
        if _is_module(value) or types.get(ast.unparse(value)) == "bool"
    )
    return [match[1] for match in modules if match]


def _is_module(value: ast.expr) -> bool:
    """Return whether a field is a module or a function, neither number nor array."""
    if isinstance(value, ast.IfExp):
        return _is_module(value.body)
    if isinstance(value, ast.Call):
        return called_name(value) not in ARRAYS
    return isinstance(value, ast.Attribute)


def _operands(text: ClassText) -> set[str]:
    """Return the parameters of a body whose names are words."""
    names = parameters_of(text.signature)
    return {one for one in names if len(one) > 1 and not re.search(r"\d", one)}


def _stem(name: str) -> str:
    match = _NUMBERED.fullmatch(name)
    return match[1] if match else name
