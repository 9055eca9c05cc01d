"""What arrays hold in memory, and whether two are the same."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np

from burn_ir.graph import Constants, Graph
from burn_ir.types import Array


def core(array: Array) -> Array:
    """``array`` without the repetitions of a broadcast view."""
    if 0 in array.shape:
        return array
    once = (slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)
    return np.asarray(array[tuple(once)])


def held(array: Array, given: list[Array]) -> int:
    """The bytes that ``array`` holds besides those of the arrays it may be a view of.

    An axis of stride 0 shows the same elements again and costs nothing.
    """
    if any(np.may_share_memory(array, other) for other in given):
        return 0
    extents = zip(array.shape, array.strides, strict=True)
    return int(array.itemsize * prod(n for n, stride in extents if stride))


def equal(a: Array, b: Array) -> bool:
    """Whether two arrays have the same type and bytes."""
    if a.dtype != b.dtype or a.shape != b.shape or core(a).shape != core(b).shape:
        return False
    return core(a).tobytes() == core(b).tobytes()


def digest(array: Array) -> bytes:
    """What tells the contents of ``array`` from others, in any layout."""
    return sha256(array.tobytes()).digest()


def memory_of(array: Array) -> tuple[int, ...]:
    """Return a key that is equal for two arrays of the same memory and layout."""
    return (array.ctypes.data, *array.shape, *array.strides)


def same_view(a: Array, b: Array) -> bool:
    """Whether two arrays are the same memory, read in the same way."""
    if a.dtype != b.dtype or a.shape != b.shape or a.strides != b.strides:
        return False
    return bool(a.ctypes.data == b.ctypes.data)


def origins(constants: Constants, name: str) -> Iterator[str]:
    """``name`` and the constants that it was made from, that of the file last."""
    yield name
    while name in constants.source:
        name = constants.source[name]
        yield name


def derive(graph: Graph, name: str, array: Array, suffix: str) -> str:
    """The name of ``array``, made of the stored one called ``name``; stored once.

    An array that was made back into what it was before is that one.
    """
    constants = graph.constants
    for older in origins(constants, name):
        if same_view(constants[older], array):
            return older
    derived = name + suffix
    while derived in graph.types:
        derived += "_"
    if constants.source.get(derived) == name:
        return derived
    derived = constants.add(derived, array, source=name)
    if name in constants.literals:
        constants.literals.add(derived)
    return derived


def integers(graph: Graph, values: list[int]) -> str:
    """The name of a stored vector, one for equal contents: so readers are merged."""
    return literal(graph, f"int64{values}", np.array(values, np.int64))


def number(graph: Graph, value: float, dtype: np.dtype[Any]) -> str:
    """The name of a stored number without axes, one for each dtype."""
    array = np.array(value, dtype)
    return literal(graph, f"{dtype}({array[()]!s})", array)


def literal(graph: Graph, name: str, array: Array) -> str:
    """The name of an array that no file has, which is ``name`` if that is free."""
    while name in graph.types:
        name += "_"
    stored = graph.constants.get(name)
    if stored is not None and equal(stored, array):
        return name
    name = graph.constants.add(name, array)
    graph.constants.literals.add(name)
    return name
