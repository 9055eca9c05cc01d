"""Classes that compute nothing themselves, replaced by their members.

If an author's ``Encoder`` returns ``self.stages(x)``, or only owns what an enclosing
module reads, the enclosing class has the members themselves as fields, with the same
keys: ``record_names = {"encoder": "encoder.stages"}``. The elements of a list have a
number in keys: ``{"stages": "stages.{0}.layers"}``.

A class stays if several fields would repeat a member that is more than one layer.
"""

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.list_members import without_list_member
from burn_import.codegen.module.member_fields import (
    ConstructedField,
    Container,
    NewNames,
    constructed_fields,
    with_members,
)
from burn_import.codegen.module.module_reads import ModuleReads, blocks

#: Attributes of containers that say less than the names of their members.
_GENERIC = frozenset({"model", "module"})
#: Attributes of arrays, which say less than the names of their containers.
_ARRAYS = frozenset({"bias", "scale", "weight", "zero_point"})
#: Lines of a class besides its fields.
_CLASS_LINES = 4


def without_single_members(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return ``texts`` without the classes that only hold members.

    The first is the root, which stays. Without a program, all classes stay.
    """
    kept = list(texts)
    if not texts[0].body:
        return kept
    for name in [text.name for text in reversed(texts[1:])]:
        text = next(text for text in kept if text.name == name)
        container = _container(text)
        if container is not None:
            others = [one for one in kept if one is not text]
            new = without_list_member(container, others)
            kept = new or _without(container, others) or kept
    return kept


def _container(text: ClassText) -> Container | None:
    """Return what ``text`` contains; None if it does more than that."""
    is_module = text.base == "nn.Module" and not text.function and not text.methods
    if not is_module or not text.fields:
        return None
    members = dict(syntax.fields_of(text))
    if len(members) != len(text.fields):
        return None
    parameters = list(syntax.parameters_of(text.constructor))
    names = {name: text.record_names.get(name, name) for name in members}
    container = Container(text, parameters, members, names)
    return _with_path(container) if len(members) == 1 or text.body else container


def _with_path(container: Container) -> Container | None:
    """Return a container with a single member, and the path to it."""
    text = container.text
    if len(container.members) != 1:
        return None
    ((name, value),) = container.members.items()
    called, record_name = _called(text), container.record_names[name]
    element = _only_element(value)
    if element is not None and called in (None, f".{name}[0]"):
        first = record_name.replace("{", "").replace("}", "")
        is_numbered = first != record_name
        names = {name: first if is_numbered else f"{record_name}.0"}
        return replace(
            container, members={name: element}, record_names=names, path=f".{name}[0]"
        )
    is_passed_on = called in (None, f".{name}") and isinstance(value, ast.Call)
    return replace(container, path=f".{name}") if is_passed_on else None


def _called(text: ClassText) -> str | None:
    """Return what a body calls with its own parameters: ``.layers[0]``.

    It is None without a body, and "" if the body does anything else.
    """
    if not text.body:
        return None
    match syntax.statement_of(text.body[0].strip()) if len(text.body) == 1 else None:
        case ast.Return(value=ast.Call(func=called, args=args, keywords=[])):
            is_passed_on = [*map(ast.unparse, args)] == [
                *syntax.parameters_of(text.signature)
            ]
            return ast.unparse(called).removeprefix("self") if is_passed_on else ""
    return ""


def _only_element(value: ast.expr) -> ast.Call | None:
    """Return the only element of an ``nn.ModuleList``, else None."""
    if not isinstance(value, ast.Call) or syntax.called_name(value) != "nn.ModuleList":
        return None
    items = syntax.list_items(value)
    element = items[0] if len(items) == 1 and items is not value.args else None
    return element if isinstance(element, ast.Call) else None


def _without(
    container: Container, texts: Sequence[ClassText]
) -> list[ClassText] | None:
    """Return the other classes with the members of ``container`` in its place.

    It is None if the class has to stay.
    """
    names: NewNames | None
    fields = constructed_fields(container, texts)
    if not fields:
        return None
    reads = ModuleReads(container.text.name, texts, container.text)
    if not reads.is_complete:
        return None
    linear = None if reads.reads or reads.calls else _unread_linear(container)
    if linear is not None:
        container = linear
        names = {(f.owner, f.attribute): {"": f.attribute} for f in fields}
    elif container.path:
        names = _names_of_member(container, fields, reads)
    else:
        names = _names_of_members(container, fields, reads)
    if names is None:
        return None
    return [with_members(text, container, fields, names) for text in reads.edited()]


def _unread_linear(container: Container) -> Container | None:
    """Return ``nn.Linear`` for a matrix and a bias that nothing reads, else None."""
    sizes = {name: _sizes(value) for name, value in container.members.items()}
    weight, bias = sizes.get("weight"), sizes.get("bias")
    if len(sizes) != 2 or not weight or not bias or len(weight) != 2:
        return None
    if list(map(ast.dump, bias)) != list(map(ast.dump, weight[:1])):
        return None
    linear = ast.Call(syntax.expression_of("nn.Linear"), weight[::-1], [])
    return replace(container, members={"": linear}, record_names={"": ""})


def _sizes(value: ast.expr) -> list[ast.expr]:
    """Return the sizes of a parameter of the default dtype, else []."""
    if not isinstance(value, ast.Call) or value.keywords:
        return []
    return value.args if syntax.called_name(value) == "nn.parameter" else []


def _names_of_member(
    container: Container, fields: Sequence[ConstructedField], reads: ModuleReads
) -> NewNames | None:
    """Edit the reads of the only member; return the attributes that it gets."""
    if sum(field.count for field in fields) > 1 and not container.has_one_layer:
        return None
    member, _, index = container.path.removeprefix(".").partition("[")
    for read in reads.reads:
        if read.attribute.attr != member or (index and not _is_first(read.element)):
            return None
        outer = read.element if index and read.element is not None else read.attribute
        read.block.replace_between(read.module, outer, "")
    names: dict[tuple[str, str], dict[str, str]] = {}
    for name in dict.fromkeys(field.attribute for field in fields):
        own = [field for field in fields if field.attribute == name]
        owners = {field.owner for field in own}
        new = name
        if not index and not any(field.is_list for field in own):
            new = _clearer(name, member)
            others = {one for key in owners for one in _names_in_use(key, reads.texts)}
            others |= {one for known in names.values() for one in known.values()}
            if new in others or not reads.rename(owners, name, new):
                new = name
        names |= {(owner, name): {member: new} for owner in owners}
    return names


def _clearer(name: str, member: str) -> str:
    """Return the attribute for the only member of the module at ``name``."""
    is_vague = len(name) == 1 or name in _GENERIC
    return member if is_vague else f"{name}_{member}" if member == "bias" else name


def _is_first(element: ast.Subscript | None) -> bool:
    """Return whether an index is 0."""
    return element is not None and ast.unparse(element.slice) == "0"


def _names_of_members(
    container: Container, fields: Sequence[ConstructedField], reads: ModuleReads
) -> NewNames | None:
    """Edit the reads of several members; return the attributes that they get."""
    lines, times = len(container.members), len(fields)
    is_longer = lines * times > lines + times + _CLASS_LINES
    if reads.calls or is_longer or not all(field.is_plain for field in fields):
        return None
    names: dict[str, dict[str, str]] = {}
    owners = Counter(field.owner for field in fields)
    used = {owner: _names_in_use(owner, reads.texts) for owner in owners}
    for field in fields:
        in_use = used[field.owner]
        is_only = owners[field.owner] == 1
        is_clear = is_only and not container.members.keys() & (in_use | _ARRAYS)
        for member in container.members:
            new = member if is_clear else f"{field.attribute}_{member}"
            known = names.setdefault(field.attribute, {}).setdefault(member, new)
            if known != new or new in in_use:
                return None
            in_use.add(new)
    for read in reads.reads:
        module, member = read.module, read.attribute.attr
        if not isinstance(module, ast.Attribute) or module.attr not in names:
            return None
        new = names[module.attr][member]
        read.block.replace_between(module.value, read.attribute, f".{new}")
    return {(field.owner, field.attribute): names[field.attribute] for field in fields}


def _names_in_use(owner: str, texts: Sequence[ClassText]) -> set[str]:
    """Return the names of attributes that a class has or reads of itself."""
    text = next(text for text in texts if text.name == owner)
    nodes = (node for block in blocks(text) for node in ast.walk(block.tree))
    read = {
        node.attr
        for node in nodes
        if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "self"
    }
    return read | {method.name for method in text.methods}
