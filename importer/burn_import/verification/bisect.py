"""Localisation of the first node whose results differ from another engine's.

Every node gets the operands that the other engine computed, so that an error appears
only at the node that causes it. If all nodes agree, the simplification or the emission
is wrong, and prefixes of the pass list are tried.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from burn.tensor import Tensor, tensor
from burn_import.verification.session import difference, run_model


@dataclass(frozen=True)
class Divergence:
    """The first difference: a node, or a pass.

    ``kind`` is ``"node"``, ``"pass"``, ``"module"`` (its source or weights) or
    ``"unknown"``; ``output`` is the value that differs, ``difference`` its
    deviation.
    """

    kind: str
    name: str
    operator: str = ""
    output: str = ""
    difference: float = 0.0

    def __str__(self) -> str:
        if self.kind == "node":
            shown = f"node {self.name!r} ({self.operator}), value {self.output!r}"
            return f"{shown}: differs by {self.difference:.2g}"
        return {
            "pass": f"every node agrees; pass {self.name!r} changes the results",
            "module": "the file agrees when it is imported; the module differs: its "
            "source or its weights were changed",
        }.get(
            self.kind,
            "every node agrees on equal operands, and results differ without passes "
            "too: rounding may add up with these inputs; pass others with --inputs",
        )


def bisect(
    path: Path,
    reference: Path,
    inputs: Mapping[str, Any],
    tolerance: float,
    *,
    is_module: bool = False,
) -> Divergence:
    """Return where the import of ``path`` first differs from ``reference``."""
    from burn_import.frontends.onnx import read
    from burn_ir import build

    graph = build(read(path))
    values = all_values(reference, inputs)
    node = _first_node(graph, values, tolerance)
    if node is not None:
        return node
    if is_module:
        from burn_import.loading import load

        if _agrees(load(path), inputs, values, graph.results, tolerance):
            return Divergence("module", "")
    return _first_pass(path, inputs, values, graph.results, tolerance)


def all_values(path: Path, inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the inputs and every value of the top graph by name, as arrays."""
    model = onnx.load(str(path))
    names = [output.name for output in model.graph.output]
    seen = {*names, *(t.name for t in model.graph.initializer)}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in seen:
                seen.add(name)
                names.append(name)
                model.graph.output.append(onnx.ValueInfoProto(name=name))
    results, _ = run_model(model, inputs, is_optimized=False)
    return {**inputs, **dict(zip(names, results, strict=True))}


def _first_node(
    graph: Any, values: Mapping[str, Any], tolerance: float
) -> Divergence | None:
    """Return the first node with other results from the same operands."""
    from burn_ir.evaluate import run_node

    own: dict[str, Any] = {}
    for node in graph.nodes:
        operands = [_operand(name, graph, values, own) for name in node.inputs]
        try:
            results = run_node(node, operands)
        except (ValueError, TypeError, IndexError) as error:
            label, kind = node.name or "?", node.op.onnx
            return Divergence("node", label, kind, str(error), float("inf"))
        own |= dict(zip(node.outputs, results, strict=False))
        for name, result in zip(node.outputs, results, strict=False):
            if name not in values or not node.op.deterministic:
                continue
            distance = _difference(result, values[name])
            if not distance <= tolerance:
                label = node.name or name
                return Divergence("node", label, node.op.onnx, name, distance)
    return None


def _operand(
    name: str | None, graph: Any, values: Mapping[str, Any], own: Mapping[str, Any]
) -> Any:
    """Return the other engine's value of an operand, else this engine's."""
    if name is None:
        return None
    if name in values:
        return _as_tensor(values[name])
    if name in own:
        return own[name]
    name = graph.defaults.get(name, name)
    return tensor(graph.constants[name]) if name in graph.constants else None


def _as_tensor(value: Any) -> Any:
    if isinstance(value, list):
        return [_as_tensor(item) for item in value]
    if value is None:
        return None
    array = np.asarray(value)
    return tensor(array.astype(object) if array.dtype.kind in "US" else array)


def _difference(result: Any, expected: Any) -> float:
    if isinstance(result, list | tuple):
        return difference([_plain(item) for item in result], expected or [])
    return 0.0 if result is None else difference(_plain(result), expected)


def _plain(value: Any) -> Any:
    return value.numpy() if isinstance(value, Tensor) else value


def _first_pass(
    path: Path,
    inputs: Mapping[str, Any],
    values: Mapping[str, Any],
    outputs: Sequence[str],
    tolerance: float,
) -> Divergence:
    """Return the pass after which results differ, if they agree without passes."""
    from burn_import.loading import load
    from burn_import.options import Options
    from burn_import.passes import OPTIONAL_PASSES, pass_names

    asked = {apply.__name__ for apply in OPTIONAL_PASSES}
    names = [name for name in pass_names() if name not in asked]
    low, high = 0, len(names)  # the first `low` agree, the first `high` do not
    if not _agrees(load(path, Options(passes=())), inputs, values, outputs, tolerance):
        return Divergence("unknown", "")
    while high - low > 1:
        middle = (low + high) // 2
        model = load(path, Options(passes=tuple(names[:middle])))
        if _agrees(model, inputs, values, outputs, tolerance):
            low = middle
        else:
            high = middle
    return Divergence("pass", names[high - 1])


def _agrees(
    model: Any,
    inputs: Mapping[str, Any],
    values: Mapping[str, Any],
    outputs: Sequence[str],
    tolerance: float,
) -> bool:
    result = model(*(_as_tensor(array) for array in inputs.values()))
    results = result if isinstance(result, tuple) else (result,)
    pairs = zip(results, outputs, strict=True)
    return all(_difference(r, values[name]) <= tolerance for r, name in pairs)
