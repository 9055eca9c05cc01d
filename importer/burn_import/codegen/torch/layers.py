"""Translation of ``burn.nn`` constructors to PyTorch layers and arrays.

The fields of classes are assignments of such constructors. They are translated as
syntax trees, by the signature of each constructor.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Callable, Collection, Mapping
from functools import cache
from typing import Any

import numpy as np

from burn import dtypes, nn
from burn_import.codegen.syntax import expression_of
from burn_import.codegen.torch.registry import dtype_name
from burn_import.codegen.torch.windows import is_symmetric, symmetric
from burn_import.tracing.identifiers import literal
from burn_ir.errors import UnsupportedModel
from burn_ir.ops.dropout import DROPOUTS
from burn_ir.types import Array

Arguments = dict[str, ast.expr]
#: A function from a layer's arguments by name to PyTorch's constructor call.
Row = Callable[[str, Arguments, Collection[str]], ast.expr]

#: Layers whose constructors have the same parameters, defaults and keys in PyTorch.
SAME = frozenset(
    {"AdaptiveAvgPool1d", "AdaptiveAvgPool2d", "AdaptiveAvgPool3d", "ELU", "Embedding"}
    | {"GELU", "GRU", "GRUCell", "GroupNorm", "Hardtanh", "Identity", "LSTM"}
    | {"LSTMCell", "LayerNorm", "LeakyReLU", "Linear", "ModuleList", "RMSNorm", "RNN"}
    | {"MultiheadAttention"}
    | {"RNNCell", "ReLU", "ReLU6", "Sequential", "SiLU", "Sigmoid", "Softmax", "Tanh"}
    | {"BatchNorm1d", "BatchNorm2d", "BatchNorm3d"}
    | {"CELU", "Flatten", "Hardsigmoid", "LogSoftmax", "Upsample"}
    | {
        f"{kind}Pad{rank}d"
        for kind in ("Circular", "Constant", "Reflection", "Replication", "Zero")
        for rank in (1, 2, 3)
    }
)
#: Parameters with other names in PyTorch.
RENAMED: Mapping[str, Mapping[str, str]] = {
    "LeakyReLU": {"alpha": "negative_slope"},
    "LogSoftmax": {"axis": "dim"},
    "Softmax": {"axis": "dim"},
}
#: Additional state of PyTorch's layers, by class.
MORE_STATE: Mapping[str, Mapping[str, Array]] = dict.fromkeys(
    ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d"),
    {"num_batches_tracked": np.array(0, np.int64)},
)
#: Modules for functions between the layers of an ``nn.Sequential``.
STEPS = {
    "relu": "nn.ReLU()",
    "gelu": "nn.GELU()",
    "tanh": "nn.Tanh()",
    "silu": "nn.SiLU()",
    "sigmoid": "nn.Sigmoid()",
    "softplus": "nn.Softplus()",
    "softsign": "nn.Softsign()",
    "mish": "nn.Mish()",
    "hard_swish": "nn.Hardswish()",
    "celu": "nn.CELU()",
    "elu": "nn.ELU()",
    "leaky_relu": "nn.LeakyReLU()",
    "log_softmax": "nn.LogSoftmax(dim=-1)",
    "selu": "nn.SELU()",
    "softmax": "nn.Softmax(dim=-1)",
}
#: Attributes of ``torch.nn.Module`` that no field may shadow.
MODULE_ATTRIBUTES = frozenset(
    {"T_destination", "add_module", "apply", "bfloat16", "buffers", "call_super_init"}
    | {"children", "compile", "cpu", "cuda", "double", "dump_patches", "eval"}
    | {"extra_repr", "float", "forward", "get_buffer", "get_extra_state"}
    | {"get_parameter", "get_submodule", "half", "ipu", "load_state_dict", "modules"}
    | {"mtia", "named_buffers", "named_children", "named_modules", "named_parameters"}
    | {"parameters", "register_backward_hook", "register_buffer"}
    | {"register_forward_hook", "register_forward_pre_hook"}
    | {"register_full_backward_hook", "register_full_backward_pre_hook"}
    | {"register_load_state_dict_post_hook", "register_load_state_dict_pre_hook"}
    | {"register_module", "register_parameter", "register_state_dict_post_hook"}
    | {"register_state_dict_pre_hook", "requires_grad_", "set_extra_state"}
    | {"set_submodule", "share_memory", "state_dict", "to", "to_empty", "train"}
    | {"training", "type", "xpu", "zero_grad", "load"}
    | {"_apply", "_backward_hooks", "_backward_pre_hooks", "_buffers", "_call_impl"}
    | {"_compiled_call_impl", "_forward_hooks", "_forward_hooks_always_called"}
    | {"_forward_hooks_with_kwargs", "_forward_pre_hooks"}
    | {"_forward_pre_hooks_with_kwargs", "_get_backward_hooks"}
    | {"_get_backward_pre_hooks", "_get_name", "_is_full_backward_hook"}
    | {"_load_from_state_dict", "_load_state_dict_post_hooks"}
    | {"_load_state_dict_pre_hooks", "_maybe_warn_non_full_backward_hook"}
    | {"_modules", "_named_members", "_non_persistent_buffers_set", "_parameters"}
    | {"_register_load_state_dict_pre_hook", "_register_state_dict_hook"}
    | {"_replicate_for_data_parallel", "_save_to_state_dict", "_slow_forward"}
    | {"_state_dict_hooks", "_state_dict_pre_hooks", "_version"}
    | {"_wrapped_call_impl"}
)


def _value(node: ast.expr | None) -> Any:
    """Return the value of a literal; None for other expressions."""
    try:
        return None if node is None else ast.literal_eval(node)
    except ValueError:
        return None


def _call(head: str, arguments: Arguments, positional: int = 0) -> ast.expr:
    """Return a call with its first arguments by position and the others by name."""
    items = list(arguments.items())
    args = [value for _, value in items[:positional]]
    keywords = [ast.keyword(name, value) for name, value in items[positional:]]
    return ast.Call(expression_of(head), args, keywords)


def refused(what: str, message: str) -> UnsupportedModel:
    """Return the error that a layer cannot be emitted for PyTorch."""
    return UnsupportedModel(f"nn.{what}: {message}", "import it without --target torch")


def _conv(name: str, arguments: Arguments, pairs: Collection[str] = ()) -> ast.expr:
    """Return a convolution; ``pairs`` are parameters that may be padding in pairs."""
    padding = arguments.get("padding")
    value = _value(padding)
    if isinstance(padding, ast.Name) and padding.id in pairs:
        if "Transpose" in name:
            raise refused(name, "expected equal padding on both sides")
        return _call(f"_Padded{name}", arguments, 2)
    if value is None:  # no literal, or computed by the constructor
        return _call(f"nn.{name}", arguments, 2)
    if isinstance(value, str):
        stride = arguments.get("stride")
        if value == "same_upper" and (stride is None or _value(stride) == 1):
            return _call(
                f"nn.{name}", {**arguments, "padding": ast.Constant("same")}, 2
            )
        raise refused(name, f"expected padding in numbers, got {value!r}")
    if is_symmetric(value):
        sides = expression_of(literal(symmetric(value)))
        return _call(f"nn.{name}", {**arguments, "padding": sides}, 2)
    if "Transpose" in name:
        raise refused(name, f"expected equal padding on both sides, got {value}")
    return _call(f"_Padded{name}", arguments, 2)


def _pool(name: str, arguments: Arguments, pairs: Collection[str] = ()) -> ast.expr:
    node = arguments.get("padding")
    if isinstance(node, ast.Name) and node.id in pairs:
        raise refused(name, "expected equal padding on both sides")
    padding = _value(node) or 0
    if isinstance(padding, str) or not is_symmetric(padding):
        raise refused(name, f"expected equal padding on both sides, got {padding!r}")
    if padding:
        arguments["padding"] = expression_of(literal(symmetric(padding)))
    return _call(f"nn.{name}", arguments)


def _instance_norm(name: str, arguments: Arguments, pairs: Collection[str]) -> ast.expr:
    arguments.setdefault("affine", ast.Constant(True))
    return _call(f"nn.{name}", arguments, 1)


def _lrn(name: str, arguments: Arguments, pairs: Collection[str]) -> ast.expr:
    size = _value(arguments["size"])
    if size is None or size % 2 == 0:
        raise refused(name, f"expected an odd size, got {size}")
    return _call(f"nn.{name}", arguments, 1)


def _without_seed(name: str, arguments: Arguments, pairs: Collection[str]) -> ast.expr:
    arguments.pop("seed", None)
    if "dtype" in arguments:
        raise refused(name, "expected numbers of the input's dtype")
    return _call(f"nn.{name}" if name in DROPOUTS else f"_{name}", arguments)


def _helper(name: str, arguments: Arguments, pairs: Collection[str]) -> ast.expr:
    return _call(f"_{name}", arguments, 2)


def _quantized_conv(
    name: str, arguments: Arguments, pairs: Collection[str]
) -> ast.expr:
    rank = ast.Constant(int(name[-2]))
    return _call(f"_{name[:-2]}", {**arguments, "rank": rank}, 2)


def _quantizer(name: str, arguments: Arguments, pairs: Collection[str]) -> ast.expr:
    if "dtype" in arguments:
        raise refused(name, "expected numbers of float32")
    return _call(f"_{name}", arguments)


ROWS: Mapping[str, Row] = {
    **dict.fromkeys(("Conv1d", "Conv2d", "Conv3d"), _conv),
    **dict.fromkeys((f"ConvTranspose{n}d" for n in (1, 2, 3)), _conv),
    **dict.fromkeys((f"MaxPool{n}d" for n in (1, 2, 3)), _pool),
    **dict.fromkeys((f"AvgPool{n}d" for n in (1, 2, 3)), _pool),
    **dict.fromkeys((f"InstanceNorm{n}d" for n in (1, 2, 3)), _instance_norm),
    "LocalResponseNorm": _lrn,
    "Conv1D": _helper,
    **dict.fromkeys((f"DynamicQuantizedConv{n}d" for n in (1, 2, 3)), _quantized_conv),
    "DynamicQuantizedLinear": _helper,
    "QuantizedLinear": _helper,
    **dict.fromkeys((f"QLinearConv{n}d" for n in (1, 2, 3)), _quantized_conv),
    "QLinearMatMul": _helper,
    "QuantizeDequantize": _quantizer,
    **dict.fromkeys((f"WeightQuantizedConv{n}d" for n in (1, 2, 3)), _quantized_conv),
    "WeightQuantizedEmbedding": _helper,
    "WeightQuantizedLinear": _helper,
    "GlobalAvgPool": _helper,
    **dict.fromkeys(DROPOUTS, _without_seed),
    "Attention": _without_seed,
    "RandomNormalLike": _without_seed,
    "RandomUniformLike": _without_seed,
}


@cache
def _parameters(name: str) -> tuple[str, ...]:
    return tuple(inspect.signature(getattr(nn, name)).parameters)


def _bind_arguments(name: str, node: ast.Call) -> Arguments:
    """Return the arguments of a constructor by the names of its parameters."""
    arguments = dict(zip(_parameters(name), node.args, strict=False))
    return arguments | {str(k.arg): k.value for k in node.keywords}


class Translator(ast.NodeTransformer):
    """A translator from constructors of ``burn.nn`` to those of ``torch.nn``.

    Raises:
        UnsupportedModel: PyTorch has no such layer.
    """

    def __init__(self, pairs: Collection[str] = ()) -> None:
        """``pairs`` are the constructor's parameters that may be pairs of numbers."""
        self.pairs = pairs

    def visit_Call(self, node: ast.Call) -> ast.AST:  # noqa: N802
        name = _member(node.func, "nn")
        self.generic_visit(node)
        if not name:
            return node
        if name in ("parameter", "buffer"):
            return _stored_tensor(name, node)
        if name == "ModuleTuple":
            return ast.Call(expression_of("nn.ModuleList"), [ast.List(node.args)], [])
        if name == "ParameterList":
            return _parameter_list(node)
        if name in SAME:
            renamed = RENAMED.get(name, {})
            for keyword in node.keywords:
                keyword.arg = renamed.get(keyword.arg or "", keyword.arg)
            return node
        if name in ROWS:
            return ROWS[name](name, _bind_arguments(name, node), self.pairs)
        raise refused(name, "PyTorch has no such layer")

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:  # noqa: N802
        step = _member(node, "ops")
        if step:
            if step not in STEPS:
                raise refused("Sequential", f"PyTorch has no module for {step!r}")
            return expression_of(STEPS[step])
        kind = _member(node, "burn")
        if kind:
            return expression_of(f"torch.{dtype_name(getattr(dtypes, kind))}")
        if _member(node, "nn") == "ModuleTuple":
            return expression_of("nn.ModuleList")
        return node


def _member(node: ast.expr, module: str) -> str:
    """Return the name in ``module.name``, "" for other expressions."""
    is_one = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
    if is_one and node.value.id == module:  # type: ignore[attr-defined]
        return str(node.attr)  # type: ignore[attr-defined]
    return ""


def _stored_tensor(name: str, node: ast.Call) -> ast.expr:
    """Return ``nn.Parameter(torch.empty(3, 4))`` for ``nn.parameter(3, 4)``."""
    arguments = {str(k.arg): k.value for k in node.keywords}
    shape = node.args or [expression_of("()")]
    dtype = [ast.keyword("dtype", arguments["dtype"])] if "dtype" in arguments else []
    empty = ast.Call(expression_of("torch.empty"), shape, dtype)
    if name == "parameter":
        return ast.Call(expression_of("nn.Parameter"), [empty], [])
    keywords = [k for k in node.keywords if k.arg == "persistent"]
    return ast.Call(expression_of("nn.Buffer"), [empty], keywords)


def _parameter_list(node: ast.Call) -> ast.expr:
    text = ast.unparse(node)
    if "nn.Buffer(" in text or "None" in text:
        raise refused("ParameterList", "expected parameters alone")
    return node
