"""Layers with weights: linear, convolutional and recurrent layers, embeddings."""

from typing import Any

from burn import dtypes
from burn.ops.window import pads_of, per_axis
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand, static_integers


@form("matmul")
def matmul(w: GraphWriter, x: Operand, y: Operand) -> Operand:
    out = w.out[0][1]
    return w.node("MatMul", w.cast(x, out), w.cast(y, out))


@form("linear")
def linear(
    w: GraphWriter, x: Operand, weight: Operand, bias: Operand | None = None
) -> Operand:
    out = w.out[0][1]
    x, weight = w.cast(x, out), w.cast(weight, out)
    bias = None if bias is None else w.cast(bias, out)
    if x.rank == 2 and dtypes.is_float(out):
        return w.node("Gemm", x, weight, bias, transB=1)
    product = w.node("MatMul", x, w.node("Transpose", weight, perm=[1, 0]))
    return product if bias is None else w.node("Add", product, bias)


@form("einsum")
def einsum(w: GraphWriter, equation: str, xs: list[Operand]) -> Operand:
    out = w.out[0][1]
    return w.node("Einsum", *(w.cast(x, out) for x in xs), equation=equation)


@form("embedding")
def embedding(w: GraphWriter, weight: Operand, indices: Operand, **_: Any) -> Operand:
    return w.node("Gather", weight, w.cast(indices, dtypes.int64), axis=0)


def window_attributes(
    w: GraphWriter, rank: int, padding: Any, **extents: Any
) -> dict[str, Any]:
    """Return strides, dilations and pads in ONNX's form."""
    attrs: dict[str, Any] = {
        name: list(static_integers(w, per_axis(value, rank)))
        for name, value in extents.items()
    }
    if isinstance(padding, str):
        return attrs | {"auto_pad": padding.upper()}
    pads = pads_of(padding, rank)
    flat = [before for before, _ in pads] + [after for _, after in pads]
    if min(flat, default=0) < 0:
        raise w.refuse(f"has negative padding {padding}")
    return attrs | {"pads": flat}


@form("conv")
def conv(
    w: GraphWriter,
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Operand:
    attrs = window_attributes(
        w, x.rank - 2, padding, strides=stride, dilations=dilation
    )
    kernel = static_integers(w, weight.shape[2:])
    return w.node("Conv", x, weight, bias, kernel_shape=kernel, group=groups, **attrs)


@form("conv_transpose")
def conv_transpose(
    w: GraphWriter,
    x: Operand,
    weight: Operand,
    bias: Operand | None = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    output_padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Operand:
    attrs = window_attributes(
        *(w, x.rank - 2, padding),
        strides=stride,
        dilations=dilation,
        output_padding=output_padding,
    )
    kernel = static_integers(w, weight.shape[2:])
    return w.node(
        "ConvTranspose", x, weight, bias, kernel_shape=kernel, group=groups, **attrs
    )


@form("integer_matmul")
def integer_matmul(
    w: GraphWriter,
    x: Operand,
    y: Operand,
    x_zero_point: Any = None,
    y_zero_point: Any = None,
) -> Operand:
    zeros = _zero_points(w, (x, x_zero_point), (y, y_zero_point))
    return w.node("MatMulInteger", x, y, *zeros, dtype=dtypes.int32)


@form("integer_conv")
def integer_conv(
    w: GraphWriter,
    x: Operand,
    weight: Operand,
    x_zero_point: Any = None,
    weight_zero_point: Any = None,
    *,
    stride: Any = 1,
    padding: Any = 0,
    dilation: Any = 1,
    groups: int = 1,
) -> Operand:
    attrs = window_attributes(
        w, x.rank - 2, padding, strides=stride, dilations=dilation
    )
    zeros = _zero_points(w, (x, x_zero_point), (weight, weight_zero_point))
    kernel = static_integers(w, weight.shape[2:])
    return w.node(
        *("ConvInteger", x, weight, *zeros),
        dtype=dtypes.int32,
        kernel_shape=kernel,
        group=groups,
        **attrs,
    )


def _zero_points(w: GraphWriter, *pairs: tuple[Operand, Any]) -> list[Operand | None]:
    return [None if zero is None else w.scalar(zero, x.dtype) for x, zero in pairs]


@form("lstm")
def lstm(
    w: GraphWriter,
    x: Operand,
    weights: Operand,
    r: Operand,
    b: Operand | None = None,
    h0: Operand | None = None,
    c0: Operand | None = None,
    seq_lens: Operand | None = None,
    peephole: Operand | None = None,
    **options: Any,
) -> list[Operand]:
    states = [h0, c0]
    return _recurrent(
        w, "LSTM", x, (weights, r, b), seq_lens, states, [peephole], options
    )


@form("gru", "rnn")
def gru(
    w: GraphWriter,
    x: Operand,
    weights: Operand,
    r: Operand,
    b: Operand | None = None,
    h0: Operand | None = None,
    seq_lens: Operand | None = None,
    **options: Any,
) -> list[Operand]:
    op = w.primitive.upper()
    return _recurrent(w, op, x, (weights, r, b), seq_lens, [h0], [], options)


def _recurrent(
    w: GraphWriter,
    op: str,
    x: Operand,
    weights: Any,
    seq_lens: Operand | None,
    states: list[Operand | None],
    last: list[Operand | None],
    options: dict[str, Any],
) -> list[Operand]:
    """Write a recurrent layer, time axis first: runtimes lack ``layout=1``."""
    options = {k: v for k, v in options.items() if v is not None}
    batch_first = options.pop("layout", 0)
    attrs: dict[str, Any] = {
        k: int(v) if isinstance(v, bool) else v for k, v in options.items()
    }
    attrs["hidden_size"] = static_integers(w, weights[1].shape[2])[0]
    if batch_first:
        x = w.node("Transpose", x, perm=[1, 0, 2])
        states = [s and w.node("Transpose", s, perm=[1, 0, 2]) for s in states]
    lengths = None if seq_lens is None else w.cast(seq_lens, dtypes.int32)
    inputs = [x, *weights, lengths, *states, *last]
    results = w.node_of(op, inputs, 1 + len(states), **attrs)
    if batch_first:
        every = w.node("Transpose", results[0], perm=[2, 0, 1, 3])
        ends = [w.node("Transpose", s, perm=[1, 0, 2]) for s in results[1:]]
        results = [every, *ends]
    return results
