"""Named tensors of the value of a pickle.

Names are dotted paths through dicts, lists and modules, as in a ``state_dict``. A
pickled module is described by its ``_parameters``, ``_buffers`` and ``_modules``, a
TorchScript module by its attributes.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from burn.record.errors import shown
from burn_import.foreign import object_remedy
from burn_import.frontends.checkpoints.limits import Limits
from burn_import.frontends.checkpoints.numpy_globals import NumpyArray
from burn_import.frontends.checkpoints.pickle_values import (
    Bytes,
    Global,
    Instance,
    Unread,
    Value,
    named,
)
from burn_import.frontends.checkpoints.tensors import Storage, Tensor
from burn_ir import InvalidModel, UnsupportedModel

Scalar: TypeAlias = None | bool | int | float | str
_SCALARS = (type(None), bool, int, float, str)
#: Longer lists of numbers are data of a loader or a tokenizer, not settings.
_MOST_NUMBERS = 1000


@dataclass
class Contents:
    """The content of a file by name: tensors, plain values, and skipped entries."""

    tensors: dict[str, Tensor] = field(default_factory=dict)
    scalars: dict[str, Scalar] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)


def find(root: Value, limits: Limits) -> Contents:
    """Return all tensors and values in ``root``, in its order.

    Raises:
        InvalidModel: two tensors have one name.
        UnsupportedModel: there is no tensor but an opaque object, or the containers
            exceed the limits on depth or entries.
    """
    if _count_entries(root, limits, {}, 0) > limits.entries:
        raise _too_many(limits)
    walk = _Walk(limits)
    walk.visit(root, "", 0)
    content = walk.contents
    if not content.tensors and "" in content.skipped:
        hint = object_remedy(str(root.kind)) if isinstance(root, Instance) else ""
        raise UnsupportedModel(f"expected tensors, got {content.skipped['']}", hint)
    return content


def select(root: Value, key: str) -> Value:
    """Return the value at a key of the outermost dict, or at keys joined by dots.

    Raises:
        InvalidModel: there is no such key; the message lists the existing ones.
    """
    entries = _entries(root)
    if entries is not None and key in entries:
        return entries[key]
    first, dot, rest = key.partition(".")
    if entries is not None and dot and first in entries:
        return select(entries[first], rest)
    keys = [shown(key) for key in entries or () if isinstance(key, str)][:10]
    raise InvalidModel(
        f"expected a top-level key {shown(key)}, got "
        + (", ".join(keys) or f"{named(root)} without keys")
    )


def _entries(value: Value) -> dict[Value, Value] | None:
    if isinstance(value, Instance):
        return value.entries or None
    return value if isinstance(value, dict) else None


def _too_many(limits: Limits) -> UnsupportedModel:
    return UnsupportedModel(f"more than {limits.entries} entries when written out")


def _check_depth(depth: int, limits: Limits) -> None:
    if depth > limits.depth:
        raise UnsupportedModel(f"containers nested deeper than {limits.depth}")


def _count_entries(
    value: Value, limits: Limits, sizes: dict[int, int], depth: int
) -> int:
    """Return the number of entries in dicts and lists, counted per reference.

    Each container is visited once: nested lists that reference the next one twice have
    exponentially many entries, which are counted and not traversed.
    """
    if not isinstance(value, dict | list | tuple):
        return 1
    if id(value) not in sizes:
        _check_depth(depth, limits)
        items = value.values() if isinstance(value, dict) else value
        below = (_count_entries(item, limits, sizes, depth + 1) for item in items)
        sizes[id(value)] = 1 if _is_data(value) else 1 + sum(below)
    return sizes[id(value)]


def _is_data(value: Value) -> bool:
    """Return whether a value is a long list of numbers or strings, which is skipped."""
    return (
        not isinstance(value, dict)
        and len(value) > _MOST_NUMBERS
        and all(type(item) in _SCALARS for item in value)
    )


class _Walk:
    """Traversal state: the content so far, and the number of entries visited."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.visits = 0
        self.contents = Contents()
        self.data: dict[int, bool] = {}

    def visit(self, value: Value, name: str, depth: int) -> None:
        """Collect ``value`` and its contents under ``name``."""
        self._count(1)
        _check_depth(depth, self.limits)
        kind = type(value)
        if kind in _SCALARS:
            self.contents.scalars[name] = value
        elif kind is dict:
            self._pairs(value.items(), name, depth)
        elif kind is list or kind is tuple:
            self._list(value, name, depth)
        elif kind is Tensor or kind is NumpyArray:
            self._tensor(value, name)
        elif kind is Instance:
            self._instance(value, name, depth)
        else:
            self.contents.skipped[name] = _skip_reason(value)

    def _count(self, entries: int) -> None:
        """Count visited entries; shared values count once per reference."""
        self.visits += entries
        if self.visits > self.limits.entries:
            raise _too_many(self.limits)

    def _tensor(self, value: Tensor | NumpyArray, name: str) -> None:
        tensor = value.value() if isinstance(value, NumpyArray) else value
        if isinstance(tensor, Unread):
            self.contents.skipped[name] = tensor.reason
        elif tensor.element.dtype is None:
            self.contents.skipped[name] = f"a tensor of {tensor.element.name}"
        elif name in self.contents.tensors:
            raise InvalidModel(f"expected one tensor {shown(name)}, got two")
        else:
            self.contents.tensors[name] = tensor

    def _pairs(
        self, pairs: Iterable[tuple[Value, Value]], name: str, depth: int
    ) -> None:
        prefix = f"{name}." if depth else ""
        for key, value in pairs:
            if isinstance(key, str | int):
                self.visit(value, f"{prefix}{key}", depth + 1)
            else:
                self._count(1)
                self.contents.skipped[name] = f"an entry whose key is {named(key)}"

    def _list(
        self, values: list[Value] | tuple[Value, ...], name: str, depth: int
    ) -> None:
        if self._is_left_out(values):
            self.contents.skipped[name] = f"a list of {len(values)} numbers or texts"
            return
        self._pairs(enumerate(values), name, depth)

    def _is_left_out(self, values: list[Value] | tuple[Value, ...]) -> bool:
        if id(values) not in self.data:
            self.data[id(values)] = _is_data(values)
        return self.data[id(values)]

    def _instance(self, value: Instance, name: str, depth: int) -> None:
        state = value.state if isinstance(value.state, dict) else {}
        if value.kind.module.partition(".")[0] == "__torch__":
            self._script_module(value, name, depth)
        elif all(isinstance(state.get(part), dict) for part in _PARTS):
            self._module(state, name, depth)
        elif value.entries:
            self._pairs(value.entries.items(), name, depth)
        elif value.elements:
            self._list(value.elements, name, depth)
        else:
            self.contents.skipped[name] = _skip_reason(value)

    def _module(self, state: dict[Value, Value], name: str, depth: int) -> None:
        """Collect the tensors of a pickled module, named as in its ``state_dict``."""
        hidden = state.get("_non_persistent_buffers_set")
        elements = hidden.elements if isinstance(hidden, Instance) else []
        self._count(len(elements))
        names = {element for element in elements if type(element) is str}
        for part in _PARTS:
            self._count(len(state[part]))
            left_out = names if part == "_buffers" else ()
            present = [
                (key, entry)
                for key, entry in state[part].items()
                if entry is not None and key not in left_out
            ]
            self._pairs(present, name, depth)

    def _script_module(self, value: Instance, name: str, depth: int) -> None:
        """Collect the tensors in the attributes of a TorchScript module."""
        if not isinstance(value.state, dict):
            if (
                value.state is not None
            ):  # such as the packed weights of a quantized layer
                self.contents.skipped[name] = _skip_reason(value)
            return
        self._count(len(value.state))
        holders = (Tensor, Instance, list, tuple, dict)
        pairs = value.state.items()
        self._pairs([p for p in pairs if isinstance(p[1], holders)], name, depth)


_PARTS = ("_parameters", "_buffers", "_modules")


def _skip_reason(value: Value) -> str:
    """Return the reason why a value is not among the tensors."""
    if isinstance(value, Unread):
        return value.reason
    if isinstance(value, Storage):
        return f"a storage of {value.count} elements of {value.element.name}"
    if isinstance(value, Bytes):
        return f"{len(value)} bytes"
    if isinstance(value, Global):
        return f"the name {value}, which is not looked up"
    if isinstance(value, Instance):
        return f"an object of {value.kind}, which is not built"
    return named(value)
