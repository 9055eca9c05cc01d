"""Forms of linear, convolution, normalization and attention primitives."""

from __future__ import annotations

from typing import Any

from burn import Tensor, ops
from burn.dtypes import bool_
from burn_import.codegen.torch.registry import flag, form, refusal, unless
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.codegen.torch.windows import (
    explicit_padding,
    is_symmetric,
    spatial_rank,
    symmetric,
)
from burn_import.tracing.expression import ATOM, Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply


def _optional(r: TorchRenderer, *values: Any) -> list[Expression]:
    """Return the operands without trailing Nones."""
    operands = list(values)
    while operands and operands[-1] is None:
        operands.pop()
    return [Expression("None") if v is None else r.tensor(v) for v in operands]


@form(ops.linear)
def linear(r: TorchRenderer, call: Apply) -> Expression:
    given = r.bound(call)
    args = _optional(r, given["x"], given["weight"], given["bias"])
    return r.call("F.linear", args)


@form(ops.einsum)
def einsum(r: TorchRenderer, call: Apply) -> Expression:
    equation, xs = call.args
    args = [Expression(literal(equation)), *(r.tensor(x) for x in xs)]
    return r.call("torch.einsum", args)


@form(ops.conv)
def conv(r: TorchRenderer, call: Apply) -> Expression:
    given = r.bound(call)
    rank = spatial_rank(r, call, given["x"], given["weight"])
    padding = given["padding"]
    x = r.tensor(given["x"])
    if isinstance(padding, str):
        same = {name: literal(given[name]) for name in ("stride", "dilation")}
        kernel = f"{r.tensor(given['weight']).inside(ATOM)}.shape[2:]"
        kind = {"lower": "True" if padding == "same_lower" else None}
        x = r.call("_same_padded", [x, Expression(kernel)], {**same, **kind})
        padding = 0
    elif not is_symmetric(padding):
        x = explicit_padding(r, x, padding, rank)
        padding = 0
    keywords = {
        "stride": unless(given["stride"], 1),
        "padding": unless(symmetric(padding), 0),
        "dilation": unless(given["dilation"], 1),
        "groups": unless(given["groups"], 1),
    }
    args = [x, *_optional(r, given["weight"], given["bias"])]
    return r.call(f"F.conv{rank}d", args, keywords)


@form(ops.conv_transpose)
def conv_transpose(r: TorchRenderer, call: Apply) -> Expression:
    given = r.bound(call)
    rank = spatial_rank(r, call, given["x"], given["weight"])
    if isinstance(given["padding"], str) or not is_symmetric(given["padding"]):
        raise refusal(
            call, f"expected equal padding on both sides, got {given['padding']}"
        )
    keywords = {
        "stride": unless(given["stride"], 1),
        "padding": unless(symmetric(given["padding"]), 0),
        "output_padding": unless(given["output_padding"], 0),
        "groups": unless(given["groups"], 1),
        "dilation": unless(given["dilation"], 1),
    }
    args = _optional(r, given["x"], given["weight"], given["bias"])
    return r.call(f"F.conv_transpose{rank}d", args, keywords)


@form(ops.batch_norm)
def batch_norm(r: TorchRenderer, call: Apply) -> Expression:
    given = r.bound(call)
    args = _optional(
        r, given["x"], given["mean"], given["var"], given["weight"], given["bias"]
    )
    return r.call("F.batch_norm", args, {"eps": unless(given["epsilon"], 1e-5)})


@form(ops.instance_norm)
def instance_norm(r: TorchRenderer, call: Apply) -> Expression:
    given = r.bound(call)
    keywords: dict[str, Any] = {
        name: None if given[name] is None else r.tensor(given[name])
        for name in ("weight", "bias")
    }
    keywords["eps"] = unless(given["epsilon"], 1e-5)
    return r.call("F.instance_norm", [r.tensor(given["x"])], keywords)


@form(ops.group_norm)
def group_norm(r: TorchRenderer, call: Apply) -> Expression:
    given = r.bound(call)
    args = [r.tensor(given["x"]), r.static(given["groups"])]
    args += _optional(r, given["weight"], given["bias"])
    return r.call("F.group_norm", args, {"eps": unless(given["epsilon"], 1e-5)})


@form(ops.layer_norm, ops.rms_norm)
def layer_norm(r: TorchRenderer, call: Apply) -> Expression:
    given, name = r.bound(call), call.primitive.name
    args = [r.tensor(given["x"]), r.integer(given["axis"])]
    args += _optional(r, given["weight"], given.get("bias"))
    return r.call(f"_{name}", args, {"eps": literal(given["epsilon"])})


@form(ops.lrn)
def lrn(r: TorchRenderer, call: Apply) -> Expression:
    given = r.bound(call)
    if given["size"] % 2 == 0:
        raise refusal(call, f"expected an odd size, got {given['size']}")
    keywords = {
        theirs: literal(given[ours])
        for ours, theirs in (("alpha", "alpha"), ("beta", "beta"), ("bias", "k"))
    }
    args = [r.tensor(given["x"]), r.static(given["size"])]
    return r.call("F.local_response_norm", args, keywords)


@form(ops.attention)
def attention(r: TorchRenderer, call: Apply) -> Expression:
    given = r.bound(call)
    if not _is_plain(r, given):
        return _attention_helper(r, call, given, "_attention")
    args = [r.tensor(given[name]) for name in ("query", "key", "value")]
    keywords: dict[str, Any] = {
        "attn_mask": None if given["mask"] is None else r.tensor(given["mask"]),
        "is_causal": flag(given["causal"]),
        "scale": unless(given["scale"], None),
        "enable_gqa": "True" if _has_groups(r, given) else None,
    }
    return r.call("F.scaled_dot_product_attention", args, keywords)


def _is_plain(r: TorchRenderer, given: dict[str, Any]) -> bool:
    """Return whether PyTorch's function computes the same result."""
    ordinary = (
        _is_zero(given["offset"])
        and given["lengths"] is None
        and given["sink"] is None
        and given["softcap"] == 0.0
        and given["window"] == (-1, -1)
        and given["softmax_dtype"] is None
    )
    key, query, mask = (r.shape(given[name]) for name in ("key", "query", "mask"))
    if not ordinary or key is None or query is None or len(key) != len(query):
        return False
    if len(query) == 4 and key[1] != query[1] and _has_groups(r, given) is None:
        return False
    if given["mask"] is None:
        return True
    dtype = r.dtype(given["mask"])
    fits = dtype == bool_ or dtype == r.dtype(given["query"])
    covers = mask is not None and len(mask) > 0 and mask[-1] == key[-2]
    return fits and covers and given["causal"] is False and len(query) == 4


def _is_zero(offset: Any) -> bool:
    return not isinstance(offset, Tensor) and offset == 0


def _has_groups(r: TorchRenderer, given: dict[str, Any]) -> bool | None:
    """Return whether keys have fewer heads than queries; None if unknown."""
    key, query = r.shape(given["key"]), r.shape(given["query"])
    if key is None or query is None or len(key) != 4 or len(query) != 4:
        return None
    if key[1] == query[1]:
        return False
    both = isinstance(key[1], int) and isinstance(query[1], int)
    return True if both else None


def _attention_helper(
    r: TorchRenderer, call: Apply, given: dict[str, Any], head: str
) -> Expression:
    """Return a call of a helper with the parameters of ``ops.attention``."""
    if given.get("softmax_dtype") is not None:
        raise refusal(call, "expected a softmax in the dtype of the scores")
    names = ("query", "key", "value") if "value" in given else ("query", "key")
    keywords: dict[str, Any] = {
        name: None if given.get(name) is None else r.tensor(given[name])
        for name in ("mask", "lengths", "sink")
    }
    offset = given["offset"]
    keywords["offset"] = None if _is_zero(offset) else r.number_or_tensor(offset)
    for name, default in (
        ("scale", None),
        ("softcap", 0.0),
        ("causal", False),
        ("window", (-1, -1)),
    ):
        keywords[name] = unless(given[name], default)
    return r.call(head, [r.tensor(given[name]) for name in names], keywords)


@form(ops.attention_weights, ops.attention_scores)
def attention_weights(r: TorchRenderer, call: Apply) -> Expression:
    return _attention_helper(r, call, r.bound(call), f"_{call.primitive.name}")


@form(ops.weighted_values)
def weighted_values(r: TorchRenderer, call: Apply) -> Expression:
    return r.call("_weighted_values", [r.tensor(arg) for arg in call.args])


@form(ops.rotary_embedding)
def rotary_embedding(r: TorchRenderer, call: Apply) -> Expression:
    given = r.bound(call)
    args = _optional(*(r, given["x"], given["cos"], given["sin"], given["positions"]))
    keywords = {"interleaved": unless(given["interleaved"], False)}
    return r.call("_rotary_embedding", args, keywords)
