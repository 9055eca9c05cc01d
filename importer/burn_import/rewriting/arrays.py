"""Contents of constant arrays: comparison, digests, and derived constants."""

from collections.abc import Iterator
from hashlib import sha256
from math import prod
from typing import Any

import numpy as np

from burn_ir.graph import Constants, Graph
from burn_ir.types import Array


def core(array: Array) -> Array:
    """Return ``array`` without its broadcast axes (stride 0)."""
    if 0 in array.shape:
        return array
    once = (slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)
    return np.asarray(array[tuple(once)])


def allocated_bytes(array: Array, others: list[Array]) -> int:
    """Return the bytes of ``array``; 0 if it is a view of one of ``given``.

    Axes of stride 0 repeat the same elements and cost nothing.
    """
    if any(np.may_share_memory(array, other) for other in others):
        return 0
    extents = zip(array.shape, array.strides, strict=True)
    return int(array.itemsize * prod(n for n, stride in extents if stride))


def are_identical(a: Array, b: Array) -> bool:
    """Return whether two arrays have the same type and bytes."""
    if a.dtype != b.dtype or a.shape != b.shape or core(a).shape != core(b).shape:
        return False
    if same_view(a, b):
        return True
    return core(a).tobytes() == core(b).tobytes()


def digest(array: Array) -> bytes:
    """Return a digest of the contents of ``array`` that is equal in any layout."""
    return sha256(array.tobytes()).digest()


def memory_of(array: Array) -> tuple[int, ...]:
    """Return a key that is equal for two arrays of the same memory and layout."""
    return (array.ctypes.data, *array.shape, *array.strides)


def same_view(a: Array, b: Array) -> bool:
    """Return whether two arrays share address, dtype, shape and strides."""
    if a.dtype != b.dtype or a.shape != b.shape or a.strides != b.strides:
        return False
    return bool(a.ctypes.data == b.ctypes.data)


def origins(constants: Constants, name: str) -> Iterator[str]:
    """Yield ``name`` and the constants it was derived from, that of the file last."""
    yield name
    while name in constants.source:
        name = constants.source[name]
        yield name


def derive(graph: Graph, name: str, array: Array, suffix: str) -> str:
    """Return the name of ``array``, derived from constant ``name`` and stored once.

    If an earlier constant of the chain is the same view, its name is returned. Arrays
    of one suffix may also depend on other constants: different ones get other names.
    """
    constants = graph.constants
    for older in origins(constants, name):
        if same_view(constants[older], array):
            return older
    derived = name + suffix
    while True:
        is_own = constants.source.get(derived) == name
        if is_own and are_identical(constants[derived], array):
            return derived
        if derived not in graph.types and not is_own:
            break
        derived += "_"
    derived = constants.add(derived, array, source=name)
    if name in constants.literals:
        constants.literals.add(derived)
    return derived


def integers(graph: Graph, values: list[int]) -> str:
    """Return the name of a stored int64 vector, one for equal contents."""
    return literal(graph, f"int64{values}", np.array(values, np.int64))


def number(graph: Graph, value: float, dtype: np.dtype[Any]) -> str:
    """Return the name of a stored scalar, one for each value and dtype."""
    array = np.array(value, dtype)
    return literal(graph, f"{dtype}({array[()]!s})", array)


def literal(graph: Graph, name: str, array: Array) -> str:
    """Return the name of an array that is not from the file, ``name`` if it is free."""
    while name in graph.types:
        name += "_"
    stored = graph.constants.get(name)
    if stored is not None and are_identical(stored, array):
        return name
    name = graph.constants.add(name, array)
    graph.constants.literals.add(name)
    return name
