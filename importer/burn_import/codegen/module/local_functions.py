"""Local functions of a model as functions of the Python module."""

import ast
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.module_reads import (
    Block,
    blocks,
    code_blocks,
    with_lines,
)
from burn_import.codegen.syntax import (
    called_name,
    constructor_calls,
    fields_of,
    parameters_of,
)
from burn_import.tracing.identifiers import snake


def as_functions(
    texts: Sequence[ClassText], functions: Collection[str]
) -> list[ClassText]:
    """Return ``texts`` with the classes named in ``functions`` as functions.

    Functions with weights stay classes, as do those in lists, those called by
    modules other than their owner, and those whose name is also the name of a
    value.
    """
    if not functions:
        return list(texts)
    reserved = set[str]().union(*map(_names, texts))
    for text in list(texts):
        name = snake(text.name, "function")
        bare = not (text.fields or text.constructor or text.methods or text.root)
        fits = text.name in functions and bare and text.body and name not in reserved
        fits = fits and not any("(self)" in line for line in text.body)
        if fits and _is_called_by_owners(texts, text.name):
            texts = [_with_function_calls(other, text.name, name) for other in texts]
            reserved.add(name)
    return list(texts)


def _names(text: ClassText) -> set[str]:
    """Return the names in a class, except those in values of fields."""
    names = {name for name, _ in fields_of(text)}
    for signature in (text.signature, *(one.signature for one in text.methods)):
        names |= parameters_of(signature).keys()
    for node in (node for block in code_blocks(text) for node in ast.walk(block.tree)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    return {*names, *(one.name for one in text.methods)}


def _instances(text: ClassText, class_name: str) -> set[str]:
    """Return the fields of ``text`` that are one instance of a class."""
    source = f"{class_name}()"
    return {name for name, value in fields_of(text) if ast.unparse(value) == source}


def _is_called_by_owners(texts: Sequence[ClassText], class_name: str) -> bool:
    """Return whether only classes with an attribute for it call a class."""
    owned = set[str]()
    for text in texts:
        fields = _instances(text, class_name)
        if len(constructor_calls([text], class_name)) != len(fields):
            return False
        owned |= fields
    called = [
        name for text in texts for block in blocks(text) for name in _calls(block)
    ]
    outer = {f"self.{name}" for name in owned}
    return not any(n.rpartition(".")[2] in owned and n not in outer for n in called)


def _calls(block: Block) -> Iterator[str]:
    """Yield what the statements of a class call: ``self.layers[0].attention``."""
    yield from filter(None, map(called_name, ast.walk(block.tree)))


def _with_function_calls(text: ClassText, class_name: str, name: str) -> ClassText:
    """Return ``text`` with calls of attributes replaced by calls of ``name``."""
    if text.name == class_name:
        body = [line.removeprefix("    ") for line in text.body]
        return replace(text, function=name, body=body)
    attributes = {f"self.{one}" for one in _instances(text, class_name)}
    own = list(blocks(text))
    for block in own if attributes else ():
        for node in ast.walk(block.tree):
            if isinstance(node, ast.Call) and called_name(node) in attributes:
                block.replace(node.func, name)
    fields = [
        line for line in text.fields if line.partition(" = ")[0] not in attributes
    ]
    return replace(with_lines(text, iter(own)), fields=fields)
