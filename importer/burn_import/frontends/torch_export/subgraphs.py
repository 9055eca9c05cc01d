"""Subgraphs of a call: their results, and the operands they change in place."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from burn.record.errors import shown
from burn_import.frontends.torch_export.builder import Builder, Value
from burn_import.frontends.torch_export.registry import Entry
from burn_import.frontends.torch_export.schema import (
    Argument,
    SymbolRef,
    TensorRef,
    argument,
)
from burn_import.frontends.torch_export.value_table import Frame
from burn_ir import UnsupportedModel


def returned_values(frame: Frame) -> Iterator[Value]:
    """Yield the tensors and numbers that the graph of ``frame`` returns, in order.

    The items of lists are yielded one by one. None is skipped, since no result of the
    call corresponds to it.

    Raises:
        UnsupportedModel: the graph returns something else, such as a string.
    """
    for result in _flatten(argument(of) for of in frame.meta["outputs"]):
        if isinstance(result, TensorRef | SymbolRef):
            yield frame.value(result.name)
        elif isinstance(result, bool | int | float):
            dtype = np.dtype(type(result))
            yield Builder(frame.out, "number", []).constant(result, dtype)
        elif result is not None:
            raise UnsupportedModel(
                "expected a subgraph to return tensors and numbers, got "
                f"{shown(result)}"
            )


def _flatten(arguments: Iterable[Argument]) -> Iterator[Argument]:
    for item in arguments:
        if isinstance(item, list):
            yield from _flatten(item)
        else:
            yield item


def writes_inside(
    frame: Frame, names: Sequence[tuple[str, Argument]], entry: Entry
) -> list[tuple[str, Value]]:
    """Return the operands that a call's subgraph changed in place, with new values.

    Raises:
        UnsupportedModel: the graph is the body of a loop or a branch.
    """
    after = [(before.name, value) for before, value in frame.writes]
    frame.writes.clear()
    if after and not entry.is_inlined:
        raise UnsupportedModel(
            "the subgraph changes an operand in place; "
            "export after run_decompositions()"
        )
    refs = [ref.name for _, ref in names if isinstance(ref, TensorRef)]
    by_value = {frame.value(name).name: name for name in refs} if after else {}
    return [(by_value[name], value) for name, value in after if name in by_value]


def bind_changed(
    frame: Frame, results: Sequence[str], changed: Sequence[tuple[str, Value]]
) -> None:
    """Bind results of a ``torch.no_grad`` block that are operands changed in place.

    The block's other results are detached; such an operand keeps its gradient.
    """
    values = {value.name for _, value in changed}
    if not values:
        return
    sources = {
        node.outputs[0]: node.inputs[0]
        for node in frame.out.nodes
        if node.op_type in ("Detach", "Identity")
    }
    for name in results:
        source: str | None = frame.values[name].name
        while source in sources and source not in values:
            source = sources[source]
        if source in values:
            frame.values[name] = replace(frame.values[name], name=source)
