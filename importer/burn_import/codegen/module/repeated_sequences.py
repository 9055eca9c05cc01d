"""Classes for sequences of layers that differ only in numbers.

An author writes ``conv_dw(32, 64, 2)``, a function that returns an ``nn.Sequential``;
an exporter leaves only the layers. The class derives from ``nn.Sequential``, so that
keys stay the same.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.merge.constructor_parameters import Constructor, constructor
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.codegen.merge.init_fields import Column, slot, unite_fields
from burn_import.tracing.identifiers import Namespace
from burn_import.tracing.unparse import unparsed

#: Minimum number and length of sequences that get a class.
FEWEST, SHORTEST = 3, 3
SEQUENTIAL = "nn.Sequential"


def with_sequence_classes(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return ``texts`` and a class for each frequent kind of sequence."""
    names = Namespace(text.name for text in texts)
    statements = [[ast.parse(line).body[0] for line in text.fields] for text in texts]
    kinds: dict[tuple[str, ...], list[ast.Call]] = {}
    for statement in (one for own in statements for one in own):
        for node in ast.walk(statement):
            if isinstance(node, ast.Call) and _is_sequence(node):
                outline = tuple(map(_outline, node.args))
                kinds.setdefault(outline, []).append(node)
    classes = []
    for calls in kinds.values():
        if len(calls) >= FEWEST:
            classes += _merged_class(calls, names)
    if not classes:
        return list(texts)
    rewritten = [
        replace(text, fields=[unparsed(statement) for statement in own])
        for text, own in zip(texts, statements, strict=True)
    ]
    return [*rewritten, *classes]


def _is_sequence(call: ast.Call) -> bool:
    """Return whether a call constructs a sequence of layers and functions."""
    return (
        ast.unparse(call.func) == SEQUENTIAL
        and len(call.args) >= SHORTEST
        and all(
            isinstance(step, ast.Attribute)
            or (isinstance(step, ast.Call) and ast.unparse(step.func).startswith("nn."))
            for step in call.args
        )
    )


def _outline(step: ast.expr) -> str:
    """Return the layer or function of a step, without its numbers."""
    return ast.unparse(step.func if isinstance(step, ast.Call) else step)


def _merged_class(calls: list[ast.Call], names: Namespace) -> list[ClassText]:
    """Return a common class of all ``calls``, and replace them by calls of it.

    Empty if they differ in more than numbers.
    """
    lines = [[f"self.steps = {ast.unparse(call)}"] for call in calls]
    columns: list[Column] = []
    try:
        (steps,) = unite_fields(lines, {}, columns)
        init = constructor(columns, [])
    except DifferError:
        return []
    name = names.unique(_name(steps.text))
    for number, call in enumerate(calls):
        made = ast.parse(init.call(name, number), mode="eval").body
        assert isinstance(made, ast.Call)
        call.func, call.args, call.keywords = made.func, made.args, made.keywords
    return [_class(name, steps.text, init)]


def _name(steps: str) -> str:
    """Return a class name for a sequence of such steps."""
    word = "Linear" if steps.startswith(f"{SEQUENTIAL}(nn.Linear") else "Conv"
    word = "Separable" if "groups=" in steps.partition(")")[0] else word
    has_norm = re.search(r"nn\.\w*Norm", steps) is not None
    return f"{word}Block" if has_norm else f"{word}Layers"


def _class(name: str, text: str, init: Constructor) -> ClassText:
    """Return the class whose constructor creates the steps in ``text``."""
    for number in reversed(range(len(init.texts))):
        text = text.replace(slot(number), init.texts[number])
    steps = text.removeprefix(f"{SEQUENTIAL}(").removesuffix(")")
    return ClassText(
        name,
        "",
        [],
        base=SEQUENTIAL,
        steps=steps,
        constructor=init.signature,
        modules={"ops"} if "ops." in steps else set(),
    )
