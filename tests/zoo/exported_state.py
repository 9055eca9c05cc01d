"""What a file that PyTorch exported still holds of the model's ``state_dict``."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from burn import nn
from burn.nn import Module
from burn_import.frontends.onnx import read
from burn_import.provenance.weight_owners import is_dotted, is_key
from burn_ir.raw import RawGraph, RawNode
from tests.modules import Array

#: How the exporter calls the bias of a convolution with the normalization behind it.
_MERGED = re.compile(r"\.weight_bias$")


#: Where the classes of layers are.
LAYERS = frozenset(
    layer.__module__
    for layer in (getattr(nn, name) for name in dir(nn))
    if isinstance(layer, type)
) - {Module.__module__}


@dataclass(frozen=True)
class ExportedState:
    """Arrays by key in PyTorch's layout, and the modules that some node runs in."""

    arrays: Mapping[str, Array]
    modules: frozenset[str]


def exported_state(path: Path) -> ExportedState:
    """Return the keys that the names and scopes in the file at ``path`` tell.

    Names of stored arrays are keys. A layer's matrix is stored turned, without a name:
    it belongs to the module that the product runs in. A table that another module is
    tied to has the name of one of the two, and runs in the other.
    """
    model = read(path)
    stored = {**model.graph.constants, **model.graph.defaults}
    named = {
        name: array
        for name, array in stored.items()
        if is_key(model.producer, name) and (is_dotted(name) or array.size > 1)
    }
    arrays = {_MERGED.sub(".bias", name): array for name, array in named.items()}
    nodes = list(_nodes(model.graph))
    around = _wrapper(named, nodes)
    modules = frozenset(".".join((*around, *node.scope)) for node in nodes)
    for node in nodes:
        module = ".".join((*around, *node.scope))
        first = (*node.inputs, None)[0] or ""
        if node.op_type == "Gather" and _is_elsewhere(first, module, modules):
            arrays.setdefault(f"{module}.weight", stored[first])
        if module and node.op_type in ("MatMul", "Gemm"):
            second = node.inputs[1] or ""
            matrix = stored.get(second)
            if matrix is None or second in named or matrix.ndim != 2:
                continue
            matrix = matrix if node.attrs.get("transB") else matrix.T
            arrays.setdefault(f"{module}.weight", matrix)
    return ExportedState(arrays, modules)


def _wrapper(named: Iterable[str], nodes: Sequence[RawNode]) -> tuple[str, ...]:
    """Return the prefix of all names that no scope has: a wrapper's attribute."""
    starts = {name.partition(".")[0] for name in named}
    scopes = {node.scope[0] for node in nodes if node.scope}
    return tuple(starts) if len(starts) == 1 and starts.isdisjoint(scopes) else ()


def _is_elsewhere(table: str, module: str, modules: frozenset[str]) -> bool:
    """Return whether a named table is also read outside of its module, which runs."""
    own = table.removesuffix(".weight")
    return is_dotted(table) and own != module and {own, module} <= modules


def _nodes(graph: RawGraph) -> Iterator[RawNode]:
    for node in graph.nodes:
        yield node
        for value in node.attrs.values():
            if isinstance(value, RawGraph):
                yield from _nodes(value)


def _fits(a: Array, b: Array, whole: bool) -> bool:
    """Return whether two arrays agree in dtype, shape and, if ``whole``, content."""
    fits = a.dtype == b.dtype and a.shape == b.shape
    return fits and (not whole or np.array_equal(a, b))


def differences(model: Module, path: Path, twin: ExportedState | None) -> set[str]:
    """Return how the keys of ``model`` differ from what the file at ``path`` holds.

    ``missing KEY`` and ``other KEY`` (shape, or value) are keys that the file has, or
    its ``twin``, the same model by another exporter, which may have other values.
    ``more MODULE`` has an array that neither calls by a key: one that the code reads
    itself, or a layer where no node of the file runs. Numbers of modules are ``N``.
    """
    own = exported_state(path)
    expected = {**(twin.arrays if twin else {}), **own.arrays}
    results = {key: tensor.numpy() for key, tensor in model.state_dict().items()}
    layers = {name for name, m in model.modules() if type(m).__module__ in LAYERS}
    messages = set()
    for key, array in expected.items():
        if key not in results:
            messages.add(f"missing {key}")
        elif not _fits(results[key], array, key in own.arrays):
            messages.add(f"other {key}")
    for key in results.keys() - expected.keys():
        module = key.rpartition(".")[0]
        if module not in own.modules & layers:
            messages.add(f"more {module or 'the model'}")
    return {re.sub(r"(?<=[. ])\d+(?=\.|$)|(?<=\.)\d+$", "N", line) for line in messages}
