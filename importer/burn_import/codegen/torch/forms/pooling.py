"""Forms of pooling and resampling."""

from dataclasses import replace
from typing import Any

from burn import ops
from burn.dtypes import is_float
from burn.ops.resize import Options
from burn.ops.window import per_axis
from burn_import.codegen.torch.registry import form, refusal, unless
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.codegen.torch.windows import (
    explicit_padding,
    is_symmetric,
    spatial_rank,
    symmetric,
)
from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply


@form(ops.max_pool, ops.max_pool_with_indices)
def max_pool(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    rank = spatial_rank(r, call, arguments["x"])
    x, padding = r.tensor(arguments["x"]), arguments["padding"]
    indices = call.primitive.name == "max_pool_with_indices"
    if isinstance(padding, str):
        same = {n: literal(arguments[n]) for n in ("stride", "dilation")}
        same["lower"] = "True" if padding == "same_lower" else "False"
        kernel = literal(per_axis(arguments["kernel_size"], rank))
        r.modules.add("math")
        x = r.call(
            "_same_padded", [x, Expression(kernel)], {**same, "value": "-math.inf"}
        )
        padding = 0
    elif not is_symmetric(padding) or not _is_small(padding, arguments["kernel_size"]):
        dtype = r.dtype(arguments["x"])
        if indices or arguments["ceil_mode"] or dtype is None or not is_float(dtype):
            raise refusal(call, f"expected equal padding on both sides, got {padding}")
        x = explicit_padding(r, x, padding, rank, "-math.inf")
        padding = 0
    keywords = {
        "stride": unless(arguments["stride"], arguments["kernel_size"]),
        "padding": unless(symmetric(padding), 0),
        "dilation": unless(arguments["dilation"], 1),
        "ceil_mode": unless(arguments["ceil_mode"], False),
        "return_indices": "True" if indices else None,
    }
    args = [x, r.static(arguments["kernel_size"])]
    return r.call(f"F.max_pool{rank}d", args, keywords)


def _is_small(padding: Any, kernel: Any) -> bool:
    """Return whether PyTorch accepts padding: at most half of the window."""
    sides = symmetric(padding)
    rank = len(sides) if isinstance(sides, tuple) else 1
    rank = len(kernel) if isinstance(kernel, tuple) else rank
    pairs = zip(per_axis(sides, rank), per_axis(kernel, rank), strict=True)
    return all(side <= extent // 2 for side, extent in pairs)


@form(ops.avg_pool)
def avg_pool(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    rank = spatial_rank(r, call, arguments["x"])
    x, padding = r.tensor(arguments["x"]), arguments["padding"]
    counted = arguments["count_include_pad"]
    if arguments["dilation"] not in (1, (1,) * rank):
        raise refusal(call, f"expected no dilation, got {arguments['dilation']}")
    if isinstance(padding, str):
        raise refusal(call, f"expected padding in numbers, got {padding!r}")
    small = is_symmetric(padding) and _is_small(padding, arguments["kernel_size"])
    if not small:
        if not counted or arguments["ceil_mode"]:
            raise refusal(call, f"expected equal padding on both sides, got {padding}")
        x = explicit_padding(r, x, padding, rank)
        padding = 0
    padding = symmetric(padding)
    no_pads = padding == 0
    keywords = {
        "stride": unless(arguments["stride"], arguments["kernel_size"]),
        "padding": unless(padding, 0),
        "ceil_mode": unless(arguments["ceil_mode"], False),
        "count_include_pad": None if no_pads else unless(counted, True),
    }
    args = [x, r.static(arguments["kernel_size"])]
    return r.call(f"F.avg_pool{rank}d", args, keywords)


@form(ops.adaptive_avg_pool)
def adaptive_avg_pool(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    rank = spatial_rank(r, call, arguments["x"])
    args = [r.tensor(arguments["x"]), r.static(arguments["output_size"])]
    return r.call(f"F.adaptive_avg_pool{rank}d", args)


@form(ops.adaptive_max_pool, ops.adaptive_max_pool_with_indices)
def adaptive_max_pool(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    rank = spatial_rank(r, call, arguments["x"])
    args = [r.tensor(arguments["x"]), r.static(arguments["output_size"])]
    both = call.primitive is ops.adaptive_max_pool_with_indices
    keywords = {"return_indices": "True"} if both else {}
    return r.call(f"F.adaptive_max_pool{rank}d", args, keywords)


#: Modes of ``F.interpolate``, by ONNX's mode and the number of spatial axes.
MODES = {
    ("linear", 1): "linear",
    ("linear", 2): "bilinear",
    ("linear", 3): "trilinear",
    ("cubic", 2): "bicubic",
    ("nearest", 1): "nearest",
    ("nearest", 2): "nearest",
    ("nearest", 3): "nearest",
}


@form(ops.resize)
def resize(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    options = {k: v for k, v in call.static.items() if k in Options._fields}
    chosen = Options(**options)
    plain = _interpolate(r, arguments, chosen)
    if plain is not None:
        return plain
    keywords: dict[str, Any] = {
        name: None if arguments.get(name) is None else _numbers(r, arguments[name])
        for name in ("scales", "sizes", "roi")
    }
    keywords |= {
        name: unless(getattr(chosen, name), getattr(Options(), name))
        for name in Options._fields
    }
    if chosen.axes is not None:
        keywords["axes"] = r.integers(chosen.axes)
    return r.call("_resize", [r.tensor(arguments["x"])], keywords)


def _numbers(r: TorchRenderer, value: Any) -> Expression:
    """Return scales or sizes as a list."""
    numbers = r.known(value)
    return r.integers(value) if numbers is None else r.host(tuple(numbers))


def _interpolate(
    r: TorchRenderer, arguments: dict[str, Any], chosen: Options
) -> Expression | None:
    """Return ``F.interpolate(x, ...)`` if it computes the same, else None."""
    rank = r.rank(arguments["x"])
    mode = MODES.get((chosen.mode, (rank or 0) - 2))
    scales, sizes = (r.known(arguments[name]) for name in ("scales", "sizes"))
    if mode is None or rank is None or (scales is None) == (sizes is None):
        return None
    spatial = _spatial(scales if sizes is None else sizes, chosen.axes, rank)
    if spatial is None and sizes is not None and chosen.axes is None:
        extents = r.shape(arguments["x"]) or ()
        spatial = list(sizes[2:]) if tuple(sizes[:2]) == extents[:2] else None
    if spatial is None or not _is_standard(chosen, scales, spatial):
        return None
    keywords: dict[str, Any] = {"mode": literal(mode)}
    if sizes is None:
        same = len(set(spatial)) == 1
        keywords["scale_factor"] = literal(spatial[0] if same else tuple(spatial))
    else:
        keywords["size"] = r.integers(tuple(spatial))
    if mode == "nearest":
        del keywords["mode"]
    if chosen.coordinate_transformation_mode == "align_corners" and mode != "nearest":
        keywords["align_corners"] = "True"
    order = ("size", "scale_factor", "mode", "align_corners")
    ordered = {name: keywords[name] for name in order if name in keywords}
    return r.call("F.interpolate", [r.tensor(arguments["x"])], ordered)


def _spatial(factors: Any, axes: Any, rank: int) -> list[Any] | None:
    """Return the factors of spatial axes if other axes keep their size, else None."""
    if axes is None:
        if len(factors) != rank or any(f != 1.0 for f in factors[:2]):
            return None
        return list(factors[2:])
    by_axis = {axis % rank: f for axis, f in zip(axes, factors, strict=True)}
    if set(by_axis) != set(range(2, rank)):
        return None
    return [by_axis[axis] for axis in range(2, rank)]


def _is_standard(chosen: Options, scales: Any, spatial: list[Any]) -> bool:
    """Return whether ``F.interpolate`` samples at the same coordinates."""
    if chosen.antialias or chosen.exclude_outside:
        return False
    if chosen.keep_aspect_ratio_policy != "stretch" or chosen.cubic_coeff_a != -0.75:
        return False
    coords = chosen.coordinate_transformation_mode
    if chosen.mode == "nearest":
        multiples = scales is not None and all(f == int(f) and f >= 1 for f in spatial)
        if coords == "asymmetric" and chosen.nearest_mode == "floor":
            return True
        rounded = chosen.nearest_mode in ("round_prefer_floor", "round_prefer_ceil")
        return coords in ("half_pixel", "pytorch_half_pixel") and rounded and multiples
    if coords == "align_corners":
        return scales is None
    return coords in ("half_pixel", "pytorch_half_pixel")


@form(ops.grid_sample)
def grid_sample(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    names = {"linear": "bilinear", "cubic": "bicubic", "nearest": "nearest"}
    keywords = {
        "mode": unless(names.get(arguments["mode"], arguments["mode"]), "bilinear"),
        "padding_mode": unless(arguments["padding_mode"], "zeros"),
        "align_corners": literal(arguments["align_corners"]),
    }
    args = [r.tensor(arguments["x"]), r.tensor(arguments["grid"])]
    return r.call("F.grid_sample", args, keywords)


@form(ops.affine_grid)
def affine_grid(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    size = r.integers(arguments["size"])
    if size.text.startswith("("):  # PyTorch annotates a list
        size = replace(size, text=f"[{size.text[1:-1]}]")
    args = [r.tensor(arguments["theta"]), size]
    keywords = {"align_corners": literal(arguments["align_corners"])}
    return r.call("F.affine_grid", args, keywords)
