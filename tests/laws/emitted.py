"""Running the source that is printed for a graph."""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest

from burn import Tensor
from burn_ir import Graph

NEEDED = ("burn_import.compiler", "burn_import.options", "burn_import.passes")


def run_printed(graph: Graph, inputs: Sequence[Tensor]) -> list[Tensor]:
    """The results of the module printed for ``graph``, called with ``inputs``."""
    for name in NEEDED:
        if find_spec("burn_import") is None or find_spec(name) is None:
            pytest.skip(f"{name} is not there")
    compiler: Any = import_module("burn_import.compiler")
    load: Any = getattr(compiler, "load_graph", None)
    if load is None:
        pytest.skip("burn_import.compiler cannot load what it prints")
    result = load(graph)(*inputs)
    return list(result) if isinstance(result, tuple) else [result]
