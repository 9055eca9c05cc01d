"""Classes with a single member that do nothing else, replaced by the member.

If an author's ``Encoder`` returns ``self.stages(x)``, or only owns a weight that an
enclosing module reads, the enclosing class has the member itself as a field, with the
same keys: ``record_names = {"encoder": "encoder.stages"}``.

A class stays if it is an element of a list, whose members have numbers for names, or if
several fields would repeat a member that is more than one layer.
"""

from __future__ import annotations

import ast
import copy
import operator
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from burn_import.codegen.class_text import ClassText
from burn_import.codegen.module.constructor_calls import Constructor
from burn_import.tracing.unparse import unparse_expression

_OMITTED = "nn.Identity()"
#: Attributes of wrappers that say less than the names of their members.
_GENERIC = frozenset({"model", "module"})
_COMPUTE: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.FloorDiv: operator.floordiv,
}


@dataclass(frozen=True)
class _Wrapper:
    """A class with the single member ``value``.

    ``path`` follows an instance in expressions that read the member: ``.layers[0]``.
    ``record_name`` is the name of the member in keys: ``layers.0``.
    """

    text: ClassText
    parameters: Sequence[str]
    value: ast.Call
    path: str
    record_name: str


@dataclass(frozen=True)
class _Field:
    """A field of class ``owner`` that is an instance of a wrapper."""

    owner: str
    line: str
    attribute: str
    call: ast.Call
    #: The attribute that the member gets.
    name: str = ""


def without_single_members(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return ``texts`` without the classes that only hold one member.

    The first is the root, which stays. Without a program, all classes stay.
    """
    kept = list(texts)
    if not texts[0].body:
        return kept
    for name in [text.name for text in reversed(texts[1:])]:
        text = next(text for text in kept if text.name == name)
        wrapper = _wrapper(text)
        others = [one for one in kept if one is not text]
        fields = None if wrapper is None else _replaced_fields(wrapper, others)
        if wrapper is not None and fields:
            fields = [replace(f, name=_name(f, wrapper, others)) for f in fields]
            kept = [_rewritten(one, wrapper, fields) for one in others]
    return kept


def _wrapper(text: ClassText) -> _Wrapper | None:
    """Return what ``text`` wraps; None if it does more than that."""
    is_module = text.base == "nn.Module" and not text.function and not text.methods
    if not is_module or len(text.fields) != 1:
        return None
    constructor = Constructor.of(text)
    statement = constructor.statements[0]
    value = statement.value if isinstance(statement, ast.Assign) else None
    if not isinstance(value, ast.Call):
        return None
    member = text.fields[0].partition(" = ")[0].removeprefix("self.")
    path, record_name = f".{member}", text.record_names.get(member, member)
    called = _called(text)
    element = _only_element(value)
    if element is not None and called in (None, f"{path}[0]"):
        value, path, record_name = element, f"{path}[0]", f"{record_name}.0"
    if called not in (None, path):
        return None
    parameters = [parameter.name for parameter in constructor.parameters]
    return _Wrapper(text, parameters, value, path, record_name)


def _called(text: ClassText) -> str | None:
    """Return what a body calls with its own parameters: ``.layers[0]``.

    It is None without a body, and "" if the body does anything else.
    """
    if not text.body:
        return None
    parameters = re.findall(r", (\w+):", text.signature)
    pattern = rf"\s*return self([.\w\[\]]+)\({', '.join(parameters)}\)"
    match = re.fullmatch(pattern, text.body[0]) if len(text.body) == 1 else None
    return match[1] if match is not None else ""


def _only_element(value: ast.Call) -> ast.Call | None:
    """Return the only element of an ``nn.ModuleList``, else None."""
    if ast.unparse(value.func) != "nn.ModuleList" or len(value.args) != 1:
        return None
    elements = value.args[0].elts if isinstance(value.args[0], ast.List) else []
    if len(elements) != 1 or not isinstance(elements[0], ast.Call):
        return None
    return elements[0]


def _replaced_fields(
    wrapper: _Wrapper, texts: Sequence[ClassText]
) -> list[_Field] | None:
    """Return the fields that are instances of ``wrapper``; None if it has to stay."""
    fields = [field for text in texts for field in _fields(wrapper.text.name, text)]
    constructed = re.compile(rf"\b{wrapper.text.name}\(")
    sources = [source for text in texts for source in (*text.fields, text.steps)]
    if len(fields) != sum(len(constructed.findall(source)) for source in sources):
        return None
    is_layer = not any(isinstance(n, ast.Call) for n in _arguments(wrapper.value))
    if len(fields) > 1 and not is_layer:
        return None
    if any(_member(wrapper, field.call) is None for field in fields):
        return None
    return fields if _are_reads_known(wrapper, fields, texts) else None


def _fields(name: str, text: ClassText) -> Iterator[_Field]:
    """Yield the fields of ``text`` that are instances of the class ``name``."""
    for line in text.fields:
        statement = ast.parse(line).body[0]
        if not isinstance(statement, ast.Assign | ast.AnnAssign):
            continue
        value = statement.value
        if isinstance(value, ast.IfExp) and ast.unparse(value.orelse) == _OMITTED:
            value = value.body
        if isinstance(value, ast.Call) and ast.unparse(value.func) == name:
            attribute = re.split(r"[:\s]", line.removeprefix("self."), maxsplit=1)[0]
            yield _Field(text.name, line, attribute, value)


def _arguments(call: ast.Call) -> Iterator[ast.AST]:
    """Yield the nodes of the arguments of ``call``."""
    for argument in (*call.args, *(keyword.value for keyword in call.keywords)):
        yield from ast.walk(argument)


def _member(wrapper: _Wrapper, call: ast.Call) -> ast.Call | None:
    """Return the member of the instance that ``call`` constructs.

    It is None if an argument that is computed would be part of another computation.
    """
    values: dict[str, ast.expr] = {
        **dict(zip(wrapper.parameters, call.args, strict=False)),
        **{keyword.arg: keyword.value for keyword in call.keywords if keyword.arg},
    }
    if set(values) != set(wrapper.parameters):
        return None
    computed = {name for name, value in values.items() if isinstance(value, ast.BinOp)}
    for node in _arguments(wrapper.value):
        if isinstance(node, ast.BinOp):
            names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
            if computed & names:
                return None
    member = _Substitution(values).visit(copy.deepcopy(wrapper.value))
    assert isinstance(member, ast.Call)
    return member


class _Substitution(ast.NodeTransformer):
    """Replaces the parameters of a constructor by the arguments of a call."""

    def __init__(self, values: Mapping[str, ast.expr]) -> None:
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.AST:  # noqa: N802
        return self.values.get(node.id, node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:  # noqa: N802
        self.generic_visit(node)
        compute = _COMPUTE.get(type(node.op))
        left, right = _number(node.left), _number(node.right)
        if compute is None or left is None or right is None:
            return node
        return ast.Constant(compute(left, right))


def _number(node: ast.expr) -> int | None:
    value = node.value if isinstance(node, ast.Constant) else None
    return value if isinstance(value, int) else None


def _are_reads_known(
    wrapper: _Wrapper, fields: Sequence[_Field], texts: Sequence[ClassText]
) -> bool:
    """Return whether every read of the member through a field can be rewritten.

    Of two fields with one name, only one of which is an instance, none can be told.
    """
    lines = [line for text in texts for line in _lines(text)]
    own = {(field.owner, field.attribute) for field in fields}
    for attribute in {field.attribute for field in fields}:
        outer = re.escape(f".{attribute}{wrapper.path.removesuffix('[0]')}")
        inner = re.escape(f".{attribute}{wrapper.path}")
        reads = sum(len(re.findall(rf"{outer}(?!\w)", line)) for line in lines)
        if reads != sum(len(re.findall(rf"{inner}(?!\w)", line)) for line in lines):
            return False
        named = re.compile(rf"self\.{attribute}(: .*)? = ")
        owners = {t.name for t in texts if any(map(named.match, t.fields))}
        if reads and any((owner, attribute) not in own for owner in owners):
            return False
    return True


def _name(field: _Field, wrapper: _Wrapper, texts: Sequence[ClassText]) -> str:
    """Return the attribute of a member: that of the field, unless it says nothing."""
    name, word = field.attribute, wrapper.path.removeprefix(".")
    if (len(name) > 1 and name not in _GENERIC) or not word.isidentifier():
        return name
    is_free = not any(
        re.search(rf"\.{word}\b" if t.name == field.owner else rf"\.{name}\b", line)
        for t in texts
        for line in _lines(t)
    )
    return word if is_free else name


def _lines(text: ClassText) -> Iterator[str]:
    """Yield the lines of code of a class."""
    yield from text.fields
    yield from text.body
    for method in text.methods:
        yield from method.body


def _rewritten(
    text: ClassText, wrapper: _Wrapper, fields: Sequence[_Field]
) -> ClassText:
    """Return ``text`` with the member in place of instances of ``wrapper``."""
    attributes = "|".join(sorted({field.attribute for field in fields}))
    read = re.compile(rf"(\.(?:{attributes})){re.escape(wrapper.path)}(?!\w)")
    own = {field.line: field for field in fields if field.owner == text.name}
    record_names = dict(text.record_names)
    for field in own.values():
        outer = record_names.pop(field.attribute, field.attribute)
        record_names[field.name] = f"{outer}.{wrapper.record_name}"

    def code(line: str) -> str:
        line = read.sub(r"\1", line)
        for field in own.values():
            line = re.sub(rf"\bself\.{field.attribute}\b", f"self.{field.name}", line)
        return line

    return replace(
        text,
        fields=[
            code(_field_line(line, own[line], wrapper) if line in own else line)
            for line in text.fields
        ],
        body=[code(line) for line in text.body],
        methods=[
            replace(m, body=[code(line) for line in m.body]) for m in text.methods
        ],
        modules=text.modules | (wrapper.text.modules if own else set()),
        record_names=record_names,
    )


def _field_line(line: str, field: _Field, wrapper: _Wrapper) -> str:
    """Return the assignment of the member to ``field``."""
    member = _member(wrapper, field.call)
    assert member is not None
    statement = ast.parse(line).body[0]
    assert isinstance(statement, ast.Assign | ast.AnnAssign)
    if isinstance(statement.value, ast.IfExp):
        statement.value.body = member
    else:
        statement.value = member
    text = unparse_expression(statement)
    kind = ast.unparse(member.func)
    return text.replace(f": {wrapper.text.name} | ", f": {kind} | ", 1)
