"""Running the source that is printed for a graph."""

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Any

import pytest

from burn import Tensor
from burn_ir import Graph


def run_printed(graph: Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The results of the module printed for ``graph``, called with ``inputs``."""
    if find_spec("burn_import.compiler") is None:
        pytest.skip("burn_import.compiler is not there")
    from burn_import import compiler  # type: ignore[attr-defined,unused-ignore]

    load: Any = compiler.load_graph
    result = load(graph)(*inputs)
    return list(result) if isinstance(result, tuple) else [result]
