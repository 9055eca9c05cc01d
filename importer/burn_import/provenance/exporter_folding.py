"""Detection of arrays that PyTorch's exporters computed from parameters."""

import re
from collections.abc import Iterator, Mapping

from burn.dtypes import is_float
from burn_import.provenance.exporter_names import is_leftover
from burn_import.provenance.weight_owners import (
    has_unequal_elements,
    is_authored,
    is_key,
    original,
)
from burn_ir.graph import Graph
from burn_ir.layers import layer_of
from burn_ir.op import Layer

#: Names of ``torch.export`` for weights in another layout, and of older exporters for
#: folded arrays. PyTorch 0.4 and 1.0 number all arrays, which tells nothing.
_LAYOUT = re.compile(
    r"(val|var|node|initializer|constant|t|transpose|permute|view|reshape|contiguous|"
    r"clone|unsqueeze|squeeze|to_copy|_to_copy)(_\d+)*$|.*\d{2}_?$|\d+$"
)


def is_folded(graph: Graph, constant: str) -> bool:
    """Return whether PyTorch's exporter computed a constant by folding.

    The other arrays in its files have the author's keys, or are numbers in the code. In
    files without keys nothing counts as folded, nor does an operand that is defined as
    a parameter.
    """
    constants, name = graph.constants, original(graph, constant)
    if constant in constants.learned:
        return False
    if constants.trained or name in constants.literals:
        return False
    if not is_float(constants[name].dtype) or is_authored(graph, constant):
        return False
    return graph.producer.startswith("pytorch") and _has_keys(graph)


def _has_keys(graph: Graph) -> bool:
    """Return whether the file's names distinguish keys from computed arrays."""
    constants = graph.constants
    if constants.has_keys is None:
        computed = {*constants.literals, *constants.source, *constants.recipes}
        stored = (n for n in constants if n not in computed)
        floats = (n for n in stored if is_float(constants[n].dtype))
        constants.has_keys = any(
            is_key(graph.producer, n) or n.startswith("onnx::") or is_computed(n)
            for n in floats
        )
    return constants.has_keys


def is_module(graph: Graph, layer: Layer, weights: Mapping[str, str]) -> bool:
    """Return whether constants, by parameter name, are those of a PyTorch module.

    The names and shapes must be those of the module's parameters, in a module of the
    author's. A function of an author's parameters (``F.linear(x, self.weight_ih)``) has
    other names. The exporter's fused convolution and normalization has names that end
    in ``weight_bias``; quantizers append to the name of the weight.
    """
    if not graph.producer.startswith("pytorch"):
        return True
    for parameter, constant in weights.items():
        name = original(graph, constant)
        ends = (f".{parameter}", f".weight_{parameter}")
        is_parameter = name.endswith(ends)
        if parameter in ("scale", "zero_point"):
            is_parameter |= ".weight_" in name
        if is_authored(graph, constant) and not is_parameter:
            return False
        if parameter in ("weight", "bias") and _has_other_shape(graph, constant):
            return False
        if parameter == "weight" and _is_computed_weight(graph, layer, constant):
            return False
    return True


def _has_other_shape(graph: Graph, constant: str) -> bool:
    """Return whether a constant is an author's tensor in another shape."""
    first = graph.constants[original(graph, constant)]
    return (
        is_authored(graph, constant) and graph.constants[constant].shape != first.shape
    )


def _is_computed_weight(graph: Graph, layer: Layer, constant: str) -> bool:
    """Return whether a layer's weight was computed from the author's tensors.

    Exporters rename a matrix that they transpose, and a kernel with folded batch
    normalization: these stay layers, as does a group normalization, whose scale they
    store with axes of extent 1. The scale of another norm keeps its name unless it was
    computed; ``torch.export`` names computed arrays after their operator.
    """
    if not is_folded(graph, constant):
        return False
    array = graph.constants[constant]
    first = graph.constants[original(graph, constant)]
    if layer.name == "GroupNorm" and first.shape[1:] and first.size == len(first):
        return False
    if layer.name.endswith("Norm"):
        return has_unequal_elements(array)
    return is_computed(original(graph, constant))


def is_computed(name: str) -> bool:
    """Return whether a name is that of an operator which computes new numbers."""
    return is_leftover(name) and not _LAYOUT.match(name)


def folding_notes(graph: Graph) -> tuple[str, ...]:
    """Return a note for the docstring if folded arrays are read, else ()."""
    names = list(dict.fromkeys(_folded_arrays(graph)))
    if not names:
        return ()
    shown = ", ".join(names[:_SHOWN]) + (", ..." if len(names) > _SHOWN else "")
    return (
        f"The exporter folded parameters into constants (in {shown}). Fine-tuning does "
        "not update the original parameters. To keep them, export as .pt2 or with "
        "torch.onnx.export(..., optimize=False); with dynamo=False, the options are "
        "training=TrainingMode.PRESERVE, do_constant_folding=False.",
    )


#: The most arrays that a note names.
_SHOWN = 3


def _folded_arrays(graph: Graph) -> Iterator[str]:
    """Yield the folded arrays of a graph, each by the module or node that reads it."""
    for node in graph.nodes:
        layer = layer_of(graph, node)
        for position, name in enumerate(node.inputs):
            if name is None or name in graph.types or name not in graph.constants:
                continue
            if _is_computed_here(graph, name, layer, position):
                yield ".".join(node.scope) or node.name or node.op.onnx


def _is_computed_here(
    graph: Graph, name: str, layer: Layer | None, position: int
) -> bool:
    """Return whether an operand was folded, not only transposed."""
    if layer is not None and position in layer.weights.values():
        if layer.name.startswith("Conv"):
            first = original(graph, name)
            return is_folded(graph, name) or f"{first}_bias" in graph.constants
        return _is_computed_weight(graph, layer, name)
    return is_folded(graph, name) and has_unequal_elements(graph.constants[name])
