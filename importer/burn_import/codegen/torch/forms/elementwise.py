"""Forms of elementwise primitives."""

import math
from collections.abc import Mapping
from typing import Any

from burn import Tensor, ops
from burn.methods import SPELLINGS
from burn_import.codegen.torch.registry import form, unless
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.scalar_operands import is_number
from burn_import.tracing.trace import Apply

#: PyTorch's function for each primitive with only tensor arguments.
SIMPLE: Mapping[Any, str] = {
    ops.abs: "torch.abs",
    ops.acos: "torch.acos",
    ops.acosh: "torch.acosh",
    ops.asin: "torch.asin",
    ops.asinh: "torch.asinh",
    ops.atan: "torch.atan",
    ops.atanh: "torch.atanh",
    ops.bitwise_and: "torch.bitwise_and",
    ops.bitwise_left_shift: "torch.bitwise_left_shift",
    ops.bitwise_not: "torch.bitwise_not",
    ops.bitwise_or: "torch.bitwise_or",
    ops.bitwise_right_shift: "torch.bitwise_right_shift",
    ops.bitwise_xor: "torch.bitwise_xor",
    ops.ceil: "torch.ceil",
    ops.cos: "torch.cos",
    ops.cosh: "torch.cosh",
    ops.det: "torch.linalg.det",
    ops.erf: "torch.erf",
    ops.expm1: "torch.expm1",
    ops.log1p: "torch.log1p",
    ops.exp: "torch.exp",
    ops.floor: "torch.floor",
    ops.fmod: "torch.fmod",
    ops.hard_swish: "F.hardswish",
    ops.inverse: "torch.linalg.inv",
    ops.isinf: "torch.isinf",
    ops.isnan: "torch.isnan",
    ops.log: "torch.log",
    ops.mish: "F.mish",
    ops.prelu: "_prelu",
    ops.quick_gelu: "_quick_gelu",
    ops.reciprocal: "torch.reciprocal",
    ops.relu: "F.relu",
    ops.round: "torch.round",
    ops.sigmoid: "torch.sigmoid",
    ops.sign: "torch.sign",
    ops.silu: "F.silu",
    ops.sin: "torch.sin",
    ops.sinh: "torch.sinh",
    ops.softplus: "F.softplus",
    ops.softsign: "F.softsign",
    ops.solve: "torch.linalg.solve",
    ops.sqrt: "torch.sqrt",
    ops.tan: "torch.tan",
    ops.tanh: "torch.tanh",
    ops.trunc: "torch.trunc",
}
INFIX = (
    *(ops.add, ops.sub, ops.mul, ops.div, ops.floor_div, ops.remainder, ops.matmul),
    *(ops.pow, ops.logical_and, ops.logical_or, ops.logical_xor),
    *(ops.equal, ops.not_equal),
    *(ops.less, ops.less_equal, ops.greater, ops.greater_equal),
)


@form(*SIMPLE)
def simple(r: TorchRenderer, call: Apply) -> Expression:
    head = next(text for p, text in SIMPLE.items() if p is call.primitive)
    return r.call(head, [r.tensor(arg) for arg in call.args])


@form(*INFIX)
def infix(r: TorchRenderer, call: Apply) -> Expression:
    spelling = SPELLINGS[call.primitive.name]
    left, right = r.arguments(call)
    return left.infix(spelling.text, right, spelling.precedence)


@form(ops.neg, ops.logical_not)
def prefix(r: TorchRenderer, call: Apply) -> Expression:
    spelling = SPELLINGS[call.primitive.name]
    return r.data(call.args[0]).prefixed(spelling.text, spelling.precedence)


@form(ops.trunc_div)
def trunc_div(r: TorchRenderer, call: Apply) -> Expression:
    left, right = r.arguments(call)
    return r.call("torch.div", [left, right], {"rounding_mode": '"trunc"'})


@form(ops.where)
def where(r: TorchRenderer, call: Apply) -> Expression:
    return r.call("torch.where", r.arguments(call))


@form(ops.maximum, ops.minimum)
def extremum(r: TorchRenderer, call: Apply) -> Expression:
    """Return ``x.clamp(min=0)`` for a number, else ``torch.maximum(x, y)``."""
    name = call.primitive.name
    arguments = r.arguments(call)
    numbers = [
        is_number(arg)
        and not (isinstance(arg, Tensor) and r.is_named(arg))
        and not text.text.startswith("torch.tensor(")
        for arg, text in zip(call.args, arguments, strict=True)
    ]
    for one, other in ((0, 1), (1, 0)):
        if numbers[one] and not numbers[other]:
            bound = "min" if name == "maximum" else "max"
            return r.method_call(arguments[other], "clamp", [], {bound: arguments[one]})
    return r.call(f"torch.{name}", arguments)


def _is_number(expression: Expression) -> bool:
    text = expression.text.lstrip("-")
    return text[:1].isdigit() or text == "math.inf"


@form(ops.clip)
def clip(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    result = r.data(arguments["x"])
    bounds = {
        name: r.number_or_tensor(arguments[key])
        for name, key in (("min", "low"), ("max", "high"))
        if arguments[key] is not None
    }
    mixed = len({_is_number(bound) for bound in bounds.values()}) > 1
    for some in [{n: b} for n, b in bounds.items()] if mixed else [bounds]:
        result = r.method_call(result, "clamp", [], some)
    return result


@form(ops.cast)
def cast(r: TorchRenderer, call: Apply) -> Expression:
    dtype = r.static(call.static["dtype"])
    return r.method_call(r.tensor(call.args[0]), "to", [dtype])


@form(ops.bitcast)
def bitcast(r: TorchRenderer, call: Apply) -> Expression:
    dtype = r.static(call.static["dtype"])
    return r.method_call(r.tensor(call.args[0]), "view", [dtype])


@form(ops.detach)
def detach(r: TorchRenderer, call: Apply) -> Expression:
    return r.method_call(r.tensor(call.args[0]), "detach")


def _with_option(r: TorchRenderer, call: Apply, head: str, **names: str) -> Expression:
    """Return a call with the options that differ from PyTorch's defaults."""
    arguments = r.named_arguments(call)
    options = {
        theirs: unless(arguments[ours], _DEFAULTS[head])
        for ours, theirs in names.items()
    }
    return r.call(head, [r.tensor(arguments["x"])], options)


_DEFAULTS: Mapping[str, Any] = {"F.leaky_relu": 0.01, "F.elu": 1.0, "F.celu": 1.0}


@form(ops.gelu)
def gelu(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    tanh = {"approximate": '"tanh"' if arguments["approximate"] == "tanh" else None}
    return r.call("F.gelu", [r.tensor(arguments["x"])], tanh)


@form(ops.leaky_relu)
def leaky_relu(r: TorchRenderer, call: Apply) -> Expression:
    return _with_option(r, call, "F.leaky_relu", alpha="negative_slope")


@form(ops.elu)
def elu(r: TorchRenderer, call: Apply) -> Expression:
    return _with_option(r, call, "F.elu", alpha="alpha")


@form(ops.celu)
def celu(r: TorchRenderer, call: Apply) -> Expression:
    return _with_option(r, call, "F.celu", alpha="alpha")


@form(ops.selu)
def selu(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    close = math.isclose(arguments["alpha"], 1.6732632423543772, rel_tol=1e-6)
    if close and math.isclose(arguments["gamma"], 1.0507009873554805, rel_tol=1e-6):
        return r.call("F.selu", [r.tensor(arguments["x"])])
    scale = r.static(arguments["gamma"])
    inner = r.call(
        "F.elu", [r.tensor(arguments["x"])], {"alpha": literal(arguments["alpha"])}
    )
    return inner.infix("*", scale, 13)


@form(ops.hard_sigmoid)
def hard_sigmoid(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    alpha, beta = arguments["alpha"], arguments["beta"]
    x = r.tensor(arguments["x"])
    if math.isclose(alpha, 1 / 6, rel_tol=1e-6) and beta == 0.5:
        return r.call("F.hardsigmoid", [x])
    line = x.infix("*", r.static(alpha), 13).infix("+", r.static(beta), 12)
    return r.method_call(line, "clamp", [r.static(0), r.static(1)])


@form(ops.thresholded_relu)
def thresholded_relu(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    return r.call(
        "F.threshold",
        [r.tensor(arguments["x"]), r.static(arguments["alpha"]), r.static(0.0)],
    )


@form(ops.shrink)
def shrink(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    keywords = {name: literal(arguments[name]) for name in ("bias", "lambd")}
    return r.call("_shrink", [r.tensor(arguments["x"])], keywords)


@form(ops.softmax, ops.log_softmax)
def softmax(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    if not isinstance(arguments["axis"], int):
        args = [r.tensor(arguments["x"]), r.integers(arguments["axis"])]
        return r.call(f"_{call.primitive.name}", args)
    axis = r.static(arguments["axis"])
    return r.call(f"F.{call.primitive.name}", [r.tensor(arguments["x"])], {"dim": axis})
