"""Judging the nodes of a graph one by one."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from onnx import NodeProto

from burn_ir import ModelError
from tests.conformance.run import built
from tests.fuzz.compare import difference
from tests.fuzz.contents import Contents
from tests.fuzz.generator import FuzzCase
from tests.fuzz.generator.builder import free_names
from tests.fuzz.not_finite import is_not_finite, not_finite_explanation
from tests.fuzz.passes import results
from tests.fuzz.shrink import part_of

#: Errors on operands that are not finite, as of a Range to NaN.
REFUSALS = (
    ArithmeticError,
    LookupError,
    MemoryError,
    ModelError,
    RuntimeError,
    TypeError,
    ValueError,
)


def are_differences_explained(case: FuzzCase, feeds: Mapping[str, Any]) -> bool:
    """Whether rules explain all nodes that differ from onnxruntime's, if any does.

    Each node runs alone, on what onnxruntime gives its operands for ``feeds``.
    """
    contents = Contents.of(case, [*case.feeds[:2], feeds])
    if contents is None:
        return False
    values = contents.runs[2]
    different = [node for node in case.model.graph.node if _differs(contents, node)]
    return bool(different) and all(
        not_finite_explanation(node, [values.get(n) for n in node.input])
        for node in different
    )


def _differs(contents: Contents, node: NodeProto) -> bool:
    """Whether a node with values that are not finite is not what onnxruntime gives."""
    values = contents.runs[2]
    names = [n for n in (*free_names([node]), *node.output) if n in values]
    if not any(is_not_finite(values[n]) for n in names):
        return False
    part = part_of(contents, [node])
    if part is None:
        return False
    outputs = [o.name for o in part.model.graph.output]
    noise = [10 * part.noise[name] for name in outputs]
    try:
        with tempfile.TemporaryDirectory() as folder:
            graph = built(part.model, Path(folder))
            got = results(graph, list(part.feeds[2].values()))
    except REFUSALS:
        return True
    return difference(got, [values[name] for name in outputs], noise) is not None
