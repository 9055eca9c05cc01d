"""``python -m tests.importer.aten.names``: adds PyTorch's operators to ``names.json``.

It needs PyTorch: its core operators, and those in the exports of all layers and
functions that the opt-in tests compare.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from burn_import.frontends.torch_export.aten import COMPLEX, RULES
from tests.importer.aten.torch_functions import functions
from tests.importer.aten.torch_layers import layers
from tests.importer.aten.torch_programs import module

#: In the schemas of overloads that no program of ``torch.export`` calls.
_LEFT_OUT = (
    r"Dimname|Generator|hacked_twin|\.prim_|\.a\(|deprecated|Dict\(|\.\.\.|int\[\]\(a"
    r"|aten::copy_\.(Tensor|int|float)|aten::split\("
)
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


def overloads() -> Iterator[str]:
    """Yield the overloads on tensors of the operators that have a rule.

    Those that write into arguments named ``out``, read names of dimensions, draw with
    a generator, or exist for TorchScript alone are left out.
    """
    import torch

    known = {name.split(".")[1] for name in {**RULES, **COMPLEX} if name[:5] == "aten."}
    for name in sorted(known):
        packet = getattr(torch.ops.aten, name, None)
        for overload in packet.overloads() if packet is not None else ():
            schema = str(getattr(packet, overload)._schema)
            given, _, returned = schema.partition(" -> ")
            is_of_tensors = "Tensor" in given and "Tensor" in returned
            has_out = given.count("!)") > ("(a!) self" in given)
            if is_of_tensors and not has_out and not re.search(_LEFT_OUT, schema):
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
        more = set(overloads()) | set(names.get("overloads", ()))
    others = (others | set(names["exported"])) - base
    content = {
        "torch": names["torch"],
        "core": sorted(base),
        "exported": sorted(others),
        "overloads": sorted(more - others - base),
    }
    NAMES.write_text(json.dumps(content, indent=1), "utf-8")


if __name__ == "__main__":
    main()
