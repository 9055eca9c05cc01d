"""Models that consist of one list: their class is an ``nn.Sequential``."""

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.syntax import assigned_field, list_items, statement_of
from burn_import.tracing.unparse import unparse_expression
from burn_ir.types import Array

Weights = list[tuple[str, Array]]


def promote_list(
    texts: Sequence[ClassText], weights: Weights, inside: str
) -> tuple[list[ClassText], Weights]:
    """Return ``texts`` and ``weights`` with the list at ``inside`` as the model itself.

    They stay unchanged if the model has other members.
    """
    root, *others = texts
    items = _items(root.fields, inside)
    prefix = f"{inside}."
    if items is None or not all(key.startswith(prefix) for key, _ in weights):
        return list(texts), weights
    called = re.compile(rf"return self\.{inside}\(\w+\)")
    body = [_without_list(line, inside) for line in root.body]
    last = body[-1].partition("return ")
    whole_list = len(body) == 1 and called.fullmatch(root.body[0].strip())
    if last[1] and not whole_list:  # list members have no static type
        body[-1:] = [f"{last[0]}result: Tensor = {last[2]}", f"{last[0]}return result"]
    promoted = replace(root, base="nn.Sequential", steps=items, fields=[], body=body)
    renamed = [(key.removeprefix(prefix), array) for key, array in weights]
    return [promoted, *others], renamed


def _without_list(line: str, inside: str) -> str:
    """Return a line of ``__call__`` that reads the list as the model itself."""
    line = re.sub(rf"\bself\.{inside}\(", "super().__call__(", line)
    return re.sub(rf"\bself\.{inside}\b", "self", line)


def _items(fields: Sequence[str], inside: str) -> str | None:
    """Return the items of the only field, if it is a list, else None."""
    if len(fields) != 1:
        return None
    name, call = assigned_field(statement_of(fields[0]))
    if not isinstance(call, ast.Call) or name != inside:
        return None
    items = list_items(call)
    if any(isinstance(item, ast.GeneratorExp) for item in items):
        generator = next(item for item in items if isinstance(item, ast.GeneratorExp))
        return f"*({ast.unparse(generator)[1:-1]})"
    return ", ".join(unparse_expression(item) for item in items)
