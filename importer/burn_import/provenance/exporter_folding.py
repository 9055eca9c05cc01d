"""Tell what PyTorch's exporters computed from parameters, and say so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from burn.dtypes import is_float
from burn_import.provenance.exporter_names import is_leftover
from burn_import.provenance.weight_owners import is_authored, is_key, original
from burn_ir.error_context import error_context
from burn_ir.graph import Graph
from burn_ir.op import Layer

#: What ``torch.export`` calls a weight in another layout, and others before folding.
_LAYOUT = re.compile(
    r"(val|var|node|initializer|constant|t|transpose|permute|view|reshape|contiguous|"
    r"clone|unsqueeze|squeeze|to_copy|_to_copy)(_\d+)*$|.*\d{2}_?$"
)


def is_folded(graph: Graph, constant: str) -> bool:
    """Whether PyTorch's exporter computed a stored array, maybe from parameters.

    The other arrays in its files have the author's keys, or are numbers in the code.
    A file without keys says nothing of its arrays.
    """
    constants, name = graph.constants, original(graph, constant)
    if constants.trained or name in constants.literals:
        return False
    if not is_float(constants[name].dtype) or is_authored(graph, constant):
        return False
    return graph.producer.startswith("pytorch") and _has_keys(graph)


def _has_keys(graph: Graph) -> bool:
    """Whether arrays of the file have names that tell keys from what was computed."""
    constants = graph.constants
    if constants.has_keys is None:
        made = {*constants.literals, *constants.source, *constants.recipes}
        stored = (n for n in constants if n not in made)
        floats = (n for n in stored if is_float(constants[n].dtype))
        constants.has_keys = any(
            is_key(graph.producer, n) or n.startswith("onnx::") or is_computed(n)
            for n in floats
        )
    return constants.has_keys


def is_module(graph: Graph, layer: Layer, weights: Mapping[str, str]) -> bool:
    """Whether stored weights, by parameter, are those of a module of PyTorch's.

    Its parameters have the names and shapes that they have here, and are in a module
    of the author's. A function of an author's own
    parameters (``F.linear(x, self.weight_ih)``) does the same with others. What the
    exporter makes of a convolution and the normalisation after it ends in
    ``weight_bias``.
    """
    if not graph.producer.startswith("pytorch"):
        return True
    for parameter, constant in weights.items():
        name = original(graph, constant)
        path, _, leaf = name.rpartition(".")
        alike = leaf in (parameter, f"weight_{parameter}")
        if is_authored(graph, constant) and not (alike and path):
            return False
        if parameter in ("weight", "bias") and _has_other_shape(graph, constant):
            return False
        if parameter == "weight" and _is_function(graph, layer, constant):
            return False
    return True


def _has_other_shape(graph: Graph, constant: str) -> bool:
    """Whether a constant is an author's tensor in a shape that is not the author's."""
    first = graph.constants[original(graph, constant)]
    return (
        is_authored(graph, constant) and graph.constants[constant].shape != first.shape
    )


def _is_function(graph: Graph, layer: Layer, constant: str) -> bool:
    """Whether a layer's weight is what an exporter computed from the author's.

    Exporters rename a matrix that they transpose, and a kernel that they fold a batch
    normalization into: these stay layers, as does a group normalization, whose scale
    they store with axes of one element. The scale of another norm keeps its name unless
    something was computed, and ``torch.export`` calls after its operator what was.
    """
    if not is_folded(graph, constant):
        return False
    array = graph.constants[constant]
    first = graph.constants[original(graph, constant)]
    if layer.name == "GroupNorm" and first.shape[1:] and first.size == len(first):
        return False
    if layer.name.endswith("Norm"):
        return bool((array != array.reshape(-1)[:1]).any())
    return is_computed(original(graph, constant))


def is_computed(name: str) -> bool:
    """Whether a name is that of an operator which computes new numbers."""
    return is_leftover(name) and not _LAYOUT.match(name)


def folding_notes(graph: Graph) -> tuple[str, ...]:
    """Return a note for the docstring if the exporter computed arrays that are read."""
    names = list(dict.fromkeys(_computed(graph)))
    if not names:
        return ()
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return (
        f"The exporter folded parameters into constants (in {shown}). Fine-tuning does "
        "not update the original parameters. To keep them, export with "
        "torch.onnx.export(..., training=TrainingMode.PRESERVE, "
        "do_constant_folding=False) or as .pt2.",
    )


#: So many arrays are named in a note.
_SHOWN = 3


def _computed(graph: Graph) -> Iterator[str]:
    """The folded arrays of a graph, each by the module or node that reads it."""
    for node in graph.nodes:
        types = [graph.type(name) for name in node.inputs]
        with error_context(node, graph.opsets):
            layer = node.op.layer(*types)
        for position, name in enumerate(node.inputs):
            if name is None or name in graph.types or name not in graph.constants:
                continue
            if _is_computed_here(graph, name, layer, position):
                yield ".".join(node.scope) or node.name or node.op.onnx


def _is_computed_here(
    graph: Graph, name: str, layer: Layer | None, position: int
) -> bool:
    """Whether an operand was folded, and not only turned as matrices are."""
    if layer is not None and position in layer.weights.values():
        if layer.name.startswith("Conv"):
            first = original(graph, name)
            return is_folded(graph, name) or f"{first}_bias" in graph.constants
        return _is_function(graph, layer, name)
    array = graph.constants[name]
    if array.size < 2 or not is_folded(graph, name):
        return False
    return bool((array != array.reshape(-1)[:1]).any())
