"""Forms of statements and expressions that the source check compares."""

import ast
from collections.abc import Iterator, Sequence

from burn_import.codegen.gate.allowed import RECORD_NAMES, RECORD_PREFIX, WEIGHTS
from burn_import.codegen.gate.member_names import root


def is_split_text(node: ast.Attribute) -> bool:
    """Return whether ``node`` is ``split`` of a string, which gives strings of data."""
    value = node.value
    is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
    return node.attr == "split" and is_text


def sets_state(function: ast.Attribute) -> bool:
    """Return whether ``function`` is a method that replaces a state."""
    return function.attr == "set" and root(function) == "self"


def record_name_strings(node: ast.Assign) -> list[ast.expr]:
    """Return the names that ``record_names`` or ``record_prefix`` is assigned."""
    if not assigns_record_names(node):
        return []
    return node.value.values if isinstance(node.value, ast.Dict) else [node.value]


def assigns_record_names(node: ast.Assign) -> bool:
    """Return whether a statement sets ``record_names`` or ``record_prefix``."""
    targets = [text_of(target) for target in node.targets]
    if targets == [RECORD_NAMES] and isinstance(node.value, ast.Dict):
        parts = [*node.value.keys, *node.value.values]
    elif targets == [RECORD_PREFIX]:
        parts = [node.value]
    else:
        return False
    return all(isinstance(p, ast.Constant) and isinstance(p.value, str) for p in parts)


def assigns_class_attribute(node: ast.Assign) -> bool:
    """Return whether a statement sets record names or the path of the weights."""
    path = node.value.func if isinstance(node.value, ast.Call) else node.value
    is_path = text_of(path) == "Path(__file__).with_name"
    is_weights = [text_of(target) for target in node.targets] == [WEIGHTS]
    return is_weights and is_path or assigns_record_names(node)


def embedded_records(nodes: Sequence[ast.AST]) -> Iterator[ast.expr]:
    """Yield the targets that give a class of a module its weights, as bytes.

    ``nodes`` are those of the module, itself first.
    """
    body = [s for node in nodes[:1] if isinstance(node, ast.Module) for s in node.body]
    classes = {node.name for node in body if isinstance(node, ast.ClassDef)}
    for node in body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call):
            name, _, attribute = text_of(node.targets[0]).partition(".")
            is_bytes = text_of(node.value.func) == "b64decode"
            if attribute == WEIGHTS and name in classes and is_bytes:
                yield node.targets[0]


def elements(value: ast.expr | None) -> Iterator[ast.Constant]:
    """Yield the constants in ``value``, a constant or nested lists and tuples."""
    if isinstance(value, ast.Constant):
        yield value
    elif isinstance(value, ast.List | ast.Tuple):
        for item in value.elts:
            yield from elements(item)


def text_of(node: ast.expr) -> str:
    """Return the source of a chain of names, attributes and calls, else ""."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        return f"{text_of(node.value)}.{node.attr}"
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return f"{node.func.id}({', '.join(text_of(arg) for arg in node.args)})"
    return ""
