"""Weights of recurrent layers: from ONNX's layout to PyTorch's parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from burn.dtypes import float32
from burn_import.provenance.weight_owners import is_dotted
from burn_import.rewriting.arrays import are_identical, derive, digest
from burn_ir.graph import Graph
from burn_ir.names import free_name
from burn_ir.ops.recurrent import NAMES
from burn_ir.types import Array

#: The position in ONNX's order of each of PyTorch's gates.
GATES = {"LSTM": (0, 2, 3, 1), "GRU": (1, 0, 2), "RNN": (0,)}
#: The name of the first parameter of a layer or a cell in a file.
_PARAMETER = re.compile(r"^(.+)\.weight_ih(?:_l([0-9]{1,3}))?$")


@dataclass(frozen=True)
class Named:
    """A layer whose original parameters are in the file: module, number, names."""

    module: str
    number: int
    names: tuple[str, ...]


class Parameters:
    """The parameters of layers, under their names in the file if it has them.

    Exporters reorder and concatenate parameters; the file may still hold the originals.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        #: The layers with named parameters, by the digest of their first parameter.
        self.first: dict[bytes, list[tuple[str, int]]] = {}
        #: The same for cells, whose parameters have no layer number.
        self.cells: dict[bytes, list[str]] = {}
        for name in graph.constants:
            match = _PARAMETER.match(name)
            if match and name not in graph.types:
                key = digest(graph.constants[name])
                if match[2] is None:
                    self.cells.setdefault(key, []).append(match[1])
                else:
                    self.first.setdefault(key, []).append((match[1], int(match[2])))

    def cell(self, kind: str, packed: list[str]) -> tuple[str, ...]:
        """Return the parameters of the cell with the packed weights W, R and B.

        Empty if the file has no such cell. B is optional.
        """
        if not self.cells:
            return ()
        arrays = unpack_weights(kind, [self.graph.constants[name] for name in packed])
        for module in self.cells.get(digest(arrays[0]), ()):
            names = tuple(f"{module}.{name}" for name in NAMES[: len(arrays)])
            if len(arrays) <= 4 and all(map(self._has_contents, names, arrays)):
                return names
        return ()

    def named(self, kind: str, packed: list[str]) -> Named | None:
        """Return the file's layer with the packed weights W, R and optional B."""
        return self.named_of(kind, [self.graph.constants[name] for name in packed])

    def named_of(self, kind: str, packed: list[Array]) -> Named | None:
        """Return the file's layer with these arrays W, R and optional B."""
        if not self.first or not have_shapes(kind, packed):
            return None
        arrays = unpack_weights(kind, packed)
        for module, number in self.first.get(digest(arrays[0]), ()):
            leaves = _leaves(len(arrays), len(packed) == 3, number)
            names = tuple(f"{module}.{leaf}" for leaf in leaves)
            if all(map(self._has_contents, names, arrays)):
                return Named(module, number, names)
        return None

    def _has_contents(self, name: str, array: Array) -> bool:
        if name in self.graph.types or name not in self.graph.constants:
            return False
        return are_identical(self.graph.constants[name], array)

    def stored(self, kind: str, packed: list[str], number: int) -> list[str]:
        """Return the parameter names of layer ``number``; store missing ones.

        The parameters of the forward direction come before those of the backward
        direction.
        """
        named = self.named(kind, packed)
        if named is not None and named.number == number:
            return list(named.names)
        arrays = unpack_weights(kind, [self.graph.constants[name] for name in packed])
        leaves = _leaves(len(arrays), len(packed) == 3, number)
        each = len(arrays) // self.graph.constants[packed[0]].shape[0]
        sources = [packed[min(i % each, 2)] for i in range(len(arrays))]
        return [
            self._store_derived(source, array, leaf, packed)
            for source, array, leaf in zip(sources, arrays, leaves, strict=True)
        ]

    def _store_derived(
        self, source: str, array: Array, leaf: str, packed: list[str]
    ) -> str:
        module = owner(packed)
        if not module:
            return derive(self.graph, source, array, f".{leaf}")
        name = f"{module}.{leaf}"
        if self._has_contents(name, array):
            return name
        return self.graph.constants.add(free_name(name, self.graph.types), array)


def _leaves(count: int, biased: bool, number: int) -> list[str]:
    """Return the names of all ``count`` parameters of a layer."""
    each = 4 if biased else 2
    ways = ("", "_reverse")[: count // each]
    return [f"{name}_l{number}{way}" for way in ways for name in NAMES[:each]]


def owner(names: list[str]) -> str:
    """Return the module prefix that all dotted names share, "" if there is none."""
    if not all(map(is_dotted, names)):
        return ""
    stems = {name.rpartition(".")[0] for name in names}
    return stems.pop() if len(stems) == 1 else ""


def unpack_weights(kind: str, packed: list[Array]) -> list[Array]:
    """Return a layer's parameters from W, R and optional B, ordered as ``NAMES``."""
    gates = GATES[kind]
    w, r = packed[:2]
    hidden = r.shape[2]
    parameters = []
    for way in range(w.shape[0]):
        parts = [w[way], r[way]]
        if len(packed) == 3:
            parts += np.split(packed[2][way], 2)
        parameters += [_reorder_gates(part, gates, hidden) for part in parts]
    return parameters


def _reorder_gates(part: Array, gates: tuple[int, ...], hidden: int) -> Array:
    """Return the rows of the gates in another order."""
    if len(gates) == 1:
        return part
    rows = [part[gate * hidden : (gate + 1) * hidden] for gate in gates]
    return np.concatenate(rows)


def are_weights(graph: Graph, kind: str, names: list[str | None]) -> bool:
    """Return whether operands are float32 constants that fit W, R and optional B."""
    if None in names[:2]:
        return False
    arrays = []
    for name in names:
        if name is None:
            continue
        if name in graph.types or name not in graph.constants:
            return False
        arrays.append(graph.constants[name])
    return have_shapes(kind, arrays)


def have_shapes(kind: str, arrays: list[Array]) -> bool:
    """Return whether arrays are float32 and fit W, R and optional B."""
    w, r = arrays[:2]
    if any(a.dtype != float32 for a in arrays) or not w.ndim == r.ndim == 3:
        return False
    ways, hidden = r.shape[0], r.shape[2]
    rows = len(GATES[kind]) * hidden
    fits = w.shape[:2] == (ways, rows) == r.shape[:2]
    return fits and all(b.shape == (ways, 2 * rows) for b in arrays[2:])
