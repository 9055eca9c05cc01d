"""The source of layers, and of the steps of an ``nn.Sequential``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from burn_import.structure import ModuleNode
from burn_import.structure.sequential import function_name, stateless_layer_of
from burn_import.tracing.identifiers import dtype_source, literal
from burn_import.tracing.trace import Forms
from burn_ir.graph import Graph, Node
from burn_ir.layers import layer_of
from burn_ir.op import Layer


def sequence_text(part: ModuleNode) -> str:
    """Return ``nn.Sequential(...)`` with layers at their numbers.

    Functions are between them.
    """
    steps: list[str] = []
    functions: list[Forms] = []
    for node in part.items:
        assert isinstance(node, Node)
        path = part.layer_paths.get(id(node))
        if path is None:
            forms = layer_forms(node, part.graph)
            functions.append(forms or ((f"ops.{function_name(node)}",),))
            continue
        layer = layer_of(part.graph, node)
        assert layer is not None
        part.layers[path] = layer
        steps += fill_steps(functions, int(path[-1]) - len(steps))
        steps.append(layer_text(layer))
        functions = []
    steps += fill_steps(functions, len(functions))
    return f"nn.Sequential({', '.join(steps)})"


def fill_steps(functions: Sequence[Forms], count: int) -> list[str]:
    """Return ``count`` steps, which compute ``functions``; the last are identities.

    A function that can be written as several modules is, if there is room.
    """
    spare = count - len(functions)
    texts: list[str] = []
    for forms in functions:
        form = max((f for f in forms if len(f) <= spare + 1), key=len)
        spare -= len(form) - 1
        texts += form
    return texts + ["nn.Identity()"] * spare


def layer_forms(node: Node, graph: Graph) -> Forms:
    """Return the modules without weights that compute a node, () if there are none."""
    layer = stateless_layer_of(node, graph)
    if layer is None:
        return ()
    if layer.name != "GlobalAvgPool":
        return ((layer_text(layer),),)
    x = graph.type(node.inputs[0])
    assert x is not None
    rank = x.rank - 2
    return (layer_text(layer),), (f"nn.AdaptiveAvgPool{rank}d(1)", "nn.Flatten()")


def layer_text(layer: Layer) -> str:
    """Return the constructor call of a layer: ``nn.Conv2d(3, 8, kernel_size=3)``."""
    args = [_argument(arg) for arg in layer.args]
    args += [f"{name}={_argument(value)}" for name, value in layer.options.items()]
    return f"nn.{layer.name}({', '.join(args)})"


def _argument(value: Any) -> str:
    return dtype_source(value) if isinstance(value, np.dtype) else literal(value)
