"""Models that consist of one list: their class is an ``nn.Sequential``."""

import ast
from collections.abc import Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.syntax import (
    assigned_field,
    called_name,
    list_items,
    replace_nodes,
    statement_of,
)
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
    body = _without_list(root.body, inside)
    before, returned, value = body[-1].partition("return ")
    if returned and not _is_call_alone(root.body, inside):
        # Members of lists have no static type.
        body[-1:] = [f"{before}result: Tensor = {value}", f"{before}return result"]
    promoted = replace(root, base="nn.Sequential", steps=items, fields=[], body=body)
    renamed = [(key.removeprefix(prefix), array) for key, array in weights]
    return [promoted, *others], renamed


def _is_call_alone(body: Sequence[str], inside: str) -> bool:
    """Return whether ``__call__`` only calls the list with one operand."""
    only = statement_of(body[0].strip()) if len(body) == 1 else None
    call = only.value if isinstance(only, ast.Return) else None
    if not isinstance(call, ast.Call) or called_name(call) != f"self.{inside}":
        return False
    return [type(operand) for operand in call.args] == [ast.Name] and not call.keywords


def _without_list(body: Sequence[str], inside: str) -> list[str]:
    """Return the lines of ``__call__``, which read the list as the model itself."""
    source = "\n".join(["def __call__():", *body])
    nodes = list(ast.walk(ast.parse(source)))
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    texts = [
        (node, "super().__call__" if node in called else "self")
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node) == f"self.{inside}"
    ]
    return replace_nodes(source, texts).split("\n")[1:]


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
