"""The types of inputs as the decorator of the model's ``__call__`` declares them."""

from __future__ import annotations

import re
from collections.abc import Sequence

from burn import dtypes
from burn_import.source.names import literal
from burn_ir.containers import kind_of
from burn_ir.dim import Dim
from burn_ir.graph import Graph
from burn_ir.types import is_unnamed

#: Extents that stand in a declaration: a formula or a longer name becomes ``?``.
_NAME = re.compile(r"[A-Za-z_]\w{0,39}", re.ASCII)


def input_checks(graph: Graph, names: Sequence[str]) -> list[str]:
    """Return the arguments of ``nn.check_inputs``: ``image="float32[batch, 3]"``.

    ``names`` are the parameters for the inputs of ``graph``. Sequences, maps and
    optional values are not checked.
    """
    checks = []
    for name, value in zip(names, graph.given, strict=True):
        known = graph.type(value)
        if known is None or kind_of(known) != "tensor":
            continue
        shape = known.shape
        extents = "..." if shape is None else ", ".join(map(_extent, shape))
        text = f"{dtypes.name_of(known.dtype)}[{extents}]"
        checks.append(f"{name}={literal(text)}")
    return checks


def _extent(dim: Dim) -> str:
    if isinstance(dim, int):
        return str(dim)
    text = str(dim)
    return text if _NAME.fullmatch(text) and not is_unnamed(dim) else "?"
