"""Classes for sequences of layers that differ only in numbers.

An author writes ``conv_dw(32, 64, 2)``, a function that returns an ``nn.Sequential``;
an exporter leaves only the layers. The class derives from ``nn.Sequential``, so that
keys stay the same.
"""

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from burn_import.codegen import syntax
from burn_import.codegen.class_text import ClassText
from burn_import.codegen.merge.constructor_parameters import constructor
from burn_import.codegen.merge.constructors import Constructor
from burn_import.codegen.merge.expression_slots import DifferError
from burn_import.codegen.merge.init_fields import Column, slot, unite_fields
from burn_import.tracing.identifiers import Namespace, camel
from burn_import.tracing.unparse import unparse_expression

#: Minimum number and length of sequences that get a class.
FEWEST, SHORTEST = 3, 3
SEQUENTIAL = "nn.Sequential"


@dataclass(frozen=True)
class _Use:
    """A call that constructs a sequence, in the constructor of a class.

    ``attribute`` is the target of the assignment, "" inside of another list, and
    ``parameters`` are those of the constructor with their types.
    """

    call: ast.Call
    attribute: str
    parameters: dict[str, str]


def with_sequence_classes(texts: Sequence[ClassText]) -> list[ClassText]:
    """Return ``texts`` and a class for each frequent kind of sequence."""
    names = Namespace(text.name for text in texts)
    statements = [list(map(syntax.statement_of, text.fields)) for text in texts]
    kinds: dict[tuple[str, ...], list[_Use]] = {}
    for text, own in zip(texts, statements, strict=True):
        parameters = syntax.parameters_of(text.constructor)
        for statement in own:
            for node in ast.walk(statement):
                if isinstance(node, ast.Call) and _is_sequence(node):
                    outline = tuple(map(_outline, node.args))
                    name, value = syntax.assigned_field(statement)
                    use = _Use(node, name if value is node else "", parameters)
                    kinds.setdefault(outline, []).append(use)
    classes = []
    for uses in kinds.values():
        if len(uses) >= FEWEST:
            classes += _merged_class(uses, names)
    if not classes:
        return list(texts)
    rewritten = [
        replace(text, fields=[unparse_expression(statement) for statement in own])
        for text, own in zip(texts, statements, strict=True)
    ]
    return [*rewritten, *classes]


def _is_sequence(call: ast.Call) -> bool:
    """Return whether a call constructs a sequence of layers and functions."""
    return (
        syntax.called_name(call) == SEQUENTIAL
        and len(call.args) >= SHORTEST
        and all(
            isinstance(step, ast.Attribute)
            or syntax.called_name(step).startswith("nn.")
            for step in call.args
        )
    )


def _outline(step: ast.expr) -> str:
    """Return the layer or function of a step, without its numbers."""
    return syntax.called_name(step) or ast.unparse(step)


def _merged_class(uses: list[_Use], names: Namespace) -> list[ClassText]:
    """Return a common class of all calls, and replace them by calls of it.

    Parameters of the classes around them that all calls read become parameters of the
    class. Empty if the calls differ in more than numbers.
    """
    lines = [[f"self.steps = {ast.unparse(use.call)}"] for use in uses]
    columns: list[Column] = []
    try:
        (steps,) = unite_fields(lines, {}, columns)
        read = _parameters_read(steps.text, uses)
        init = constructor(columns, [], read)
    except DifferError:
        return []
    name = names.unique(_name(steps.text, {use.attribute for use in uses}))
    for number, use in enumerate(uses):
        call = syntax.expression_of(init.call(name, number))
        assert isinstance(call, ast.Call)
        parameters: list[ast.expr] = [
            ast.Name(parameter, ast.Load()) for parameter in read
        ]
        use.call.func, use.call.keywords = call.func, call.keywords
        use.call.args = [*parameters, *call.args]
    return [_class(name, steps.text, init, read)]


def _parameters_read(steps: str, uses: list[_Use]) -> dict[str, str]:
    """Return the parameters of enclosing classes that ``steps`` reads, with types.

    Raises:
        DifferError: a parameter has several types.
    """
    read: dict[str, str] = {}
    for node in ast.walk(ast.parse(steps, mode="eval")):
        name = node.id if isinstance(node, ast.Name) else ""
        kinds = {use.parameters.get(name, "") for use in uses} - {""}
        if len(kinds) > 1:
            raise DifferError
        if kinds:
            read[name] = kinds.pop()
    return read


def _name(steps: str, attributes: set[str]) -> str:
    """Return a class name for a sequence: that of its attribute, else of its layers."""
    attribute, *others = sorted(attributes)
    if not others and attribute.isalpha():
        return camel(attribute)
    word = "Linear" if steps.startswith(f"{SEQUENTIAL}(nn.Linear") else "Conv"
    word = "Separable" if "groups=" in steps.partition(")")[0] else word
    has_norm = re.search(r"nn\.\w*Norm", steps) is not None
    return f"{word}Block" if has_norm else f"{word}Layers"


def _class(name: str, text: str, init: Constructor, read: dict[str, str]) -> ClassText:
    """Return the class whose constructor creates the steps in ``text``.

    ``read`` are its first parameters with their types.
    """
    for number in reversed(range(len(init.texts))):
        text = text.replace(slot(number), init.texts[number])
    steps = text.removeprefix(f"{SEQUENTIAL}(").removesuffix(")")
    signature = "".join(f", {name}: {kind}" for name, kind in read.items())
    signature += init.signature
    return ClassText(
        name,
        "",
        [],
        base=SEQUENTIAL,
        steps=steps,
        constructor=signature,
        modules={"ops"} if "ops." in steps else set(),
    )
