"""Emission of a module tree as a PyTorch module and its record."""

import ast
import keyword
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import ClassVar

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.descriptions import describe
from burn_import.codegen.module.formatting import format_source
from burn_import.codegen.module.module import Assembly, Source, assemble, module_text
from burn_import.codegen.naming.function_names import parameter_names
from burn_import.codegen.printing.target import Target
from burn_import.codegen.torch import forms  # noqa: F401 registers the forms
from burn_import.codegen.torch.layers import MODULE_ATTRIBUTES, MORE_STATE, Translator
from burn_import.codegen.torch.registry import TENSOR_METHODS
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.structure import Tree
from burn_import.tracing.unparse import unparse_expression
from burn_ir.errors import Problem, UnsupportedModel
from burn_ir.graph import Graph
from burn_ir.types import Array


def with_authored_names(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return ``texts`` with the attribute names of the keys: ``_conv`` for ``conv``.

    An attribute has one name in the whole module.

    Raises:
        UnsupportedModel: a part of a key is no valid attribute of a module.
    """
    names = {n: name for text in texts for n, name in text.record_names.items()}
    for name in names.values():
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UnsupportedModel(
                f"expected keys of attributes that Python can have, got {name!r}",
                "the target burn has them",
            )
        if name in MODULE_ATTRIBUTES:
            raise UnsupportedModel(
                f"PyTorch's modules have an attribute {name!r}",
                "import it without --target torch",
            )
    if not names:
        return list(texts)
    if clash := sorted(TENSOR_METHODS & names.keys()):
        shown = ", ".join(repr(names[name]) for name in clash)
        raise UnsupportedModel(
            f"expected keys that differ from methods of tensors, got {shown}",
            "the target burn has them",
        )
    return [_with_attributes(text, names) for text in texts]


def _with_attributes(text: ClassText, names: Mapping[str, str]) -> ClassText:
    """Return ``text`` with other names of attributes."""

    def renamed(body: list[str]) -> list[str]:
        lines = "\n".join(["if True:", *body])  # the lines of a body are indented
        return syntax.rename_attributes(lines, names).split("\n")[1:] if body else []

    fields = [syntax.rename_attributes(line, names) for line in text.fields]
    methods = [replace(method, body=renamed(method.body)) for method in text.methods]
    body = renamed(text.body)
    return replace(text, fields=fields, body=body, methods=methods, record_names={})


FOLDER = files("burn_templates") / "torch"


@dataclass(frozen=True)
class Helper:
    """A definition of ``burn_templates/torch``, and the helpers that it calls."""

    name: str
    source: str
    calls: tuple[str, ...]


@cache
def helpers() -> dict[str, Helper]:
    """Return all helpers by name, in the order of their files."""
    definitions: dict[str, Helper] = {}
    for path in sorted(FOLDER.iterdir(), key=lambda path: path.name):
        if path.name.endswith(".py"):
            definitions.update(
                (one.name, one) for one in _definitions(path.read_text("ascii"))
            )
    return definitions


def _definitions(text: str) -> Iterator[Helper]:
    tree = ast.parse(text)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            source = ast.get_source_segment(text, node) or ""
            calls = sorted(
                n for n in syntax.names_in(node) if n[0] == "_" != n and n != node.name
            )
            yield Helper(node.name, source, tuple(calls))


def with_calls(names: Iterable[str]) -> list[Helper]:
    """Return the helpers of these names and all that they call, each once."""
    available, selected = helpers(), {name for name in names if name in helpers()}
    while True:
        more = {call for name in selected for call in available[name].calls} - selected
        if not more:
            return [one for name, one in available.items() if name in selected]
        selected |= more


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
    tree: Tree, graph: Graph, record: str, notes: Sequence[str] = (), inside: str = ""
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
    sources = [ast.parse(source) for text in texts for source in text.sources]
    used |= {name for source in sources for name in syntax.names_in(source)}
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
    for name, _ in syntax.fields_of(text):
        if name in MODULE_ATTRIBUTES:
            message = f"{text.name}: PyTorch's modules have an attribute {name!r}"
            raise UnsupportedModel(message, "import it without --target torch")
    body = [line.replace("super().__call__(", "super().forward(") for line in text.body]
    steps = _expression(f"f({text.steps})")[2:-1] if text.steps else ""
    head = _statement(f"def f(self{text.constructor}) -> None: pass")
    constructor = head.partition("(self")[2].partition(") -> None")[0]
    parameters = syntax.parameters_of(text.constructor)
    pairs = {name for name, kind in parameters.items() if "tuple[tuple" in kind}
    fields = [_statement(line, pairs) for line in text.fields]
    return replace(text, body=body, steps=steps, constructor=constructor, fields=fields)


def _statement(line: str, pairs: Collection[str] = ()) -> str:
    """Return a statement of ``__init__`` in PyTorch."""
    tree = Translator(pairs).visit(ast.parse(line))
    return unparse_expression(ast.fix_missing_locations(tree))


def _expression(text: str) -> str:
    tree = Translator().visit(ast.parse(text, mode="eval"))
    return unparse_expression(ast.fix_missing_locations(tree))


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
    used = syntax.names_in(ast.parse(text))
    lines = [line for name, line in IMPORTS.items() if name in used]
    ours = [line for line in lines if "torch" not in line]
    typing = sorted(used & {"Any", "NamedTuple", "Self"})
    ours.append(f"from typing import {', '.join(typing)}")
    loaders = ", ".join(sorted(used & LOADERS))
    theirs = [line for line in lines if "torch" in line]
    theirs.append(f"from safetensors.torch import {loaders}")
    theirs.append(f"from torch import {', '.join(sorted(used & {'Tensor', 'nn'}))}")
    return [*ours, "", *theirs]
