"""Emission of a module tree as a PyTorch module and its record."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.descriptions import describe
from burn_import.codegen.module.formatting import format_source
from burn_import.codegen.module.module import (
    Assembly,
    Source,
    assemble,
    module_text,
)
from burn_import.codegen.naming.function_names import parameter_names
from burn_import.codegen.printing.target import Target
from burn_import.codegen.torch import forms  # noqa: F401 registers the forms
from burn_import.codegen.torch.authored_names import with_authored_names
from burn_import.codegen.torch.helpers import helpers, with_calls
from burn_import.codegen.torch.layers import (
    MODULE_ATTRIBUTES,
    MORE_STATE,
    Translator,
)
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.structure import Tree
from burn_import.tracing.unparse import unparse_expression
from burn_ir.errors import Problem, UnsupportedModel
from burn_ir.graph import Graph
from burn_ir.types import Array

_FIELD = re.compile(r"self\.(\w+)\b")
#: The import statement of each name that a module may read, in order.
IMPORTS = {
    "math": "import math",
    "Callable": "from collections.abc import Callable",
    "Path": "from pathlib import Path",
    "torch": "import torch",
    "F": "import torch.nn.functional as F",
}
LOADERS = {"load_file", "load_model"}


def emit_torch(
    tree: Tree,
    graph: Graph,
    record: str,
    notes: Sequence[str] = (),
    inside: str = "",
) -> Source:
    """Return the source of ``tree`` for PyTorch, as ``codegen.module.emit`` for Burn.

    Raises:
        UnsupportedModel: PyTorch lacks a used feature; nothing was written.
    """

    class Listing(TorchRenderer):
        problems: ClassVar[dict[Problem, None]] = {}

    parts = assemble(tree, graph, inside, Target(Listing, has_record_names=False))
    if Listing.problems:
        raise UnsupportedModel([*Listing.problems])
    skeleton = replace(parts, texts=[_without_body(text) for text in parts.texts])
    fields = module_text(skeleton, record, notes)
    texts = [_translated(text) for text in with_authored_names(parts.texts)]
    used = set().union(*(text.modules for text in parts.texts))
    used |= {name for text in texts for name in _names(text)}
    transient = any("persistent=False" in line for t in texts for line in t.fields)
    load = "_load(model, weights)" if transient else "load_model(model, weights)"
    copied = with_calls(used | ({"_load"} if transient else set()))
    inputs = parameter_names(tree.root, parts.nouns.values)
    weights = [*parts.weights, *_more_state(parts)]
    own = parts.weights
    parts = replace(parts, texts=texts, weights=weights)
    values = {
        "inputs": describe(tree.root.graph, inputs, tuple(tree.root.graph.arguments)),
        "helpers": [one.source for one in copied],
        "load": load,
    }
    template = "torch_module.py.j2"
    body = module_text(parts, record, notes, template, imports=[], **values)
    text = module_text(parts, record, notes, template, imports=_imports(body), **values)
    name = tree.root.class_name
    return Source(format_source(text), weights, name, tuple(notes), fields, own)


def _without_body(text: ClassText) -> ClassText:
    """Return ``text`` with only its fields."""
    return replace(text, body=[], methods=[], checks=[], function="")


def _translated(text: ClassText) -> ClassText:
    """Return ``text`` with the fields and the constructor in PyTorch.

    Raises:
        UnsupportedModel: PyTorch has no such layer, or no attribute of that name.
    """
    for line in text.fields:
        match = _FIELD.match(line)
        if match and match[1] in MODULE_ATTRIBUTES:
            message = f"{text.name}: PyTorch's modules have an attribute {match[1]!r}"
            raise UnsupportedModel(message, "the target burn has it")
    body = [line.replace("super().__call__(", "super().forward(") for line in text.body]
    steps = _expression(f"f({text.steps})")[2:-1] if text.steps else ""
    head = _statement(f"def f(self{text.constructor}) -> None: pass")
    constructor = head.partition("(self")[2].partition(") -> None")[0]
    pairs = set(re.findall(r"(\w+): [^:]*tuple\[tuple", text.constructor))
    fields = [_statement(line, pairs) for line in text.fields]
    return replace(text, body=body, steps=steps, constructor=constructor, fields=fields)


def _statement(line: str, pairs: Collection[str] = ()) -> str:
    """Return a statement of ``__init__`` in PyTorch."""
    tree = Translator(pairs).visit(ast.parse(line))
    return unparse_expression(ast.fix_missing_locations(tree))


def _expression(text: str) -> str:
    tree = Translator().visit(ast.parse(text, mode="eval"))
    return unparse_expression(ast.fix_missing_locations(tree))


def _names(text: ClassText) -> Iterator[str]:
    """Yield the names of helpers in fields."""
    for line in (*text.fields, text.steps):
        yield from (word for word in re.findall(r"\b_\w+", line) if word in helpers())


def _more_state(parts: Assembly) -> Iterator[tuple[str, Array]]:
    """Yield PyTorch's additional arrays, with their keys."""
    seen: set[str] = set()
    for (key, _), entry in zip(parts.weights, parts.entries, strict=True):
        owner = key.rpartition(".")[0]
        if entry.layer in MORE_STATE and owner not in seen:
            seen.add(owner)
            for name, array in MORE_STATE[entry.layer].items():
                yield f"{owner}.{name}" if owner else name, array


def _imports(text: str) -> list[str]:
    """Return the import statements for the names that ``text`` reads."""
    used = {n.id for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Name)}
    lines = [line for name, line in IMPORTS.items() if name in used]
    ours = [line for line in lines if "torch" not in line]
    typing = sorted(used & {"Any", "NamedTuple", "Self"})
    ours.append(f"from typing import {', '.join(typing)}")
    loaders = ", ".join(sorted(used & LOADERS))
    theirs = [line for line in lines if "torch" in line]
    theirs.append(f"from safetensors.torch import {loaders}")
    theirs.append(f"from torch import {', '.join(sorted(used & {'Tensor', 'nn'}))}")
    return [*ours, "", *theirs]
