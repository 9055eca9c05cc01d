"""The modules of an archive, and their tensors by name."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from burn_import.frontends.checkpoints.pickle_values import (
    EnumValue,
    Instance,
    Value,
    named,
)
from burn_import.frontends.checkpoints.tensors import Tensor
from burn_import.frontends.torch_export.signature import COUNTER
from burn_import.frontends.torchscript.source_code import Class, Code, plain_name
from burn_import.frontends.torchscript.values import (
    EnumMember,
    Method,
    Module,
    PyValue,
    TensorRef,
)
from burn_ir import UnsupportedModel

if TYPE_CHECKING:
    from burn_import.frontends.torchscript.operators.operators import Operators

_DEEPEST = 100
#: The most digits of a call number (``forward1``).
_DIGITS = 6
_PLAIN = (type(None), bool, int, float, str)
#: Values of attributes, by the identity of the module and the name.
Attributes = dict[tuple[int, str], PyValue]


class Modules:
    """The attributes of modules as interpreter values; shared tensors are one value.

    Tensors of the same memory and shape are one, with the first of their names in the
    order of the file, as in a ``state_dict``. Those named in ``varying`` change between
    calls, so that nothing is decided by their contents.
    """

    def __init__(
        self,
        operators: Operators,
        root: Instance,
        code: Code,
        varying: frozenset[str] = frozenset(),
    ) -> None:
        self.operators = operators
        self.varying = varying
        self.names: dict[tuple[Any, ...], str] = {}
        #: Parameters (True) and buffers (False), by name in the graph.
        self.trained: dict[str, bool] = {}
        #: The number of modules.
        self.count = 0
        tensors = list(_walk(root))
        for name, one in tensors:
            if isinstance(one, Tensor):
                self.names.setdefault(_identity(one), name)
            else:
                self.count += 1
        self.parameters = set(_listed_names(tensors, code, "parameters"))
        self.buffers = set(_listed_names(tensors, code, "buffers"))
        self.tensors = tensors
        self.groups = _ModuleGroups(tensors)
        self.stored_refs: dict[tuple[Any, ...], TensorRef] = {}
        self.assigned: Attributes = {}
        self.containers: dict[int, PyValue] = {}
        #: The tensors of the model's state, by name in the graph.
        self.states: dict[str, TensorRef] = {}
        #: Their names in the archive, by name in the graph.
        self.sources: dict[str, str] = {}
        #: Attributes other than tensors that the code read before it set them: the
        #: value, and its contents.
        self.read: dict[tuple[int, str], tuple[PyValue, list[PyValue]]] = {}

    def get(self, module: Module, name: str) -> PyValue:
        """Return an attribute of a module, ``NotImplemented`` if there is none."""
        key = (id(module.instance), name)
        value = self._current(module, name)
        is_first = key not in self.assigned and key not in self.read
        if is_first and (is_plain(value) or isinstance(value, list | tuple | dict)):
            self.read[key] = value, list(self.operators.leaves(value))
        return value

    def _current(self, module: Module, name: str) -> PyValue:
        key = (id(module.instance), name)
        if key in self.assigned:
            return self.assigned[key]
        state = module.instance.state
        if not isinstance(state, dict) or name not in state:
            return NotImplemented
        member = state[name]
        if isinstance(member, Instance):
            kind = plain_name(member.kind.path)
            classes = (*module.classes, kind)
            return Module(member, (*module.path, name), classes)
        return self.obj(member, module.path, name)

    def method(self, module: Module, name: str) -> Method:
        """Return a method of a module, bound to the module that it is called for.

        A trace treats modules with the same tensors as the first of them, and numbers
        its calls (``forward1``). This restores the other modules.
        """
        number = name.removeprefix("forward")
        if not number.isdecimal() or len(number) > _DIGITS:
            return Method(module, name)
        path = self.groups.other(".".join(module.path), int(number))
        return Method(replace(module, path=path) if path else module, name)

    def set(self, module: Module, name: str, obj: PyValue) -> None:
        """Set an attribute of a module, as the code does.

        A tensor that replaces a stored one is the stored one's value for the next call.
        """
        before = self._current(module, name)
        for key, tensor in self.states.items():
            if tensor is before and isinstance(obj, TensorRef):
                self.states[key] = obj
        self.assigned[id(module.instance), name] = obj

    def obj(
        self, value: Value, path: tuple[str, ...], name: str, depth: int = 0
    ) -> PyValue:
        """Return a value of the archive as an interpreter value.

        Raises:
            UnsupportedModel: values of this kind are not supported.
        """
        if type(value) in _PLAIN:
            return value
        if isinstance(value, Tensor):
            return self.tensor(value, (*path, name))
        if isinstance(value, list | tuple | dict) and depth < _DEEPEST:
            if id(value) not in self.containers:
                container = self._container(value, path, name, depth)
                self.containers[id(value)] = container
            return self.containers[id(value)]
        if isinstance(value, EnumValue):
            return EnumMember(value.kind.path, value.value)
        raise UnsupportedModel(f"{name!r} is {named(value)}, which is not read")

    def _container(
        self, value: Any, path: tuple[str, ...], name: str, depth: int
    ) -> PyValue:
        path = (*path, name)
        if isinstance(value, dict):
            return {
                key: self.obj(item, path, str(key), depth + 1)
                for key, item in value.items()
            }
        items = (self.obj(x, path, str(i), depth + 1) for i, x in enumerate(value))
        return tuple(items) if isinstance(value, tuple) else list(items)

    def tensor(self, tensor: Tensor, path: tuple[str, ...]) -> TensorRef:
        """Return a tensor of the model's state, or a constant."""
        key = _identity(tensor)
        if key not in self.stored_refs:
            if tensor.quantization is not None:
                raise UnsupportedModel("quantized tensors are not supported")
            name = self.names.get(key, ".".join(path))
            is_varying = name in self.varying
            value = self.operators.writer.stored(name, tensor.array(), is_varying)
            self.sources[value.name] = name
            if key in self.names:
                self.trained[value.name] = name in self.parameters
            self.stored_refs[key] = self.states[value.name] = TensorRef(value)
        return self.stored_refs[key]

    def store_unread(self) -> None:
        """Store the parameters and buffers that no code has read.

        Further names of shared tensors are stored too, since a ``state_dict`` has all
        names.
        """
        for name, tensor in self.tensors:
            if name not in self.parameters | self.buffers:
                continue
            if not isinstance(tensor, Tensor) or not _is_storable(tensor):
                continue
            if _identity(tensor) not in self.stored_refs:
                self.tensor(tensor, tuple(name.split(".")))
            if self.names[_identity(tensor)] != name:
                value = self.operators.writer.stored(name, tensor.array())
                self.trained[value.name] = name in self.parameters

    def replaced(self) -> dict[str, str]:
        """Return the stored tensors that a call replaces, with their new values."""
        states = {name: tensor.value.name for name, tensor in self.states.items()}
        return {name: after for name, after in states.items() if after != name}

    def left_in_attributes(self) -> Attributes:
        """Return attributes that the code read before it changed them, as they are now.

        Those that are tensors are states instead.
        """
        after = {
            key: self.assigned.get(key, value) for key, (value, _) in self.read.items()
        }
        return {
            key: value
            for key, value in after.items()
            if not _are_same(list(self.operators.leaves(value)), self.read[key][1])
        }


def is_counter(name: str) -> bool:
    """Return whether a stored tensor counts the batches of a normalization."""
    return name.rpartition(".")[2] == COUNTER


def is_plain(value: PyValue) -> bool:
    """Return whether a value is a known number or text, or None."""
    return type(value) in _PLAIN


def _are_same(after: list[PyValue], before: list[PyValue]) -> bool:
    """Return whether the contents of an attribute are those that it had before."""
    return len(after) == len(before) and all(map(_is_same, after, before))


def _is_same(after: PyValue, before: PyValue) -> bool:
    if isinstance(before, TensorRef) and isinstance(after, TensorRef):
        return after is before or after.current.name == before.current.name
    return type(after) is type(before) and bool(after == before)


def _is_storable(tensor: Tensor) -> bool:
    """Return whether a tensor has a supported numeric dtype."""
    return tensor.quantization is None and tensor.element.dtype is not None


def _identity(tensor: Tensor) -> tuple[Any, ...]:
    """Return a key that is equal for tensors with the same memory and shape."""
    storage = tensor.storage
    memory = (id(storage.block), storage.start, tensor.offset)
    return (*memory, tensor.shape, tensor.strides, tensor.element.name)


class _ModuleGroups:
    """Groups of modules that hold the same tensors under the same names.

    ``tensors`` lists modules and tensors in the order of the file, parents first.
    """

    def __init__(self, tensors: list[tuple[str, Tensor | Instance]]) -> None:
        self.numbers: dict[tuple[Any, ...], int] = {}
        self.number: dict[int, int] = {}
        #: The paths of each group, and the group and index of each path.
        self.paths: dict[int, list[str]] = {}
        self.places: dict[str, tuple[list[str], int]] = {}
        modules = [(n, one) for n, one in tensors if isinstance(one, Instance)]
        for _, module in reversed(modules):
            inside = self._inside(module)
            if inside:
                number = self.numbers.setdefault(inside, len(self.numbers))
                self.number[id(module)] = number
        for name, module in modules:
            if id(module) in self.number:
                paths = self.paths.setdefault(self.number[id(module)], [])
                self.places[name] = paths, len(paths)
                paths.append(name)

    def other(self, path: str, number: int) -> tuple[str, ...]:
        """Return the path of the module for a call number; () if there is none."""
        paths, own = self.places.get(path, ([], 0))
        index = number if number > own else number - 1
        return tuple(paths[index].split(".")) if 0 <= index < len(paths) else ()

    def _inside(self, module: Instance) -> tuple[Any, ...]:
        """Return the content of a module; inner modules are their group numbers."""
        state = module.state if isinstance(module.state, dict) else {}
        tensors = [(n, _identity(t)) for n, t in state.items() if isinstance(t, Tensor)]
        numbers = [(n, self.number.get(id(m))) for n, m in state.items()]
        return (*tensors, *((n, m) for n, m in numbers if m is not None))


def _listed_names(
    tensors: list[tuple[str, Tensor | Instance]], code: Code, kind_of: str
) -> Iterator[str]:
    """Yield the names that module classes list as parameters, or as buffers."""
    for name, module in tensors:
        if isinstance(module, Instance):
            kind = code.find(module.kind.path)
            listed = getattr(kind, kind_of) if isinstance(kind, Class) else ()
            yield from (f"{name}.{leaf}" if name else leaf for leaf in listed)


def _walk(root: Instance) -> Iterator[tuple[str, Tensor | Instance]]:
    """Yield modules and tensors by name, in the order of the file, each module once."""
    seen: set[int] = set()
    stack: list[tuple[str, Value]] = [("", root)]
    while stack:
        name, value = stack.pop()
        if isinstance(value, Tensor):
            yield name, value
        elif id(value) not in seen:
            seen.add(id(value))
            yield name, value
            state = value.state if isinstance(value.state, dict) else {}
            prefix = f"{name}." if name else ""
            inner = [
                (f"{prefix}{key}", item)
                for key, item in state.items()
                if isinstance(item, Instance | Tensor) and isinstance(key, str)
            ]
            stack.extend(reversed(inner))
