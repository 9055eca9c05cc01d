"""Forms of reductions and cumulative primitives."""

from typing import Any

from burn import ops
from burn.dtypes import bool_, is_float, is_integer
from burn_import.codegen.torch.registry import flag, form, refusal, torch_dtype
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply

#: The tensor method for each reduction.
METHODS = {
    "sum": "sum",
    "mean": "mean",
    "max": "amax",
    "min": "amin",
    "prod": "prod",
    "all": "all",
    "any": "any",
    "logsumexp": "logsumexp",
}


def _axes(r: TorchRenderer, call: Apply, axis: Any) -> Expression | None:
    """Return the axes of a reduction, None for all."""
    known = r.known(axis)
    if known is None:
        return None if axis is None else r.integers(axis)
    axes = list(known) if isinstance(known, list | tuple) else [known]
    return r.host(axes[0]) if len(axes) == 1 else r.host(tuple(axes))


def _sum_dtype(r: TorchRenderer, call: Apply) -> str | None:
    """Return the dtype argument of an integer sum, which PyTorch would widen."""
    target = call.targets[0].type
    dtype = r.dtype(call.args[0]) if target is None else target.dtype
    if dtype is None or is_float(dtype):
        return None
    name = torch_dtype(dtype)
    return None if name == "torch.int64" or not is_integer(dtype) else name


@form(ops.sum, ops.mean, ops.max, ops.min, ops.prod, ops.all, ops.any, ops.logsumexp)
def reduction(r: TorchRenderer, call: Apply) -> Expression:
    arguments, name = r.named_arguments(call), call.primitive.name
    x, axes = r.tensor(arguments["x"]), _axes(r, call, arguments["axis"])
    if axes is not None and axes.text == "()":  # no axis is reduced
        return x
    if name in ("max", "min") and 0 in (r.shape(arguments["x"]) or ()):
        raise refusal(call, f"PyTorch has no {name} of no elements")
    keywords: dict[str, Any] = {"keepdim": flag(arguments["keepdims"])}
    if name in ("sum", "prod"):
        keywords["dtype"] = _sum_dtype(r, call)
    has_several_axes = (
        axes is None or axes.text[:1] in "([" or not axes.text.lstrip("-").isdigit()
    )
    if (
        name in ("prod", "all", "any")
        and has_several_axes
        and (axes or arguments["keepdims"])
    ):
        given_axes = Expression("None") if axes is None else axes
        return r.call(f"_{name}", [x, given_axes], keywords)
    if name == "logsumexp" and axes is None or axes is None and arguments["keepdims"]:
        rank = r.rank(arguments["x"])
        if rank is None:
            raise refusal(call, "expected a known rank to reduce all axes")
        axes = r.static(tuple(range(rank)))
    args = [] if axes is None else [axes]
    return r.method_call(x, METHODS[name], args, keywords)


@form(ops.var)
def var(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    axes = _axes(r, call, arguments["axis"])
    correction = arguments["correction"]
    keywords: dict[str, Any] = {
        "correction": None if correction == 1 else literal(correction),
        "keepdim": flag(arguments["keepdims"]),
    }
    args = [Expression("None")] if axes is None and arguments["keepdims"] else []
    args = [axes] if axes is not None else args
    return r.method_call(r.tensor(arguments["x"]), "var", args, keywords)


@form(ops.reduce_l1, ops.reduce_l2)
def vector_norm(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    axes = _axes(r, call, arguments["axis"])
    dtype = r.dtype(arguments["x"])
    if dtype is not None and not is_float(dtype):
        raise refusal(call, f"expected a norm of floats, got {dtype}")
    keywords: dict[str, Any] = {
        "ord": "1" if call.primitive.name == "reduce_l1" else None,
        "dim": axes,
        "keepdim": flag(arguments["keepdims"]),
    }
    return r.call("torch.linalg.vector_norm", [r.tensor(arguments["x"])], keywords)


@form(ops.argmax, ops.argmin)
def argmax(r: TorchRenderer, call: Apply) -> Expression:
    arguments, name = r.named_arguments(call), call.primitive.name
    x = r.tensor(arguments["x"])
    axis = None if arguments["axis"] is None else r.integer(arguments["axis"])
    if r.dtype(arguments["x"]) == bool_:  # PyTorch has no argmax of booleans
        x = r.method_call(x, "int")
    keywords: dict[str, Any] = {"keepdim": flag(arguments["keepdims"])}
    if arguments["select_last"]:
        args = [x, axis or Expression("None")]
        return r.call(f"_last_{name}", args, keywords)
    return r.method_call(x, name, [axis] if axis else [], keywords)


@form(ops.cumsum, ops.cumprod)
def cumulative(r: TorchRenderer, call: Apply) -> Expression:
    arguments, name = r.named_arguments(call), call.primitive.name
    x, axis = r.tensor(arguments["x"]), r.integer(arguments["axis"])
    dtype = {"dtype": _sum_dtype(r, call)}
    if not (arguments["exclusive"] or arguments["reverse"]):
        return r.method_call(x, name, [axis], dtype)
    flags = {name: flag(arguments[name]) for name in ("exclusive", "reverse")}
    return r.call(f"_{call.primitive.name}", [x, axis], {**flags, **dtype})
