"""Running the source that is printed for a graph."""

from collections.abc import Sequence
from types import ModuleType
from typing import Any

from hypothesis import note

from burn.nn import Module
from burn_import.codegen.gate.gate import check_body
from burn_import.compiler import Source, compile_graph
from burn_import.options import Options
from burn_ir import Graph


def run_printed(graph: Graph, inputs: Sequence[Any]) -> list[Any]:
    """The results of the module printed for ``graph``, called with ``inputs``.

    No pass runs: some of them round otherwise, as where a factor is in the weights.
    """
    options = Options(passes=())
    source = compile_graph(graph, options, options.weights)
    note(source.text)
    model: Any = printed_model(source)
    result = model(*inputs)
    return list(result) if isinstance(result, tuple) else [result]


def printed_model(source: Source) -> Module:
    """The model of a printed module, with its weights."""
    module = ModuleType("printed")
    module.__file__ = "<printed>"
    check_body(source.text.encode())
    exec(compile(source.text, "<printed>", "exec"), module.__dict__)
    model: Module = getattr(module, source.class_name)()
    model.load_state_dict(dict(source.weights))
    return model
