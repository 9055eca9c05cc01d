"""Views that share memory with their source, and inverses of views."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from burn_import.frontends.torch_export.builder import Value
from burn_import.frontends.torch_export.rule_calls import rule_of
from burn_import.frontends.torch_export.value_table import inverse_view
from burn_import.frontends.torchscript.node_writer import NodeWriter
from burn_import.frontends.torchscript.operators.builtins import AtenCall, OperatorCalls
from burn_import.frontends.torchscript.values import TensorRef

#: Views of the same elements in the same order.
_SHAPES = frozenset(
    {*("view", "reshape", "flatten", "unflatten", "view_as", "reshape_as")}
)
#: Views with repeated elements, which cannot be written back.
REPEATED = frozenset({"expand", "expand_as"})
_ORDERED = _SHAPES | {*("unsqueeze", "squeeze", "detach", "alias")}


def copies(name: str, source: TensorRef) -> bool:
    """Return whether an operator that may return a view copies here."""
    return name.startswith("unsafe_") or (name == "contiguous" and not source.in_order)


def stays_in_order(name: str, args: Mapping[str, Any], source: TensorRef) -> bool:
    """Return whether the elements of a view are contiguous in memory."""
    along = name in ("select", "slice", "narrow") and args.get("dim", 0) == 0
    plain = along and args.get("step", 1) == 1
    return source.in_order and (plain or name in _ORDERED)


def undoing(
    calls: OperatorCalls, view: AtenCall, source: TensorRef
) -> Callable[[Value, Value], Value] | None:
    """Return a function that writes a changed view back to its source.

    It maps the source before and the changed view to the source after. None if the view
    may not share the source's memory, or has no inverse.
    """
    if view.name in _ORDERED and not source.in_order:
        return None
    if _inverse(calls, view, source, source.current, source.current) is None:
        return None

    def undo(before: Value, changed: Value) -> Value:
        inverse = _inverse(calls, view, source, before, changed)
        assert inverse is not None
        target, args = inverse
        results = [Value("", before.dtype, before.dims)]
        values = [x for x in (args["self"], args.get("src")) if x is not None]
        entry = rule_of(target, [*values, *results])
        (base,) = calls.writer.apply(entry, view.origin, results, args)
        assert base is not None
        return base

    return undo


def redoing(
    calls: OperatorCalls, view: AtenCall, results: Sequence[Value | None], value: Value
) -> Callable[[Value], Value]:
    """Return a function that applies the view to another value of its source.

    ``value`` selects one of the view's ``results``.
    """
    types = [x or value for x in results]
    index = next(i for i, x in enumerate(types) if x.name == value.name)
    last: tuple[NodeWriter, str, Value] | None = None

    def redo(base: Value) -> Value:
        nonlocal last
        if last is None or last[0] is not calls.writer or last[1] != base.name:
            args = {**view.args, "self": base}
            entry = rule_of(view.target, [*args.values(), types[0]])
            again = calls.writer.apply(entry, view.origin, types, args)[index]
            assert again is not None
            last = calls.writer, base.name, again
        return last[2]

    return redo


def _inverse(
    calls: OperatorCalls,
    view: AtenCall,
    source: TensorRef,
    before: Value,
    changed: Value,
) -> tuple[str, Mapping[str, Any]] | None:
    """Return the call that writes a changed view back, None if there is none.

    Squeezed and unsqueezed axes need no extents, which may be computed.
    """
    args, base = view.args, source.current
    if view.name in _SHAPES:
        size = calls.size(view.origin, TensorRef(base))
        return "aten.view.default", {"self": changed, "size": size}
    if view.name == "unsqueeze":
        axis = args["dim"] % (base.rank + 1)
        return "aten.squeeze.dim", {"self": changed, "dim": axis}
    if view.name == "squeeze":
        if not isinstance(args.get("dim"), int):
            return None
        dim = base.axis(args["dim"])
        return "aten.unsqueeze.default", {"self": changed, "dim": dim}
    if view.name == "narrow":
        return _narrow(args, before, changed)
    if view.name == "as_strided":  # indexes the memory, not the source
        return None
    rest = {key: value for key, value in args.items() if key != "self"}
    return inverse_view(view.target, rest, before, changed)


def _narrow(
    args: Mapping[str, Any], before: Value, changed: Value
) -> tuple[str, Mapping[str, Any]] | None:
    start, length = args["start"], args["length"]
    if not isinstance(start, int) or not isinstance(length, int) or start < 0:
        return None
    ends = {"dim": args["dim"], "start": start, "end": start + length}
    return "aten.slice_scatter.default", {"self": before, "src": changed, **ends}
