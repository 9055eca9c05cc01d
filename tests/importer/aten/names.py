"""``python -m tests.importer.aten.names``: adds PyTorch's operators to ``names.json``.

It needs PyTorch: its core operators, and those in the exports of all layers and
functions that the opt-in tests compare.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.importer.aten.torch_functions import functions
from tests.importer.aten.torch_layers import layers
from tests.importer.aten.torch_programs import module

NAMES = Path(__file__).with_name("names.json")


def core() -> Iterator[str]:
    """Yield the operators that PyTorch tags as core."""
    import torch

    for schema in torch._C._jit_get_all_schemas():
        family, _, name = schema.name.partition("::")
        overload = schema.overload_name or "default"
        packet = getattr(torch.ops.aten, name, None) if family == "aten" else None
        op = getattr(packet, overload, None)
        if op is not None and torch.Tag.core in op.tags:
            yield f"aten.{name}.{overload}"


def exported() -> Iterator[str]:
    """Yield the operators in the exports, before and after decomposition."""
    import torch

    for _, function, samples in (*layers(), *functions()):
        shapes = tuple({0: torch.export.Dim.AUTO} for _ in samples)
        result = module(function)
        kept = shapes if result is function else (shapes,)
        program = torch.export.export(
            result.eval(), samples, dynamic_shapes=kept, strict=False
        )
        for graph in (program, program.run_decompositions()):
            yield from calls(graph.graph_module)


def calls(graph_module: Any) -> Iterator[str]:
    """Yield the targets of the calls in a graph and its subgraphs."""
    for part in graph_module.modules():
        for node in getattr(getattr(part, "graph", None), "nodes", ()):
            if node.op == "call_function" and hasattr(node.target, "_schema"):
                yield str(node.target)


def main() -> None:
    """Write the names, including those known so far."""
    names = json.loads(NAMES.read_text("utf-8"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        base, others = set(core()), set(exported())
    others = (others | set(names["exported"])) - base
    content = {
        "torch": names["torch"],
        "core": sorted(base),
        "exported": sorted(others),
    }
    NAMES.write_text(json.dumps(content, indent=1), "utf-8")


if __name__ == "__main__":
    main()
