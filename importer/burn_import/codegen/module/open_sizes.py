"""Reshapes to several numbers, of which the tensor determines one.

``x.reshape(batch, 512, 256)`` fits one length only. Classes that are merged have their
different numbers as fields; what is left then are numbers that all instances share.
"""

import ast
from collections.abc import Iterator, Sequence

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.module_reads import blocks, with_lines

#: Fixed extents that may be left beside names, by the number of names: features; with
#: two names, heads and features.
_FEATURES, _HEADS = 1, 2


def with_open_sizes(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return ``texts`` with -1 for the first of several numbers of a reshape."""
    return [_with_open_sizes(text) for text in texts]


def _with_open_sizes(text: ClassText) -> ClassText:
    own = list(blocks(text))
    for block in own:
        for shape in _reshapes(block.tree):
            extent = _open_extent(shape)
            if extent is not None:
                block.replace(extent, "-1")
    return with_lines(text, iter(own))


def _reshapes(tree: ast.AST) -> Iterator[Sequence[ast.expr]]:
    """Yield the shapes of the reshapes in ``tree``."""
    for node in ast.walk(tree):
        function = node.func if isinstance(node, ast.Call) else None
        if isinstance(function, ast.Attribute) and function.attr == "reshape":
            assert isinstance(node, ast.Call)
            yield node.args


def _open_extent(extents: Sequence[ast.expr]) -> ast.Constant | None:
    """Return the first number above 1 of several in a shape, else None."""
    numbers = [extent for extent in extents if isinstance(extent, ast.Constant)]
    has_names = len(extents) - len(numbers) > 1
    sizes = [one for one in numbers if type(one.value) is int and one.value > 1]
    is_determined = all(
        isinstance(e, ast.Constant | ast.Name | ast.Attribute | ast.BinOp)
        for e in extents
    )
    is_fixed = len(sizes) > (_HEADS if has_names else _FEATURES)
    has_zero = any(one.value == 0 for one in numbers)
    return sizes[0] if is_determined and is_fixed and not has_zero else None
