"""Forms of primitives that rearrange elements."""

from typing import Any

from burn import Tensor, ops
from burn_import.codegen.torch.registry import (
    form,
    has_parameter_numbers,
    refusal,
    unless,
)
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.expression import ATOM, Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply
from burn_ir.dim import Poly


def _as_arguments(shape: Expression) -> Expression:
    """Return the elements of a tuple as separate arguments."""
    if shape.text[:1] in "([" and shape.text not in ("()", "[]"):
        return Expression(shape.text[1:-1].rstrip(","), 0, shape.symbols)
    return shape


@form(ops.reshape)
def reshape(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    x, shape = r.tensor(arguments["x"]), arguments["shape"]
    numbers = r.known(shape)
    if arguments["keep_zeros"] and (numbers is None or 0 in numbers):
        return r.call("_reshape", [x, r.integers(shape)])
    return r.method_call(x, "reshape", [_as_arguments(r.integers(shape))])


@form(ops.expand)
def expand(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    x, shape = r.tensor(arguments["x"]), arguments["shape"]
    extents, target = r.shape(arguments["x"]), r.known(shape)
    if has_parameter_numbers(target):
        return r.call("_expand", [x, r.integers(shape)])
    if target is not None and extents is not None and len(target) >= len(extents):
        sizes: list[Any] = [-1] * len(target)
        for axis, extent in enumerate(extents, len(target) - len(extents)):
            sizes[axis] = extent
        if all(_reaches(a, b) for a, b in zip(sizes, target, strict=True)):
            return r.method_call(x, "expand", [_as_arguments(r.integers(shape))])
    return r.call("_expand", [x, r.integers(shape)])


def _reaches(extent: Any, target: Any) -> bool:
    """Return whether expanding an axis to ``target`` gives ``target``."""
    return (
        target == -1
        or target == extent
        or extent in (-1, 1)
        or not (isinstance(target, Poly) or target == 1)
    )


@form(ops.permute)
def permute(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    axes, rank = arguments["axes"], r.rank(arguments["x"])
    if axes is None and rank is None:
        return r.call("_reversed_axes", [r.tensor(arguments["x"])])
    order = range(rank or 0)[::-1] if axes is None else axes
    return r.method_call(
        r.tensor(arguments["x"]), "permute", [_as_arguments(r.integers(tuple(order)))]
    )


@form(ops.transpose)
def transpose(r: TorchRenderer, call: Apply) -> Expression:
    x, *axes = call.args
    return r.method_call(r.tensor(x), "transpose", [r.integer(axis) for axis in axes])


@form(ops.flatten)
def flatten(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [r.integer(arguments["start"]), r.integer(arguments["end"])]
    while args and args[-1].text == ("0", "-1")[len(args) - 1]:
        args.pop()
    return r.method_call(r.tensor(arguments["x"]), "flatten", args)


@form(ops.squeeze)
def squeeze(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    axis = r.known(arguments["axis"])
    if isinstance(axis, list | tuple) and len(axis) == 1:
        axis = axis[0]
    if axis is None and arguments["axis"] is not None:
        args = [r.integers(arguments["axis"])]
    else:
        args = [] if axis is None else [r.host(_tuple(axis))]
    return r.method_call(r.tensor(arguments["x"]), "squeeze", args)


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


@form(ops.unsqueeze)
def unsqueeze(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    axes = r.known(arguments["axis"])
    x = r.tensor(arguments["x"])
    if axes is None:
        return r.call("_unsqueeze", [x, r.integers(arguments["axis"])])
    axes = list(axes) if isinstance(axes, list | tuple) else [axes]
    rank = r.rank(arguments["x"])
    if min(axes, default=0) < 0 <= max(axes, default=0):
        if rank is None:
            return r.call("_unsqueeze", [x, r.static(tuple(axes))])
        axes = [axis % (rank + len(axes)) for axis in axes]
    if len(axes) > 1 and min(axes) >= 0:
        items = ("None" if n in axes else ":" for n in range(max(axes) + 1))
        return Expression(f"{x.inside(ATOM)}[{', '.join(items)}]", ATOM, x.symbols)
    # Negative axes are inserted from the end.
    for axis in sorted(axes, reverse=True):
        x = r.method_call(x, "unsqueeze", [r.static(axis)])
    return x


@form(ops.concat, ops.stack)
def concat(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    head = "torch.cat" if call.primitive.name == "concat" else "torch.stack"
    axis = arguments["axis"]
    keywords = {"dim": unless(axis, 0)}
    return r.call(head, [_tensors(r, arguments["xs"])], keywords)


def _tensors(r: TorchRenderer, xs: Any) -> Expression:
    """Return a list of tensors, which a sequence is already."""
    return r.data(xs)


@form(ops.split, ops.chunk)
def split(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    if call.primitive is ops.chunk:
        parts = r.integer(arguments["count"])
    else:
        parts = r.integers(arguments["sizes"])
    keywords = {"dim": unless(arguments["axis"], 0)}
    name = call.primitive.name
    return r.method_call(r.tensor(arguments["x"]), name, [parts], keywords)


@form(ops.tile)
def tile(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [_as_arguments(r.integers(arguments["repeats"]))]
    return r.method_call(r.tensor(arguments["x"]), "tile", args)


@form(ops.flip)
def flip(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    axis = arguments["axis"]
    if axis is None:
        rank = r.rank(arguments["x"])
        if rank is None:
            raise refusal(call, "expected a known rank to flip all axes")
        axis = tuple(range(rank))
    axis = (axis,) if isinstance(axis, int) else axis
    return r.method_call(r.tensor(arguments["x"]), "flip", [r.integers(axis)])


@form(ops.roll)
def roll(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    shifts, axes = (
        r.integer(v) if isinstance(v, int | Poly) else r.integers(v)
        for v in (arguments["shifts"], arguments["axes"])
    )
    return r.call("torch.roll", [r.tensor(arguments["x"]), shifts, axes])


@form(ops.unfold_axis)
def unfold_axis(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    numbers = [r.integer(arguments[name]) for name in ("axis", "size", "step")]
    return r.method_call(r.tensor(arguments["x"]), "unfold", numbers)


@form(ops.pad)
def pad(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    x = r.tensor(arguments["x"])
    rank, axes, pads = (
        r.rank(arguments["x"]),
        r.known(arguments["axes"]),
        arguments["pads"],
    )
    pads = r.known(pads) if isinstance(pads, Tensor) else pads
    mode = arguments["mode"]
    value = r.number_or_tensor(arguments["value"])
    is_number = not (
        isinstance(arguments["value"], Tensor) and r.is_named(arguments["value"])
    )
    axes_known = axes is not None or (arguments["axes"] is None and pads is not None)
    if pads is not None and rank is not None and axes_known and is_number:
        widths = _widths(r, rank, list(pads), axes)
        zero = mode != "constant" or value.text in ("0", "0.0", "False")
        if mode == "constant" or _has_mode(mode, widths, rank):
            keywords: dict[str, Any] = {
                "mode": None if mode == "constant" else literal(MODES[mode]),
                "value": None if zero else value,
            }
            return r.call("F.pad", [x, r.integers(tuple(widths))], keywords)
    args = [x, r.integers(arguments["pads"]), value]
    options: dict[str, Any] = {
        "dims": None if arguments["axes"] is None else r.integers(arguments["axes"]),
        "mode": None if mode == "constant" else literal(mode),
    }
    return r.call("_pad", args, options)


#: ``F.pad``'s names of ONNX's modes.
MODES = {"reflect": "reflect", "edge": "replicate"}


def _has_mode(mode: str, widths: list[Any], rank: int) -> bool:
    """Return whether ``F.pad`` supports the mode for these axes and rank."""
    axes = len(widths) // 2
    counts = all(isinstance(n, int) and n >= 0 for n in widths)
    return mode in MODES and counts and axes <= 3 and rank in (axes + 1, axes + 2)


def _widths(r: TorchRenderer, rank: int, pads: list[Any], axes: Any) -> list[Any]:
    """Return pads for ``F.pad``: pairs from the last axis on, without zeros."""
    count = len(pads) // 2
    pairs: list[tuple[Any, Any]] = [(0, 0)] * rank
    for number, axis in enumerate(range(rank) if axes is None else axes):
        pairs[axis % rank] = pads[number], pads[number + count]
    while len(pairs) > 1 and pairs[0] == (0, 0):
        pairs.pop(0)
    return [side for pair in reversed(pairs) for side in pair]


@form(ops.depth_to_space, ops.space_to_depth)
def depth_to_space(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    x, size = r.tensor(arguments["x"]), r.static(arguments["blocksize"])
    deep = call.primitive.name == "depth_to_space"
    if arguments["mode"] == "CRD":
        return r.call("F.pixel_shuffle" if deep else "F.pixel_unshuffle", [x, size])
    return r.call(f"_{call.primitive.name}", [x, size])


@form(ops.split_heads)
def split_heads(r: TorchRenderer, call: Apply) -> Expression:
    x, heads = call.args
    args = [r.static(2), Expression(f"({r.integer(heads).text}, -1)")]
    wide = r.method_call(r.tensor(x), "unflatten", args)
    return r.method_call(wide, "transpose", [r.static(1), r.static(2)])


@form(ops.merge_heads)
def merge_heads(r: TorchRenderer, call: Apply) -> Expression:
    transposed = r.method_call(
        r.tensor(call.args[0]), "transpose", [r.static(1), r.static(2)]
    )
    return r.method_call(transposed, "flatten", [r.static(2)])
