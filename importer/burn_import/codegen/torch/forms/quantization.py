"""Forms of quantized primitives: helpers with the same parameters."""

from typing import Any

from burn import ops
from burn.dtypes import float32, uint8
from burn_import.codegen.torch.registry import form, refusal, torch_dtype, unless
from burn_import.codegen.torch.renderer import TorchRenderer
from burn_import.tracing.expression import Expression
from burn_import.tracing.identifiers import literal
from burn_import.tracing.trace import Apply


def _tensors(r: TorchRenderer, call: Apply) -> list[Expression]:
    """Return the operands of a call, with None for omitted ones."""
    return [Expression("None") if arg is None else r.tensor(arg) for arg in call.args]


@form(ops.quantize, ops.dequantize)
def quantize(r: TorchRenderer, call: Apply) -> Expression:
    arguments, name = r.named_arguments(call), call.primitive.name
    if arguments.get("precision", float32) != float32 or not arguments.get(
        "saturate", True
    ):
        raise refusal(call, "expected quotients of float32, in range")
    keywords: dict[str, Any] = {
        "dtype": torch_dtype(arguments["dtype"]),
        "axis": unless(arguments["axis"], 1),
        "block_size": unless(arguments["block_size"], 0),
    }
    if arguments["dtype"] == (uint8 if name == "quantize" else float32):
        del keywords["dtype"]
    return r.call(f"_{name}", _tensors(r, call), keywords)


@form(ops.quantization_range, ops.integer_matmul)
def plain(r: TorchRenderer, call: Apply) -> Expression:
    return r.call(f"_{call.primitive.name}", _tensors(r, call))


@form(ops.integer_conv, ops.quantized_conv, ops.quantized_matmul)
def integer_conv(r: TorchRenderer, call: Apply) -> Expression:
    arguments = r.named_arguments(call)
    if isinstance(arguments.get("padding"), str):
        raise refusal(
            call, f"expected padding in numbers, got {arguments['padding']!r}"
        )
    keywords: dict[str, Any] = {
        name: literal(call.static[name])
        for name in ("stride", "padding", "dilation", "groups")
        if name in call.static
    }
    if "dtype" in arguments and arguments["dtype"] != uint8:
        keywords["dtype"] = torch_dtype(arguments["dtype"])
    return r.call(f"_{call.primitive.name}", _tensors(r, call), keywords)
