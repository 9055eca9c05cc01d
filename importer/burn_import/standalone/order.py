"""The order of definitions in a standalone module."""

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from burn_import.standalone.dependencies import Dependencies
from burn_import.standalone.library import Definition
from burn_import.standalone.pieces import Piece

T = TypeVar("T")


def in_order(deps: Dependencies) -> list[Definition]:
    """Return definitions by module, each after those its execution needs.

    Function bodies do not count, since they run later.
    """
    needed = {d: list(_needed_definitions(deps, d)) for d in deps.on_tensors}
    modules: dict[str, list[Definition]] = {}
    for definition in sorted(needed, key=_position):
        modules.setdefault(definition.module, []).append(definition)

    def before(module: str) -> Iterator[str]:
        for definition in modules[module]:
            yield from (other.module for other in needed[definition])

    result: list[Definition] = []
    for module in _sort_topologically(modules, before):
        result += [
            d
            for d in _sort_topologically(modules[module], lambda d: needed[d])
            if d.module == module
        ]
    return result


def _position(definition: Definition) -> tuple[str, bool, int]:
    """Return a sort key that puts replacements after their module's remainder."""
    own = definition.file.module == definition.module
    return definition.module, not own, definition.node.lineno


def _sort_topologically(
    items: Iterable[T], before: Callable[[T], Iterable[T]]
) -> list[T]:
    """Return ``items`` in topological order, otherwise in the given order."""
    result: dict[T, None] = {}
    entered: set[T] = set()

    def place(item: T) -> None:
        if item in entered:
            return
        entered.add(item)
        for other in before(item):
            place(other)
        result[item] = None

    for item in items:
        place(item)
    return list(result)


def _needed_definitions(
    deps: Dependencies, definition: Definition
) -> Iterator[Definition]:
    """Yield the definitions that must exist when a definition is executed."""
    if not definition.is_type:
        for piece in deps.pieces(definition):
            yield from _definitions_read(piece, definition)


def _definitions_read(piece: Piece, owner: Definition) -> Iterator[Definition]:
    """Yield the definitions that a statement reads on execution."""
    executed = {id(n) for node in piece.nodes for n in _executed_nodes(node)}
    for reference in piece.names.references:
        meaning = reference.meaning
        is_other = isinstance(meaning, Definition) and meaning is not owner
        if is_other and id(reference.node) in executed:
            assert isinstance(meaning, Definition)
            yield meaning


def _executed_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes that a statement executes, without types and bodies."""
    yield node
    inner: Iterable[ast.AST | None] = ast.iter_child_nodes(node)
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        inner = [*node.args.defaults, *node.args.kw_defaults]
        inner += getattr(node, "decorator_list", [])
    elif isinstance(node, ast.AnnAssign):
        inner = [node.target, node.value]
    for child in inner:
        if child is not None:
            yield from _executed_nodes(child)
