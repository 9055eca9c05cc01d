"""Classes without computations that are members of a list, replaced by their arrays.

A layer of an ``nn.Sequential`` whose matrix an exporter multiplied with constants
leaves its bias: ``self.mlp[0].bias``. The class around the list has it as
``self.mlp_bias``, under the same key, and a list with one layer left is that layer.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.member_fields import Container
from burn_import.codegen.module.module_reads import Block, blocks, with_lines
from burn_import.tracing.unparse import unparse_expression

#: What a list has in the place of a function, or of nothing.
_PLACEHOLDER = "nn.Identity()"
_ARRAYS = frozenset({"nn.buffer", "nn.parameter"})


@dataclass(frozen=True)
class _List:
    """A list of a class, its items, and its item that constructs the container."""

    owner: ClassText
    attribute: str
    items: Sequence[ast.expr]
    index: int

    @property
    def record_name(self) -> str:
        """The name of the list in keys."""
        return self.owner.record_names.get(self.attribute, self.attribute)

    def only_layer(self) -> int | None:
        """Return the index of the only other item that is no placeholder."""
        others = [
            at
            for at, item in enumerate(self.items)
            if at != self.index and ast.unparse(item) != _PLACEHOLDER
        ]
        return others[0] if len(others) == 1 else None


def without_list_member(
    container: Container, texts: Sequence[ClassText]
) -> list[ClassText] | None:
    """Return ``texts`` with the fields of ``container`` in the class of its list.

    It is None unless the container, which computes nothing and has only arrays, is an
    item of one list whose items are read one by one.
    """
    where = _list_of(container.text.name, texts)
    if container.text.body or where is None or "{" in where.record_name:
        return None
    call = where.items[where.index]
    assert isinstance(call, ast.Call)
    values = container.constructed(call)
    if {syntax.called_name(one) for one in container.members.values()} - _ARRAYS:
        return None
    names = {member: f"{where.attribute}_{member}" for member in container.members}
    if values is None or not _names_in(where.owner).isdisjoint(names.values()):
        return None
    if any(where.attribute in _names_in(text) for text in texts if text != where.owner):
        return None
    edited = list(blocks(where.owner))
    layer = where.only_layer()
    if not all(_edit(block, where, names, layer) for block in edited):
        return None
    text = with_lines(where.owner, iter(edited))
    fields = [
        f"self.{names[member]} = {unparse_expression(value)}"
        for member, value in values.items()
    ]
    new = replace(
        text,
        fields=list(_with_list(text.fields, where, layer, fields)),
        record_names=_record_names(where, container, names, layer),
        modules=text.modules | container.text.modules,
    )
    return [new if one is where.owner else one for one in texts]


def _list_of(name: str, texts: Sequence[ClassText]) -> _List | None:
    """Return the list with the only instance of the class ``name``, if it has one."""
    if len(syntax.constructor_calls(texts, name)) != 1:
        return None
    for text in texts:
        for attribute, value in syntax.fields_of(text):
            if syntax.called_name(value) != "nn.ModuleTuple":
                continue
            assert isinstance(value, ast.Call)
            for index, item in enumerate(value.args):
                if syntax.called_name(item) == name:
                    return _List(text, attribute, value.args, index)
    return None


def _names_in(text: ClassText) -> set[str]:
    """Return the attributes that the source of a class mentions."""
    trees = (ast.walk(block.tree) for block in blocks(text))
    return {n.attr for nodes in trees for n in nodes if isinstance(n, ast.Attribute)}


def _edit(
    block: Block, where: _List, names: Mapping[str, str], layer: int | None
) -> bool:
    """Read the new fields in ``block``; return whether it reads items one by one."""
    nodes = list(ast.walk(block.tree))
    items = [n for n in nodes if isinstance(n, ast.Subscript) and _is(n.value, where)]
    members = {id(n.value): n for n in nodes if isinstance(n, ast.Attribute)}
    if len(items) != sum(_is(node, where) for node in nodes):
        return False
    for item in items:
        index, member = ast.unparse(item.slice), members.get(id(item))
        if index == str(where.index):
            if member is None or member.attr not in names:
                return False
            block.replace(member, f"self.{names[member.attr]}")
        elif index == str(layer):
            block.replace(item, f"self.{where.attribute}")
        elif not index.isdigit() or layer is not None:
            return False
    return True


def _is(node: ast.AST, where: _List) -> bool:
    """Return whether an expression reads the list."""
    is_read = isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    return is_read and ast.unparse(node) == f"self.{where.attribute}"


def _with_list(
    fields: Sequence[str], where: _List, layer: int | None, new: Sequence[str]
) -> Iterator[str]:
    """Yield the fields with the list without the container, or its only layer.

    The ``new`` ones follow. A list without modules is left out.
    """
    for line in fields:
        name, _ = syntax.assigned_field(syntax.statement_of(line))
        if name != where.attribute:
            yield line
            continue
        items = [unparse_expression(item) for item in where.items]
        items[where.index] = _PLACEHOLDER
        listed = f"nn.ModuleTuple({', '.join(items)})"
        if {*items} != {_PLACEHOLDER}:
            yield f"self.{name} = {listed if layer is None else items[layer]}"
        yield from new


def _record_names(
    where: _List, container: Container, names: Mapping[str, str], layer: int | None
) -> dict[str, str]:
    """Return the record names of the class of the list with the new fields."""
    start = where.record_name
    new = {
        names[member]: f"{start}.{where.index}.{inner}"
        for member, inner in container.record_names.items()
    }
    own = {} if layer is None else {where.attribute: f"{start}.{layer}"}
    return {**where.owner.record_names, **own, **new}
