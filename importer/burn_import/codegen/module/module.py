"""Emission of a module tree as the text of a module and its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import numpy as np

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.containers.tied_weights import (
    find_ties,
    unique_entries,
    with_ties,
    without_repetitions,
)
from burn_import.codegen.module.assembly import class_texts
from burn_import.codegen.module.default_arguments import with_default_arguments
from burn_import.codegen.module.descriptions import describe
from burn_import.codegen.module.formatting import format_emitted
from burn_import.codegen.module.input_checks import input_checks
from burn_import.codegen.module.open_sizes import with_open_sizes
from burn_import.codegen.module.repeated_sequences import with_sequence_classes
from burn_import.codegen.module.result_classes import with_result_classes
from burn_import.codegen.module.root_parameters import with_root_parameters
from burn_import.codegen.module.sequential_model import promote_list
from burn_import.codegen.module.single_members import without_single_members
from burn_import.codegen.module.tie_loops import with_tie_loops
from burn_import.codegen.naming.argument_order import order_boundaries
from burn_import.codegen.naming.function_names import Nouns, parameter_names
from burn_import.codegen.naming.record_names import find_record_names, with_record_names
from burn_import.codegen.printing.target import BURN, Target
from burn_import.codegen.trace.unread_results import (
    drop_unread_inputs,
    drop_unread_results,
)
from burn_import.structure import Tree
from burn_import.structure.module_tree import Entry
from burn_import.tracing.identifiers import comment, literal
from burn_import.version import OLDEST_RUNTIME
from burn_ir.errors import UnsupportedModel
from burn_ir.graph import Graph
from burn_ir.types import Array
from burn_templates import render

#: Maximum expanded size of a constant that repeats one element.
REPEATED_BYTES = 2**32
#: Maximum length of a note.
_NOTE = 400


@dataclass(frozen=True)
class Source:
    """A generated module without its header, and the arrays of its record.

    ``notes`` are sentences that are also in its docstring. A module for a library
    other than Burn has a ``skeleton``: Burn's classes with the same fields, to
    which the record ``skeleton_weights`` belongs.
    """

    text: str
    weights: list[tuple[str, Array]]
    class_name: str
    notes: tuple[str, ...] = ()
    skeleton: str = ""
    skeleton_weights: Sequence[tuple[str, Array]] = ()


@dataclass(frozen=True)
class Assembly:
    """The classes of a module and its stored arrays, before emission.

    ``entries`` has the owner of each array of ``weights``, in the same order; its
    keys begin with ``inside`` where those of ``weights`` do not.
    """

    tree: Tree
    nouns: Nouns
    texts: list[ClassText]
    weights: list[tuple[str, Array]]
    entries: list[Entry]


def emit(
    tree: Tree, graph: Graph, record: str, notes: Sequence[str] = (), inside: str = ""
) -> Source:
    """Return the source of ``tree``; ``record`` is the file name of the weights.

    It is "" if the weights stand in the module. ``notes`` are sentences that stand in
    the docstring of the module. ``inside`` is the attribute of a list that becomes the
    model itself, so that keys begin with numbers.
    """
    parts = assemble(tree, graph, inside)
    text = module_text(parts, record, notes)
    return Source(
        format_emitted(text), parts.weights, tree.root.class_name, tuple(notes)
    )


def assemble(
    tree: Tree, graph: Graph, inside: str = "", target: Target = BURN
) -> Assembly:
    """Return the classes of ``tree`` for ``target``; the fields are those of Burn."""
    drop_unread_results(tree)
    drop_unread_inputs(tree)
    nouns = Nouns(tree)
    order_boundaries(tree, nouns)
    texts = class_texts(tree, nouns, target)
    inputs = parameter_names(tree.root, nouns.values)
    texts[0].checks = input_checks(tree.root.graph, inputs)
    entries = without_repetitions(tree.entries(), graph)
    arrays = [(entry, graph.constants[entry.constant]) for entry in entries]
    _check_sizes([(".".join(entry.key), array) for entry, array in arrays])
    ties = find_ties(entries, graph)
    texts = with_ties(texts, tree, entries, ties)
    names = find_record_names(texts, entries, tree)
    texts = with_record_names(texts, names)
    texts = with_root_parameters(with_sequence_classes(texts), tree)
    owned = unique_entries(entries, ties)
    weights = [(names.key_of(e), graph.constants[e.constant]) for e in owned]
    if inside:  # before a list with one member is named after that member
        texts, weights = promote_list(texts, weights, inside)
    if target.has_record_names:
        texts = with_open_sizes(without_single_members(texts))
    texts = with_default_arguments(with_result_classes(texts))
    return Assembly(tree, nouns, texts, weights, owned)


def _check_sizes(weights: list[tuple[str, Array]]) -> None:
    """Check that no stored array is a huge broadcast of one element.

    Raises:
        UnsupportedModel: one is: a file of a few bytes would fill the disk.
    """
    for key, array in weights:
        if array.nbytes > REPEATED_BYTES and 0 in array.strides:
            raise UnsupportedModel(
                f"constant {key!r}: expected at most {REPEATED_BYTES} bytes of "
                f"repeated elements, got {array.nbytes} for shape {list(array.shape)}"
            )


def module_text(
    parts: Assembly,
    record: str,
    notes: Sequence[str],
    template: str = "module.py.j2",
    **more: Any,
) -> str:
    """Return the text of a module; ``more`` are further template values."""
    tree, outputs = parts.tree, parts.nouns.outputs
    texts = with_tie_loops(parts.texts)
    graph = tree.root.graph
    inputs = parameter_names(tree.root, parts.nouns.values)
    arrays = [array for _, array in parts.weights]
    count = sum(int(np.prod(array.shape, dtype=np.int64)) for array in arrays)
    values = {
        "title": _title(tree.root.class_name, inputs, outputs),
        "outputs": describe(graph, outputs, graph.results),
        "notes": wrap_sentences(notes),
        "weights": count_text(count),
        "record": comment(record),
        "record_literal": literal(record),
        "imports": imports(texts, embeds=not record),
        "classes": texts,
    }
    return render(template, **values | more)


def count_text(count: int) -> str:
    """Return a count as text: ``12 345 numbers``."""
    return f"{count:,} number{'s' * (count != 1)}".replace(",", " ")


def wrap_sentences(notes: Sequence[str]) -> list[str]:
    """Return sentences as the lines of a paragraph."""
    text = " ".join(map(_shown_note, notes))
    return wrap(text, 84, break_long_words=False)  # do not break an escape sequence


def _shown_note(note: str) -> str:
    """Return a note, without the sentences that do not fit."""
    length, shown = 0, []
    for sentence in note.split(". "):
        length += len(comment(f"{sentence}. ", _NOTE)) + 1
        if length > _NOTE:
            break
        shown.append(sentence)
    text = ". ".join(shown) or note
    is_cut = text != note and not text.endswith(".")
    return comment(f"{text}." if is_cut else text, _NOTE)


def _title(class_name: str, inputs: list[str], outputs: list[str]) -> str:
    head = f"{', '.join(inputs)} -> " if inputs else ""
    for shown in (", ".join(outputs), f"{len(outputs)} outputs"):
        title = f"{class_name}: {head}{shown}."
        if len(title) <= 85:
            return title
    return f"{class_name}: {len(inputs)} inputs -> {len(outputs)} outputs."


def imports(texts: Sequence[ClassText], *, embeds: bool = False) -> list[str]:
    """Return the import statements, and the check of the runtime's version.

    ``embeds`` is true if the record stands in the module.
    """
    used = set().union(*(text.modules for text in texts)) | {"burn", "nn"}
    lines = ["import math"] if "math" in used else []
    lines += ["from base64 import b64decode" if embeds else "from pathlib import Path"]
    has_result_classes = any(text.result_class for text in texts)
    lines += ["from typing import NamedTuple", ""] if has_result_classes else [""]
    names = ["Tensor"] if any(text.body for text in texts) else []
    names += sorted(used & {"nn", "ops"})
    lines += ["import burn", f"from burn import {', '.join(names)}", ""]
    return [*lines, f'burn.require_version("{OLDEST_RUNTIME}")']
