"""Interpreter of expressions, by the kinds of syntax that TorchScript writes."""

import ast
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from burn.record.errors import shown
from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torchscript.archive import Archive
from burn_import.frontends.torchscript.modules import Modules
from burn_import.frontends.torchscript.operators.builtins import is_instance
from burn_import.frontends.torchscript.operators.dynamic_lists import has_rows, item_of
from burn_import.frontends.torchscript.operators.operators import Operators
from burn_import.frontends.torchscript.operators.signatures import is_known
from burn_import.frontends.torchscript.primitives import PRIMITIVES
from burn_import.frontends.torchscript.source_code import Class, Code, Function, Rest
from burn_import.frontends.torchscript.values import (
    UNINITIALIZED,
    UNKNOWN,
    ContextManager,
    EnumMember,
    Method,
    Module,
    Namespace,
    PyValue,
    Record,
    Returned,
    TensorRef,
    enum_attribute,
    is_record,
    is_unknown,
    record_of,
    require_values,
    text_of,
    wrapped_number,
)
from burn_ir import InvalidModel, UnsupportedModel
from burn_ir.graph import ROOT_SCOPE
from burn_ir.graph_builder import Origin

_ROOTS = ("torch", "ops", "__torch__", "CONSTANTS")


@dataclass(eq=False)
class Frame:
    """A call frame: the names of one call, and the module it runs in.

    ``rest`` are the statements after the current one, None inside of a loop or one side
    of a branch.
    """

    function: Function | None
    module: Module
    names: dict[str, PyValue] = field(default_factory=dict)
    rest: Rest | None = None

    @property
    def file(self) -> str:
        """The file of the function."""
        return "" if self.function is None else self.function.file

    def origin(self, name: str) -> Origin:
        """Return the origin of a call in this function."""
        return Origin(name, self.module.path or ROOT_SCOPE, self.module.classes)


class Expressions(Operators):
    """Interpreter of expressions; ``enter`` interprets the functions they call."""

    def __init__(
        self, archive: Archive, code: Code, varying: frozenset[str] = frozenset()
    ) -> None:
        super().__init__()
        self.archive = archive
        self.code = code
        self.modules = Modules(self, archive.root, code, varying)
        self.constants: dict[str, PyValue] = {}
        #: The branches around the current code that are followed to the end.
        self.followed = 0

    @abstractmethod
    def run(self, body: Sequence[ast.stmt], frame: Frame) -> Returned | None:
        """Return the result of a block, None if it does not return."""

    @abstractmethod
    def enter(
        self,
        function: Function,
        module: Module,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
    ) -> PyValue:
        """Return the result of a function of the archive, called in a module."""

    def evaluate(self, node: ast.expr, frame: Frame, name: str = "") -> PyValue:
        """Return the value of an expression; ``name`` is the name of its result.

        Raises:
            UnsupportedModel: the kind of expression is not supported.
        """
        follow = _EXPRESSIONS.get(type(node))
        if follow is None:
            kind = type(node).__name__
            raise UnsupportedModel(f"an expression of kind {kind} is not supported")
        return follow(self, node, frame, name)

    def constant(self, node: ast.Constant, frame: Frame, name: str) -> PyValue:
        """Return a number, string, bool or None."""
        if isinstance(node.value, bytes) or node.value is ...:
            raise UnsupportedModel(
                f"constants such as {shown(node.value)} are not supported"
            )
        return node.value

    def name(self, node: ast.Name, frame: Frame, name: str) -> PyValue:
        """Return the value of a name."""
        if node.id in frame.names:
            return frame.names[node.id]
        if node.id in _ROOTS:
            return Namespace(node.id)
        if node.id in _NUMBERS:
            return _NUMBERS[node.id]
        raise InvalidModel(f"nothing is called {shown(node.id)} here")

    def attribute(self, node: ast.Attribute, frame: Frame, name: str) -> PyValue:
        """Return the value of ``torch.add``, ``self.weight``, ``CONSTANTS.c0``."""
        owner = self.evaluate(node.value, frame)
        if isinstance(owner, Namespace):
            return self.named(owner.path, node.attr)
        if owner is UNKNOWN:
            return UNKNOWN
        if isinstance(owner, EnumMember):
            return enum_attribute(self.code.find(owner.path), owner, node.attr)
        if isinstance(owner, Record):
            return owner.item(node.attr)
        if not isinstance(owner, Module):
            raise UnsupportedModel(
                f"expected a module as owner of the attribute {shown(node.attr)}"
            )
        return self.member(owner, node.attr)

    def named(self, path: str, name: str) -> PyValue:
        """Return a constant of the archive, a member of an enumeration, or a name."""
        if path == "CONSTANTS":
            return self.literal(name)
        cls = self.code.find(path) if path.startswith("__torch__.") else None
        if isinstance(cls, Class) and name in cls.members:
            return EnumMember(path, cls.members[name])
        return Namespace(f"{path}.{name}")

    def member(self, module: Module, name: str) -> PyValue:
        """Return a module's attribute: from the archive, or from its class."""
        attribute = self.modules.get(module, name)
        if attribute is not NotImplemented:
            return attribute
        cls = self.code.find(module.instance.kind.path)
        if isinstance(cls, Class) and name in cls.finals:
            return self.evaluate(cls.finals[name], Frame(None, module))
        if isinstance(cls, Class) and name in cls.methods:
            return Method(module, name)
        where = ".".join(module.path) or "the outermost module"
        raise InvalidModel(f"{where} has no attribute {shown(name)}")

    def literal(self, name: str) -> PyValue:
        """Return a constant of the archive, under a generic name."""
        if name not in self.constants:
            stored = self.archive.constant(name)
            constant = self.modules.obj(stored, (), name.replace("c", "constant_"))
            self.constants[name] = wrapped_number(constant)
        return self.constants[name]

    def list_of(self, node: ast.List, frame: Frame, name: str) -> PyValue:
        """Return the value of a list display."""
        self.budget.step(len(node.elts))
        return [self.evaluate(item, frame, name) for item in node.elts]

    def tuple_of(self, node: ast.Tuple, frame: Frame, name: str) -> PyValue:
        """Return the value of a tuple display."""
        return tuple(self.evaluate(item, frame, name) for item in node.elts)

    def dict_of(self, node: ast.Dict, frame: Frame, name: str) -> PyValue:
        """Return the value of a dict display."""
        result = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                raise UnsupportedModel("nested dicts are not supported")
            result[_key(self.evaluate(key, frame))] = self.evaluate(value, frame)
        return result

    def unary(self, node: ast.UnaryOp, frame: Frame, name: str) -> PyValue:
        """Return the value of a negation."""
        value = self.evaluate(node.operand, frame)
        if isinstance(node.op, ast.USub) and isinstance(value, int | float):
            return -value
        raise UnsupportedModel("expected a number as operand of a unary operator")

    def subscript(self, node: ast.Subscript, frame: Frame, name: str) -> PyValue:
        """Return an item of a list, a tuple or a dict."""
        owner = self.evaluate(node.value, frame)
        key = self.evaluate(node.slice, frame)
        if owner is UNKNOWN or key is UNKNOWN:
            return UNKNOWN
        is_known = not isinstance(key, TensorRef | Value)
        if isinstance(owner, list) and (has_rows(owner) or isinstance(key, Value)):
            return item_of(self, owner, key, frame.origin(name or "item"))
        if not isinstance(owner, list | tuple | dict | str) or not is_known:
            raise UnsupportedModel("an item is known only at run time")
        try:
            return owner[_key(key) if isinstance(owner, dict) else key]
        except (LookupError, TypeError) as error:
            raise InvalidModel(f"there is no item {shown(key)}") from error

    def called(
        self, node: ast.Call, frame: Frame, name: str, count: int | None = None
    ) -> PyValue:
        """Return the result of a call, which is unpacked to ``count`` names."""
        if any(isinstance(arg, ast.Starred) for arg in node.args):
            raise UnsupportedModel("calls with *arguments are not supported")
        own = _own_name(node.func, frame)
        if own in _BUILTINS:
            return _BUILTINS[own](self, node, frame, name)
        if isinstance(node.func, ast.Attribute):
            function = self.target(node.func, frame)
        else:
            function = self.evaluate(node.func, frame)
        args = [self.evaluate(arg, frame) for arg in node.args]
        kwargs = {
            word.arg: self.evaluate(word.value, frame)
            for word in node.keywords
            if word.arg
        }
        return self.follow(function, args, kwargs, frame, name, count)

    def target(self, node: ast.Attribute, frame: Frame) -> PyValue:
        """Return the callee: a method, or a function with a name."""
        owner = self.evaluate(node.value, frame)
        if isinstance(owner, Module):
            return self.modules.method(owner, node.attr)
        if isinstance(owner, ContextManager) and node.attr == "__init__":
            return owner
        return self.attribute(node, frame, "")

    def follow(
        self,
        function: PyValue,
        args: list[PyValue],
        kwargs: dict[str, PyValue],
        frame: Frame,
        name: str,
        count: int | None = None,
    ) -> PyValue:
        """Return the result of a call, which is unpacked to ``count`` names.

        Raises:
            UnsupportedModel: the function is not supported.
        """
        if function is UNKNOWN:
            return UNKNOWN
        if isinstance(function, ContextManager):
            return function.initialize(args)
        if isinstance(function, Method):
            return self.bound(function, args, kwargs)
        if not isinstance(function, Namespace):
            raise UnsupportedModel("expected a function, got another value to call")
        origin = frame.origin(name or _leaf(function))
        root, _, rest = function.path.partition(".")
        require_values(function.path, [*args, *kwargs.values()])
        if (root == "torch" and "." not in rest) or (root == "ops" and is_known(rest)):
            return self.call(rest, args, kwargs, origin, count)
        if function.path in PRIMITIVES and any(map(is_unknown, args)):
            return UNKNOWN
        if function.path in PRIMITIVES:
            return PRIMITIVES[function.path](self, origin, *args)
        if root == "__torch__":
            cls = self.code.find(function.path)
            if is_record(cls):
                return record_of(cls, args, kwargs)
            return self.enter(self.function(function.path), frame.module, args, kwargs)
        raise UnsupportedModel(f"{shown(function.path)[1:-1]} is not supported")

    def bound(
        self, method: Method, args: list[PyValue], kwargs: dict[str, PyValue]
    ) -> PyValue:
        """Return the result of a method of a module."""
        function = self.code.method(method.module.instance.kind.path, method.name)
        return self.enter(function, method.module, [method.module, *args], kwargs)

    def function(self, path: str) -> Function:
        """Return a function of the archive."""
        definition = self.code.find(path)
        if isinstance(definition, Function):
            return definition
        owner = self.code.find(path.removesuffix(".__new__"))
        if definition is not None or owner is not None:
            raise UnsupportedModel(f"objects of class {shown(path)} are not supported")
        raise InvalidModel(f"the archive has no function {shown(path)}")


def _key(key: PyValue) -> PyValue:
    if not isinstance(key, str | int | float | bool):
        raise UnsupportedModel("expected a string or number as dict key")
    return key


def _leaf(function: PyValue) -> str:
    """Return the name for the result of a call without a name."""
    path = function.path if isinstance(function, Namespace) else "result"
    return str(path).rpartition(".")[2].strip("_") or "result"


def _own_name(function: ast.expr, frame: Frame) -> str:
    is_own = isinstance(function, ast.Name) and function.id not in frame.names
    return function.id if is_own else ""  # type: ignore[attr-defined]


def _annotate(machine: Expressions, node: ast.Call, frame: Frame, name: str) -> PyValue:
    """Return the value of ``annotate(type, value)``, as a number if the type is one."""
    if len(node.args) != 2:
        raise InvalidModel("expected a type and a value")
    kind, value = node.args
    result = machine.evaluate(value, frame, name)
    if isinstance(kind, ast.Name) and kind.id in ("number", "int", "float", "bool"):
        return machine.as_number(result, frame.origin(name or "number"))
    return result


def _conversion(kind: type) -> Callable[..., PyValue]:
    def follow(
        machine: Expressions, node: ast.Call, frame: Frame, name: str
    ) -> PyValue:
        if len(node.args) != 1:
            raise InvalidModel(f"expected one operand of {kind.__name__}")
        value = machine.evaluate(node.args[0], frame)
        return machine.convert(kind, value, frame.origin(name or kind.__name__))

    return follow


def _text(machine: Expressions, node: ast.Call, frame: Frame, name: str) -> PyValue:
    value = machine.evaluate(node.args[0], frame)
    return UNKNOWN if value is UNKNOWN else text_of(value)


def _getattr(machine: Expressions, node: ast.Call, frame: Frame, name: str) -> PyValue:
    owner, key = (machine.evaluate(arg, frame) for arg in node.args)
    if not isinstance(owner, Module) or not isinstance(key, str):
        raise UnsupportedModel("expected a module as operand of getattr")
    return machine.member(owner, key)


def _is_instance(
    machine: Expressions, node: ast.Call, frame: Frame, name: str
) -> PyValue:
    obj, kind = node.args
    return is_instance(machine.evaluate(obj, frame), kind)


_BUILTINS: Mapping[str, Callable[..., PyValue]] = {
    "annotate": _annotate,
    "unchecked_cast": _annotate,
    "uninitialized": lambda *args: UNINITIALIZED,
    "int": _conversion(int),
    "float": _conversion(float),
    "bool": _conversion(bool),
    "str": _text,
    "isinstance": _is_instance,
    "getattr": _getattr,
}
_NUMBERS: Mapping[str, PyValue] = {"inf": math.inf, "nan": math.nan}


_EXPRESSIONS: Mapping[type, Callable[..., PyValue]] = {
    ast.Constant: Expressions.constant,
    ast.Name: Expressions.name,
    ast.Attribute: Expressions.attribute,
    ast.List: Expressions.list_of,
    ast.Tuple: Expressions.tuple_of,
    ast.Dict: Expressions.dict_of,
    ast.UnaryOp: Expressions.unary,
    ast.Subscript: Expressions.subscript,
    ast.Call: Expressions.called,
}
