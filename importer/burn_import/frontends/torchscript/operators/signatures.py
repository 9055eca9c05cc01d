"""Overload resolution: ATen targets and named arguments of calls.

The code has ``torch.add(a, b)`` where a program of ``torch.export`` has
``aten.add.Tensor`` with named arguments. Names and kinds are those of the rule's
parameters, except where PyTorch's schema differs: see the table.
"""

import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from burn_import.frontends.torch_export.aten import COMPLEX, RULES
from burn_import.frontends.torch_export.builder import Operand, Value
from burn_import.frontends.torch_export.registry import Entry
from burn_import.frontends.torchscript.values import DEVICE, Without
from burn_ir import UnsupportedModel

#: Positional arguments in PyTorch's schema, where the rule has others. After a colon
#: stands the kind of the argument that selects the overload.
_SCHEMAS: Mapping[str, str] = {
    "batch_norm.default": "input weight bias running_mean running_var training"
    " momentum eps cudnn_enabled",
    "instance_norm.default": "input weight bias running_mean running_var"
    " use_input_stats momentum eps cudnn_enabled",
    "layer_norm.default": "input normalized_shape weight bias eps cudnn_enable",
    "group_norm.default": "input num_groups weight bias eps cudnn_enabled",
    "_convolution.default": "input weight bias stride padding dilation transposed"
    " output_padding groups benchmark deterministic cudnn_enabled allow_tf32",
    "_softmax.default": "self dim half_to_float",
    "_log_softmax.default": "self dim half_to_float",
    "to.dtype": "self dtype:number non_blocking copy memory_format",
    "to.device": "self device:device dtype non_blocking copy memory_format",
    "to.dtype_layout": "self",
    "to.other": "self other:tensor non_blocking copy memory_format",
    "type_as.default": "self other",
    "trapezoid.dx": "y",
    "trapezoid.x": "y x:tensor",
    "trapz.dx": "y",
    "trapz.x": "y x:tensor",
    "cumulative_trapezoid.dx": "y",
    "cumulative_trapezoid.x": "y x:tensor",
    "segment_reduce.default": "data reduce",
    "fft_fftfreq.default": "n d",
    "fft_rfftfreq.default": "n d",
    "copy_.default": "self src non_blocking",
    "max.default": "self",
    "min.default": "self",
    "max.other": "self:tensor other:tensor",
    "min.other": "self:tensor other:tensor",
    **{
        f"{name}.default": "self unbiased"
        for name in ("var", "std", "var_mean", "std_mean")
    },
    "sort.default": "self dim descending",
    "sort.stable": "self",
    "argsort.default": "self dim descending",
    "argsort.stable": "self",
    "linalg_pinv.atol_rtol_tensor": "self",
    "linalg_matrix_rank.atol_rtol_tensor": "input",
    "tensor_split.sections": "self sections:number dim",
    "tensor_split.indices": "self indices:list dim",
    "repeat_interleave.self_int": "self repeats:number dim",
    "repeat_interleave.self_Tensor": "self repeats:tensor dim",
    "repeat_interleave.Tensor": "repeats:tensor",
    **{
        f"fft_{kind}{axes}.default": "self s dim norm"
        for kind in ("fft", "ifft", "rfft", "irfft")
        for axes in ("2", "n")
    },
    "upsample_bilinear2d.default": "self output_size align_corners scales_h scales_w",
    "upsample_bicubic2d.default": "self output_size align_corners scales_h scales_w",
    "upsample_trilinear3d.default": "self output_size align_corners"
    " scales_d scales_h scales_w",
    **{
        f"{name}{rank}d.default": f"self output_size {scales}"
        for name in ("upsample_nearest", "_upsample_nearest_exact")
        for rank, scales in (
            (2, "scales_h scales_w"),
            (3, "scales_d scales_h scales_w"),
        )
    },
    **{
        f"_upsample_{kind}2d_aa.default": "self output_size align_corners"
        " scales_h scales_w"
        for kind in ("bilinear", "bicubic")
    },
    **{
        f"{name}.int": "self sections:number" for name in ("hsplit", "vsplit", "dsplit")
    },
    **{f"{name}.array": "self indices:list" for name in ("hsplit", "vsplit", "dsplit")},
    "clone.default": "self",
    "contiguous.default": "self",
    "reshape.default": "self shape",
    "bmm.default": "self mat2",
    "mm.default": "self mat2",
    "polygamma_.default": "self n",
    "bmm.dtype": "self mat2 out_dtype:number",
    "mm.dtype": "self mat2 out_dtype:number",
}
#: Overloads with the rule of another name.
_SAME: Mapping[str, str] = {
    "to.other": "type_as.default",
    "split.sizes": "split_with_sizes.default",
    "_convolution_mode.default": "conv2d.padding",
    "concat.default": "cat.default",
    "true_divide.Tensor": "div.Tensor",
    "concatenate.default": "cat.default",
    "swapaxes.default": "transpose.int",
    "absolute.default": "abs.default",
    "greater.Tensor": "gt.Tensor",
    "less.Tensor": "lt.Tensor",
    "multiply.Tensor": "mul.Tensor",
    "subtract.Tensor": "sub.Tensor",
    "divide.Tensor": "div.Tensor",
}
_IN_ALL = frozenset(
    {"layout", "device", "pin_memory", "memory_format", "requires_grad", "generator"}
)


def overload(
    name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[str, dict[str, Any]] | None:
    """Return the target of a call, and its arguments by name; None without a rule.

    Raises:
        UnsupportedModel: there are rules, but none fits the arguments.
    """
    targets = _targets(name)
    best: tuple[int, str, dict[str, Any]] | None = None
    for target in targets:
        bound = _match_arguments(target, args, kwargs)
        if bound is not None and (best is None or bound[0] < best[0]):
            best = (bound[0], target, bound[1])
    if best is not None:
        return _rule_name(best[1]), best[2]
    if targets:
        kinds = _kinds(args)
        raise UnsupportedModel(f"no overload of torch.{name} takes {kinds}")
    return None


@cache
def _targets(name: str) -> tuple[str, ...]:
    """Return the overloads that have rules, without ``aten.``.

    Operators of other libraries are called with their library: ``torchvision.nms``.
    """
    start = f"{name}." if "." in name else f"aten.{name}."
    keys = dict.fromkeys([*RULES, *COMPLEX])
    own = [key.removeprefix("aten.") for key in keys if key.startswith(start)]
    same = [
        key
        for key, value in _SAME.items()
        if key.startswith(f"{name}.") and f"aten.{value}" in RULES
    ]
    return (*own, *(key for key in same if key not in own))


def is_known(name: str) -> bool:
    """Return whether an operator of another library has a rule."""
    return "." in name and bool(_targets(name))


def _rule_name(target: str) -> str:
    keys = (f"aten.{target}", target, f"aten.{_SAME.get(target)}")
    return next(key for key in keys if key in RULES or key in COMPLEX)


def _entry(target: str) -> Entry:
    """Return the rule of an overload for real numbers, or that for complex ones."""
    name = _rule_name(target)
    return RULES[name] if name in RULES else COMPLEX[name]


@cache
def _parameters(target: str) -> tuple[tuple[str, Any, bool], ...]:
    """Return positional parameters: name, type, and whether it is optional."""
    entry = _entry(target)
    rule = entry.rule
    hints = get_type_hints(rule)
    own = list(inspect.signature(rule).parameters.values())[1:]
    optional = {p.name: p.default is not p.empty for p in own}
    schema = _SCHEMAS.get(target) or _SCHEMAS.get(_SAME.get(target, ""))
    if schema is None:
        parameters = [(p.name, hints.get(p.name, Any), optional[p.name]) for p in own]
        if entry.mutates == "self" and "self" not in optional:
            parameters[0] = ("self", *parameters[0][1:])
        return tuple(parameters)
    parameters = []
    for part in schema.split():
        key, _, kind = part.partition(":")
        hint = _KINDS[kind] if kind else hints.get(key, Any)
        parameters.append((key, hint, not kind and optional.get(key, True)))
    return tuple(parameters)


def parameter_names(target: str) -> list[str]:
    """Return the names of positional arguments, of ``add.Tensor``."""
    return [name for name, _, _ in _parameters(target)]


_KINDS: Mapping[str, Any] = {
    "number": int,
    "device": Without,
    "tensor": Value,
    "list": Sequence[Any],
}


def _match_arguments(
    target: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[int, dict[str, Any]] | None:
    """Return a mismatch score and the arguments by name; None if they do not fit."""
    parameters = _parameters(target)
    if len(args) > len(parameters):
        return None
    named = dict(zip((p[0] for p in parameters), args, strict=False))
    names = _argument_names(target)
    if any(key in named or not (key in names or key in _IN_ALL) for key in kwargs):
        return None
    named.update(kwargs)
    loose = int("out" in kwargs and all(key != "out" for key, _, _ in parameters))
    for key, hint, optional in parameters:
        if key not in named:
            if not optional:
                return None
            continue
        fit = _mismatch(hint, named[key])
        if fit is None:
            return None
        loose += fit
    return loose, named


@cache
def _argument_names(target: str) -> frozenset[str]:
    """Return the names of all arguments of an overload."""
    rule = _entry(target).rule
    own = list(inspect.signature(rule).parameters)[1:]
    return frozenset((*own, *(p[0] for p in _parameters(target)), "out"))


def _mismatch(hint: Any, value: Any) -> int | None:
    """Return 0 if a value has a type, 1 if the type is ``Any``, else None."""
    if hint is Any:
        return 1
    origin = get_origin(hint)
    if isinstance(value, complex):
        return 0 if hint == Operand else None
    if origin in (Union, UnionType):
        fits = [_mismatch(part, value) for part in get_args(hint)]
        return min((fit for fit in fits if fit is not None), default=None)
    if origin is not None:
        return _sequence_mismatch(hint, value)
    if hint is Without:
        return 0 if value is DEVICE or value is None else None
    if hint is float:
        hint = int | float
    is_right = isinstance(value, hint)
    if hint in (int, int | float):
        is_right = is_right and not isinstance(value, bool)
        is_right = is_right or (isinstance(value, Value) and value.is_number)
    return 0 if is_right else None


def _sequence_mismatch(hint: Any, value: Any) -> int | None:
    if not isinstance(value, list | tuple):
        return None
    items = get_args(hint)
    if not value or not items:
        return 0
    return _mismatch(items[0], value[0])


def _kinds(args: Sequence[Any]) -> str:
    """Return the kinds of arguments for a message."""
    return f"({', '.join(_kind(arg) for arg in args)})"


def _kind(arg: Any) -> str:
    if isinstance(arg, Value):
        return "number" if arg.is_number else "tensor"
    if isinstance(arg, list | tuple):
        return f"list of {_kind(arg[0])}s" if arg else "empty list"
    if arg is None or isinstance(arg, NoneType):
        return "None"
    return "device" if arg is DEVICE else type(arg).__name__
