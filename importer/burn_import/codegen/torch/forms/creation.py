"""Forms of primitives that create tensors of a given shape and value."""

from typing import Any

from burn import Tensor, ops
from burn_import.codegen.torch.registry import form, torch_dtype
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.expression import ATOM, Expression
from burn_import.tracing.trace import Apply


def _on_input_device(r: TorchRenderer, call: Expression) -> Expression:
    """Return ``call`` with the device of the inputs."""
    text = call.text.removesuffix(")") + r.device() + ")"
    return Expression(text, ATOM, call.symbols)


def _dtype(dtype: Any) -> str | None:
    return None if dtype is None else torch_dtype(dtype)


@form(ops.full)
def full(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    shape, dtype = r.integers(arguments["shape"]), arguments["dtype"]
    value = r.number_or_tensor(arguments["value"])
    default = r.dtype(arguments["value"])
    if isinstance(arguments["value"], Tensor) and r.is_named(arguments["value"]):
        one = r.method_call(value, "reshape", [Expression("()")])
        if dtype is not None:
            one = r.method_call(one, "to", [r.static(dtype)])
        return r.method_call(one, "expand", [shape])
    kind = _dtype(dtype or default)
    kind = None if kind and _is_natural(value.text, kind) else kind
    return _on_input_device(r, r.call("torch.full", [shape, value], {"dtype": kind}))


def _is_natural(number: str, dtype: str) -> bool:
    """Return whether ``torch.full`` infers ``dtype`` for the literal."""
    if number in ("True", "False"):
        return dtype == "torch.bool"
    is_float = any(c in number for c in ".en")
    return dtype == ("torch.float32" if is_float else "torch.int64")


@form(ops.full_like)
def full_like(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    value = r.number_or_tensor(arguments["value"])
    if isinstance(arguments["value"], Tensor) and r.is_named(arguments["value"]):
        value = r.method_call(value, "item")
    keywords = {"dtype": _dtype(arguments["dtype"])}
    return r.call("torch.full_like", [r.data(arguments["x"]), value], keywords)


@form(ops.arange)
def arange(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [arguments["start"]]
    if arguments["stop"] is not None:
        args.append(arguments["stop"])
    is_one = not isinstance(arguments["step"], Tensor) and arguments["step"] == 1
    if not is_one:
        args.append(arguments["step"])
    target = call.targets[0].type
    dtype = arguments["dtype"] or (None if target is None else target.dtype)
    texts = [_number(r, arg) for arg in args]
    kind = _dtype(dtype)
    whole = all("." not in text.text and "(" not in text.text for text in texts)
    if kind == "torch.int64" and whole:
        kind = None
    return _on_input_device(r, r.call("torch.arange", texts, {"dtype": kind}))


def _number(r: TorchRenderer, arg: Any) -> Expression:
    """Return an operand as a Python number, read from a tensor if necessary."""
    if isinstance(arg, Tensor) and r.is_named(arg):
        return r.method_call(r.data(arg), "item")
    return r.number_or_tensor(arg)


@form(ops.eye)
def eye(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    rows = r.integer(arguments["rows"])
    columns = rows if arguments["columns"] is None else r.integer(arguments["columns"])
    keywords = {"dtype": torch_dtype(arguments["dtype"])}
    return _on_input_device(
        r, r.call("_eye", [rows, columns, r.integer(arguments["k"])], keywords)
    )


@form(ops.array)
def array(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    keywords = {"dtype": torch_dtype(arguments["dtype"])}
    return _on_input_device(
        r, r.call("torch.tensor", [r.host(arguments["values"])], keywords)
    )


@form(ops.shape, ops.size)
def extents(r: TorchRenderer, call: Apply) -> Expression:
    x = r.data(call.args[0])
    member = "shape" if call.primitive is ops.shape else "numel()"
    r.modules.add("torch")
    text = f"torch.tensor({x.inside(ATOM)}.{member})"
    return _on_input_device(r, Expression(text, ATOM, x.symbols))


@form(ops.one_hot)
def one_hot(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    args = [r.tensor(arguments["indices"]), r.integer(arguments["depth"])]
    if arguments["values"] is not None:
        args.append(r.tensor(arguments["values"]))
    return r.call("_one_hot", args, {"dim": str(arguments["axis"])})
