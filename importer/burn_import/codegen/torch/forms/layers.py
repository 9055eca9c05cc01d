"""Forms of linear, convolution, normalization and attention primitives."""

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
    arguments = r.named_arguments(call)
    args = _optional(r, arguments["x"], arguments["weight"], arguments["bias"])
    return r.call("F.linear", args)


@form(ops.einsum)
def einsum(r: TorchRenderer, call: Apply) -> Expression:
    equation, xs = call.args
    args = [Expression(literal(equation)), *(r.tensor(x) for x in xs)]
    return r.call("torch.einsum", args)


@form(ops.conv)
def conv(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    rank = spatial_rank(r, call, arguments["x"], arguments["weight"])
    padding = arguments["padding"]
    x = r.tensor(arguments["x"])
    if isinstance(padding, str):
        same = {name: literal(arguments[name]) for name in ("stride", "dilation")}
        kernel = f"{r.tensor(arguments['weight']).inside(ATOM)}.shape[2:]"
        kind = {"lower": "True" if padding == "same_lower" else None}
        x = r.call("_same_padded", [x, Expression(kernel)], {**same, **kind})
        padding = 0
    elif not is_symmetric(padding):
        x = explicit_padding(r, x, padding, rank)
        padding = 0
    keywords = {
        "stride": unless(arguments["stride"], 1),
        "padding": unless(symmetric(padding), 0),
        "dilation": unless(arguments["dilation"], 1),
        "groups": unless(arguments["groups"], 1),
    }
    args = [x, *_optional(r, arguments["weight"], arguments["bias"])]
    return r.call(f"F.conv{rank}d", args, keywords)


@form(ops.conv_transpose)
def conv_transpose(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    rank = spatial_rank(r, call, arguments["x"], arguments["weight"])
    if isinstance(arguments["padding"], str) or not is_symmetric(arguments["padding"]):
        raise refusal(
            call, f"expected equal padding on both sides, got {arguments['padding']}"
        )
    keywords = {
        "stride": unless(arguments["stride"], 1),
        "padding": unless(symmetric(arguments["padding"]), 0),
        "output_padding": unless(arguments["output_padding"], 0),
        "groups": unless(arguments["groups"], 1),
        "dilation": unless(arguments["dilation"], 1),
    }
    args = _optional(r, arguments["x"], arguments["weight"], arguments["bias"])
    return r.call(f"F.conv_transpose{rank}d", args, keywords)


@form(ops.batch_norm)
def batch_norm(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = _optional(
        r,
        arguments["x"],
        arguments["mean"],
        arguments["var"],
        arguments["weight"],
        arguments["bias"],
    )
    return r.call("F.batch_norm", args, {"eps": unless(arguments["epsilon"], 1e-5)})


@form(ops.instance_norm)
def instance_norm(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    keywords: dict[str, Any] = {
        name: None if arguments[name] is None else r.tensor(arguments[name])
        for name in ("weight", "bias")
    }
    keywords["eps"] = unless(arguments["epsilon"], 1e-5)
    return r.call("F.instance_norm", [r.tensor(arguments["x"])], keywords)


@form(ops.group_norm)
def group_norm(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [r.tensor(arguments["x"]), r.static(arguments["groups"])]
    args += _optional(r, arguments["weight"], arguments["bias"])
    return r.call("F.group_norm", args, {"eps": unless(arguments["epsilon"], 1e-5)})


@form(ops.layer_norm, ops.rms_norm)
def layer_norm(r: TorchRenderer, call: Apply) -> Expression:
    arguments, name = r.named_arguments(call), call.primitive.name
    args = [r.tensor(arguments["x"]), r.integer(arguments["axis"])]
    args += _optional(r, arguments["weight"], arguments.get("bias"))
    return r.call(f"_{name}", args, {"eps": literal(arguments["epsilon"])})


@form(ops.lrn)
def lrn(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    if arguments["size"] % 2 == 0:
        raise refusal(call, f"expected an odd size, got {arguments['size']}")
    keywords = {
        theirs: literal(arguments[ours])
        for ours, theirs in (("alpha", "alpha"), ("beta", "beta"), ("bias", "k"))
    }
    args = [r.tensor(arguments["x"]), r.static(arguments["size"])]
    return r.call("F.local_response_norm", args, keywords)


@form(ops.attention)
def attention(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    if not _is_plain(r, arguments):
        return _attention_helper(r, call, arguments, "_attention")
    args = [r.tensor(arguments[name]) for name in ("query", "key", "value")]
    keywords: dict[str, Any] = {
        "attn_mask": None if arguments["mask"] is None else r.tensor(arguments["mask"]),
        "is_causal": flag(arguments["causal"]),
        "scale": unless(arguments["scale"], None),
        "enable_gqa": "True" if _has_groups(r, arguments) else None,
    }
    return r.call("F.scaled_dot_product_attention", args, keywords)


def _is_plain(r: TorchRenderer, arguments: dict[str, Any]) -> bool:
    """Return whether PyTorch's function computes the same result."""
    ordinary = (
        _is_zero(arguments["offset"])
        and arguments["lengths"] is None
        and arguments["sink"] is None
        and arguments["softcap"] == 0.0
        and arguments["window"] == (-1, -1)
        and arguments["softmax_dtype"] is None
    )
    key, query, mask = (r.shape(arguments[name]) for name in ("key", "query", "mask"))
    if not ordinary or key is None or query is None or len(key) != len(query):
        return False
    if len(query) == 4 and key[1] != query[1] and _has_groups(r, arguments) is None:
        return False
    if arguments["mask"] is None:
        return True
    dtype = r.dtype(arguments["mask"])
    fits = dtype == bool_ or dtype == r.dtype(arguments["query"])
    covers = mask is not None and len(mask) > 0 and mask[-1] == key[-2]
    return fits and covers and arguments["causal"] is False and len(query) == 4


def _is_zero(offset: Any) -> bool:
    return not isinstance(offset, Tensor) and offset == 0


def _has_groups(r: TorchRenderer, arguments: dict[str, Any]) -> bool | None:
    """Return whether keys have fewer heads than queries; None if unknown."""
    key, query = r.shape(arguments["key"]), r.shape(arguments["query"])
    if key is None or query is None or len(key) != 4 or len(query) != 4:
        return None
    if key[1] == query[1]:
        return False
    both = isinstance(key[1], int) and isinstance(query[1], int)
    return True if both else None


def _attention_helper(
    r: TorchRenderer, call: Apply, arguments: dict[str, Any], head: str
) -> Expression:
    """Return a call of a helper with the parameters of ``ops.attention``."""
    if arguments.get("softmax_dtype") is not None:
        raise refusal(call, "expected a softmax in the dtype of the scores")
    names = ("query", "key", "value") if "value" in arguments else ("query", "key")
    keywords: dict[str, Any] = {
        name: None if arguments.get(name) is None else r.tensor(arguments[name])
        for name in ("mask", "lengths", "sink")
    }
    offset = arguments["offset"]
    keywords["offset"] = None if _is_zero(offset) else r.number_or_tensor(offset)
    for name, default in (
        ("scale", None),
        ("softcap", 0.0),
        ("causal", False),
        ("window", (-1, -1)),
    ):
        keywords[name] = unless(arguments[name], default)
    return r.call(head, [r.tensor(arguments[name]) for name in names], keywords)


@form(ops.attention_weights, ops.attention_scores)
def attention_weights(r: TorchRenderer, call: Apply) -> Expression:
    return _attention_helper(
        r, call, r.named_arguments(call), f"_{call.primitive.name}"
    )


@form(ops.weighted_values)
def weighted_values(r: TorchRenderer, call: Apply) -> Expression:
    return r.call("_weighted_values", [r.tensor(arg) for arg in call.args])


@form(ops.rotary_embedding)
def rotary_embedding(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = _optional(
        *(r, arguments["x"], arguments["cos"], arguments["sin"], arguments["positions"])
    )
    keywords = {"interleaved": unless(arguments["interleaved"], False)}
    return r.call("_rotary_embedding", args, keywords)
