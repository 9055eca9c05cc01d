"""Forms of indexing, gathering and scattering primitives."""

from typing import Any

from burn import Tensor, ops
from burn_import.codegen.torch.registry import form, refusal, unless
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.expression import ATOM, Expression, merge
from burn_import.tracing.scalar_operands import is_listable
from burn_import.tracing.trace import Apply


@form(ops.getitem)
def getitem(r: TorchRenderer, call: Apply) -> Expression:
    """Return ``x[key]``; negative steps need a helper."""
    key = call.args[1]
    parts = list(key) if isinstance(key, tuple) else [key]
    backwards = [_is_backwards(part) for part in parts]
    tensors = [n for n, p in enumerate(parts) if _is_index(p)]
    integers = [n for n, p in enumerate(parts) if isinstance(p, int)]
    if tensors and integers and not isinstance(key, int):
        # NumPy counts an integer among the index arrays, PyTorch does not.
        positions = sorted(tensors + integers)
        if positions != list(range(positions[0], positions[-1] + 1)):
            raise refusal(call, "expected indices side by side, got a slice between")
    if not any(backwards):
        return r.index(call)
    if any(not isinstance(p, slice) and p is not Ellipsis for p in parts):
        raise refusal(call, "expected slices alone beside a step backwards")
    return _slice(r, call, parts)


def _is_backwards(part: Any) -> bool:
    step = part.step if isinstance(part, slice) else None
    return isinstance(step, Tensor) or (isinstance(step, int) and step < 0)


def _is_index(part: Any) -> bool:
    if isinstance(part, Tensor):
        shape = None if part.data.type is None else part.data.type.shape
        return shape is None or len(shape) > 0
    return isinstance(part, list)


def _slice(r: TorchRenderer, call: Apply, parts: list[Any]) -> Expression:
    x = r.tensor(call.args[0])
    texts: list[Expression] = []
    for part in parts:
        if part is Ellipsis:
            texts.append(Expression("..."))
            continue
        bounds = [
            Expression("None") if b is None else r.integer(b)
            for b in (part.start, part.stop, part.step)
        ]
        text = ", ".join(b.text for b in bounds)
        texts.append(Expression(f"slice({text})", ATOM, merge(bounds)))
    return r.call("_slice", [x, *texts])


@form(ops.slice)
def slice_(r: TorchRenderer, call: Apply) -> Expression:
    """Return the helper for slices with bounds computed at run time."""
    arguments = r.named_arguments(call)
    starts, ends = (r.integers(arguments[name]) for name in ("starts", "ends"))
    keywords = {
        theirs: None if arguments[ours] is None else r.integers(arguments[ours])
        for ours, theirs in (("axes", "dims"), ("steps", "steps"))
    }
    return r.call("_slice_axes", [r.tensor(arguments["x"]), starts, ends], keywords)


@form(ops.take)
def take(r: TorchRenderer, call: Apply) -> Expression:
    """Return ``x[:, indices]``."""
    arguments = r.named_arguments(call)
    x, axis, indices = r.tensor(arguments["x"]), arguments["axis"], arguments["indices"]
    rank = r.rank(arguments["x"])
    if axis < 0 and rank is not None:
        axis += rank
    chosen = _indices(r, indices)
    before = ":, " * axis if axis >= 0 else "..., "
    behind = ", :" * (-axis - 1) if axis < 0 else ""
    text = f"{x.inside(ATOM)}[{before}{chosen.text}{behind}]"
    return Expression(text, ATOM, x.symbols + chosen.symbols)


def _indices(r: TorchRenderer, indices: Any) -> Expression:
    """Return indices as a list of numbers if few and known, else as a tensor."""
    if isinstance(indices, Tensor) and not r.is_named(indices):
        known = indices.data.known
        if known is not None and is_listable(known) and known.size:
            return r.host(known.tolist())
    return r.data(indices) if isinstance(indices, Tensor) else r.host(indices)


@form(ops.embedding)
def embedding(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    keywords = {
        "padding_idx": unless(arguments["padding_idx"], None),
        "scale_grad_by_freq": unless(arguments["scale_grad_by_freq"], False),
    }
    args = [r.tensor(arguments["indices"]), r.tensor(arguments["weight"])]
    return r.call("F.embedding", args, keywords)


@form(ops.gather_elements)
def gather_elements(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [
        r.tensor(arguments["x"]),
        r.integer(arguments["axis"]),
        r.tensor(arguments["indices"]),
    ]
    return r.call("_gather", args)


@form(ops.gather_nd)
def gather_nd(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    keywords = {"batch_dims": unless(arguments["batch_dims"], 0)}
    args = [r.tensor(arguments["x"]), r.tensor(arguments["indices"])]
    return r.call("_gather_nd", args, keywords)


@form(ops.scatter_elements)
def scatter_elements(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [
        r.tensor(arguments["x"]),
        r.integer(arguments["axis"]),
        r.tensor(arguments["indices"]),
        r.tensor(arguments["updates"]),
    ]
    keywords = {"reduction": unless(arguments["reduction"], "none")}
    return r.call("_scatter", args, keywords)


@form(ops.scatter_nd)
def scatter_nd(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [r.tensor(arguments[name]) for name in ("x", "indices", "updates")]
    keywords = {"reduction": unless(arguments["reduction"], "none")}
    return r.call("_scatter_nd", args, keywords)


@form(ops.nonzero)
def nonzero(r: TorchRenderer, call: Apply) -> Expression:
    return r.call("_nonzero", [r.tensor(call.args[0])])


@form(ops.compress)
def compress(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [r.tensor(arguments["x"]), r.tensor(arguments["condition"])]
    return r.call("_compress", args, {"dim": unless(arguments["axis"], None)})


@form(ops.trilu)
def trilu(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    k = r.integer(arguments["k"])
    keywords = {"diagonal": None if k.text == "0" else k}
    head = "torch.triu" if arguments["upper"] else "torch.tril"
    return r.call(head, [r.tensor(arguments["x"])], keywords)


@form(ops.extend_cache)
def extend_cache(r: TorchRenderer, call: Apply) -> Expression:
    *tensors, length = call.args
    args = [*(r.tensor(arg) for arg in tensors), r.integer(length)]
    return r.call("_extend_cache", args)


@form(ops.tensor_scatter)
def tensor_scatter(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [r.tensor(arguments["cache"]), r.tensor(arguments["update"])]
    if arguments["starts"] is not None:
        args.append(r.tensor(arguments["starts"]))
    keywords = {
        "dim": unless(arguments["axis"], -2),
        "circular": unless(arguments["circular"], False),
    }
    return r.call("_tensor_scatter", args, keywords)
