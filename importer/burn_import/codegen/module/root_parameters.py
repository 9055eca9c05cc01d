"""Size parameters of the root class: ``Net(layers=4, classes=5)``.

A size becomes a parameter, with the file's size as default, if the model is valid for
other sizes: the number of blocks that map a type to itself, and the number of classes
of the last layer. Constructors pass the parameter from the root to the class that uses
it, which must be constructed in one place.
"""

import ast
from collections import Counter
from collections.abc import Iterator, Sequence

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.constructor_calls import ConstructorCalls, Slot
from burn_import.codegen.module.heads import Head, variable_heads
from burn_import.codegen.module.module_reads import code_blocks
from burn_import.codegen.module.repeated_layers import Repeated, repeated_layers
from burn_import.codegen.syntax import called_name
from burn_import.provenance.path_segments import Path
from burn_import.structure import Tree
from burn_import.tracing.identifiers import snake

#: Maximum number of lists in a model with a number of layers.
MOST_LISTS = 3


def with_root_parameters(texts: Sequence[ClassText], tree: Tree) -> list[ClassText]:
    """Return ``texts`` with the variable sizes as root parameters."""
    calls = ConstructorCalls(texts)
    if texts[0].body:  # without a program, dependencies are unknown
        lists = list(repeated_layers(calls, tree))
        sizes = [*_depths(lists, tree), *_classes(calls, tree)]
        for name, slots in sizes:
            calls.expose(name, slots)
    calls.name_arguments()
    return calls.written()


def _depths(lists: Sequence[Repeated], tree: Tree) -> Iterator[tuple[str, list[Slot]]]:
    """Yield the parameter name of each list's length, and its slots.

    A list is left out if others with its name have a fixed length, as in the stages
    of a convolutional network: then its length is not the number of layers.
    """
    free = {one.path for one in lists}
    fixed = {path[-1] for path in _list_paths(tree) - free}
    lists = [one for one in lists if one.path[-1] not in fixed]
    if len(lists) > MOST_LISTS:
        return
    words = [_qualified_word(one, lists) for one in lists]
    counts = Counter(words)
    for word, one in zip(words, lists, strict=True):
        if counts[word] == 1:
            yield word, [one.slot]


def _list_paths(tree: Tree) -> set[Path]:
    """Return the paths of all lists of modules."""
    return {
        path[:length]
        for path in (part.path for part in tree.parts)
        for length in range(1, len(path))
        if path[length].isdigit()
    }


def _qualified_word(one: Repeated, lists: Sequence[Repeated]) -> str:
    """Return ``encoder_layers`` for a list if another one has the same word."""
    homonyms = [other.path for other in lists if other.word == one.word]
    if len(homonyms) == 1:
        return one.word
    for number, segment in enumerate(one.path[:-1]):
        here = [path[number] for path in homonyms if number < len(path)]
        if len(set(here)) == len(homonyms) and not segment.isdigit():
            return f"{snake(segment)}_{one.word}"
    return one.word


def _classes(calls: ConstructorCalls, tree: Tree) -> Iterator[tuple[str, list[Slot]]]:
    """Yield the parameter for the number of classes and its slots, if unique."""
    candidates = [head for head in variable_heads(calls, tree) if head.has_classes]
    if len(candidates) == 1 and not _is_fixed(calls, candidates[0]):
        yield "classes", [candidates[0].slot]


def _is_number(node: ast.AST, number: int) -> bool:
    if not isinstance(node, ast.Constant):
        return False
    return type(node.value) is int and node.value == number  # True is 1


def _is_fixed(calls: ConstructorCalls, head: Head) -> bool:
    """Return whether something else may depend on the number of classes.

    Tied weights and embeddings with the same number of rows do: it is a vocabulary
    size.
    """
    number = ast.literal_eval(head.slot.value)
    for constructor in calls.constructors.values():
        text = constructor.text
        inside = text.name in head.owners and any(
            _is_number(node, number)
            for block in code_blocks(text)
            for node in ast.walk(block.tree)
        )
        nodes = (node for field in constructor.statements for node in ast.walk(field))
        if inside or any(_is_vocabulary(node, head.path[-1], number) for node in nodes):
            return True
    return False


def _is_vocabulary(node: ast.AST, layer: str, number: int) -> bool:
    """Return whether ``node`` is an embedding of ``number`` rows, or a tie.

    A tie assigns a tensor of the layer, or to it: ``self.head.weight = ...``.
    """
    if isinstance(node, ast.Assign):
        return any(_is_member(side, layer) for side in (*node.targets, node.value))
    if not isinstance(node, ast.Call) or len(node.args) + len(node.keywords) < 2:
        return False
    rows = node.args[0] if node.args else None
    is_number = isinstance(rows, ast.Constant) and rows.value == number
    return is_number and called_name(node) == "nn.Embedding"


def _is_member(node: ast.expr, layer: str) -> bool:
    """Return whether ``node`` reads an attribute of the member called ``layer``."""
    owner = node.value if isinstance(node, ast.Attribute) else None
    if isinstance(owner, ast.Subscript):
        return ast.unparse(owner.slice) == layer
    return isinstance(owner, ast.Attribute) and owner.attr == layer
