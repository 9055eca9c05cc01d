"""The classes and functions in the code of an archive, parsed on demand.

``__torch__.torch.nn.modules.linear.Linear`` is in ``__torch__/torch/nn/modules/
linear.py``; classes of equal names have ``___torch_mangle_7`` before the last segment.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from keyword import iskeyword
from typing import Any

from burn.record.errors import shown
from burn_ir import InvalidModel, UnreadableFile


@dataclass(frozen=True)
class Rest:
    """The continuation of a block: its statements from an index on, and outer ones."""

    body: Sequence[ast.stmt] = ()
    start: int = 0
    outer: Rest | None = None

    def statements(self) -> list[ast.stmt]:
        """Return all statements to the end of the function."""
        body, rest = [*self.body[self.start :]], self.outer
        while rest is not None:
            body += rest.body[rest.start :]
            rest = rest.outer
        return body


@dataclass(frozen=True, eq=False)
class Function:
    """A function or method, and its file."""

    node: ast.FunctionDef
    file: str


@dataclass(frozen=True, eq=False)
class Class:
    """A class: its methods, and the constants in its body."""

    name: str
    bases: tuple[str, ...]
    methods: dict[str, Function] = field(default_factory=dict)
    finals: dict[str, ast.expr] = field(default_factory=dict)
    fields: tuple[str, ...] = ()
    #: The names of the fields that are parameters, and of those that are buffers.
    parameters: tuple[str, ...] = ()
    buffers: tuple[str, ...] = ()
    #: The values of an enumeration, by the names of its members.
    members: dict[str, Any] = field(default_factory=dict)


class Code:
    """Definitions of an archive; ``texts`` are its files by name."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts = texts
        self.files: dict[str, dict[str, Function | Class]] = {}

    def find(self, path: str) -> Function | Class | None:
        """Return the definition of a name as ``__torch__.torch.nn.functional.relu``."""
        module, _, name = path.rpartition(".")
        if not module or "/" in path:
            return None
        file = f"{module.replace('.', '/')}.py"
        if file not in self.files:
            self.files[file] = dict(_defined(file, self.texts.get(file, "")))
        return self.files[file].get(name)

    def method(self, kind: str, name: str) -> Function:
        """Return the method ``name`` of the class ``kind``.

        Raises:
            InvalidModel: there is none.
        """
        cls = self.find(kind)
        if not isinstance(cls, Class):
            raise InvalidModel(f"the archive has no class {shown(kind)}")
        if name not in cls.methods:
            raise InvalidModel(f"class {shown(kind)} has no method {shown(name)}")
        return cls.methods[name]


def plain_name(kind: str) -> str:
    """Return the author's name of a class, without mangling."""
    return kind.rpartition(".")[2]


def parse(file: str, text: str) -> ast.Module:
    """Return the statements of a file.

    Raises:
        UnreadableFile: the file is not valid code.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # style warnings of the Python compiler
            tree = _tree(text)
            _Literals().visit(tree)
            return tree
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = getattr(error, "lineno", None)
        where = f"code/{shown(file)[1:-1]}" + (f", line {line}" if line else "")
        kind = type(error).__name__
        raise UnreadableFile(f"{where}: expected TorchScript, got {kind}") from error


#: An attribute, or a field of a class, in the syntax of TorchScript.
_NAMES = re.compile(r"(?<=[A-Za-z0-9_\])]\.)[A-Za-z]+\b|(?m:^ +)[A-Za-z]+(?= : )")
#: The prefix of names that are Python keywords.
_RESERVED = "burn_import_reserved_"


def _tree(text: str) -> ast.Module:
    """Parse a file in which attributes may be Python keywords."""
    try:
        return ast.parse(text)
    except SyntaxError:
        changed = _NAMES.sub(_with_prefix, text)
        if changed == text:
            raise
    tree = ast.parse(changed)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            node.attr = node.attr.removeprefix(_RESERVED)
        elif isinstance(node, ast.Name):
            node.id = node.id.removeprefix(_RESERVED)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = node.value.replace(_RESERVED, "")
    return tree


def _with_prefix(match: re.Match[str]) -> str:
    """Return the name with a prefix if it is a keyword."""
    name = match[0].lstrip()
    space = match[0][: -len(name)]
    return f"{space}{_RESERVED}{name}" if iskeyword(name) else match[0]


class _Literals(ast.NodeTransformer):
    """Replaces sums such as ``0.+1.j``, the syntax of complex constants."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:  # noqa: N802  by ast
        """Return a complex constant, or the node if it is something else."""
        real, imag = _number(node.left), _number(node.right)
        if real is None or not isinstance(imag, complex):
            return node
        if not isinstance(node.op, ast.Add | ast.Sub):
            return node
        number = real + imag if isinstance(node.op, ast.Add) else real - imag
        return ast.copy_location(ast.Constant(number), node)


def _number(node: ast.expr) -> int | float | complex | None:
    """Return the value of a numeric constant, None for other nodes."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        number = _number(node.operand)
        return None if number is None else -number
    is_number = isinstance(node, ast.Constant) and type(node.value) in _NUMBERS
    return node.value if is_number else None  # type: ignore[attr-defined]


_NUMBERS = (int, float, complex)


def _defined(file: str, text: str) -> Iterator[tuple[str, Function | Class]]:
    for node in parse(file, text).body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, Function(node, file)
        elif isinstance(node, ast.ClassDef):
            yield node.name, _class(node, file)


def _class(node: ast.ClassDef, file: str) -> Class:
    methods, finals, fields = {}, {}, []
    for item in node.body:
        if isinstance(item, ast.FunctionDef):
            methods[item.name] = Function(item, file)
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            fields.append(item.target.id)
            if item.value is not None:
                finals[item.target.id] = item.value
    bases = tuple(base.id for base in node.bases if isinstance(base, ast.Name))
    kinds = (_string_list(node, "__parameters__"), _string_list(node, "__buffers__"))
    members = _constants(node) if "Enum" in bases else {}
    return Class(node.name, bases, methods, finals, tuple(fields), *kinds, members)


def _constants(node: ast.ClassDef) -> dict[str, Any]:
    """Return the constants that the body of a class assigns, by name."""
    return {
        target.id: item.value.value
        for item in node.body
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.Constant)
        for target in item.targets
        if isinstance(target, ast.Name)
    }


def _string_list(node: ast.ClassDef, name: str) -> tuple[str, ...]:
    """Return the strings in the list that the body of a class assigns to ``name``."""
    for item in node.body:
        if isinstance(item, ast.Assign) and isinstance(item.value, ast.List):
            targets = [of.id for of in item.targets if isinstance(of, ast.Name)]
            if targets == [name]:
                items = (
                    e.value for e in item.value.elts if isinstance(e, ast.Constant)
                )
                return tuple(text for text in items if isinstance(text, str))
    return ()
