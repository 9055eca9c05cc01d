"""Loop variables in generated source that are bound to list members."""

import ast
from collections import Counter
from collections.abc import Iterable, Iterator


def member_attributes(functions: Iterable[list[ast.AST]]) -> set[int]:
    """Return the identities of attributes that are read of list members.

    Each function is a list of all its nodes. An example is ``block.conv`` if
    ``block`` is only bound by ``for`` loops over ``self.blocks``, or over a list in
    such a member.
    """
    attributes: set[int] = set()
    for nodes in functions:
        attributes.update(_in_function(nodes))
    return attributes


def _in_function(nodes: list[ast.AST]) -> Iterator[int]:
    variables: Counter[str] = Counter()
    for node in nodes:
        if isinstance(node, ast.For):
            variables.update(_member_variables(node, variables))
    if not variables:
        return
    bound = Counter(filter(None, map(_bound_name, nodes)))
    members = {name for name, count in variables.items() if bound[name] == count}
    for node in nodes:
        if isinstance(node, ast.Attribute) and root(node) in members:
            yield id(node)


def _member_variables(loop: ast.For, members: Counter[str]) -> Iterator[str]:
    """Yield the names of loop variables that are members of module lists."""
    targets, sources = [loop.target], [loop.iter]
    call = loop.iter
    if isinstance(call, ast.Call) and root(call.func) == "zip":
        targets = loop.target.elts if isinstance(loop.target, ast.Tuple) else []
        sources = call.args
    for target, source in zip(targets, sources, strict=False):
        own = root(source) == "self" and not isinstance(source, ast.Name)
        if isinstance(target, ast.Name) and (own or root(source) in members):
            yield target.id


def _bound_name(node: ast.AST) -> str:
    """Return the name that ``node`` binds in its function, else ""."""
    if isinstance(node, ast.arg):
        return node.arg
    stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    return node.id if stored and isinstance(node, ast.Name) else ""


def root(node: ast.expr) -> str:
    """Return the first name in a chain of attributes and indices, else ""."""
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
