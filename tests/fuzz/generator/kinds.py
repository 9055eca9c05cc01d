"""Values that are no plain tensors of float32: optional, lists, texts, few bits."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from tests.fuzz.generator.builder import Builder
from tests.fuzz.generator.trial import Rejected
from tests.fuzz.generator.values import Array, Value

TEXTS = ("", "a", "Apple", "été", "b c", "12", "-3.5", "None", "x,y", "ÀÉ", "'\"\\")
#: Types of few bits with the first opset at which QuantizeLinear has them.
FEW_BITS = {
    TensorProto.INT8: 10,
    TensorProto.UINT8: 10,
    TensorProto.FLOAT8E4M3FN: 19,
    TensorProto.FLOAT8E5M2: 19,
    TensorProto.INT16: 21,
    TensorProto.UINT16: 21,
    TensorProto.INT4: 21,
    TensorProto.UINT4: 21,
}
#: Types that float32 is cast to and back.
CASTS = {
    TensorProto.FLOAT16: 9,
    TensorProto.DOUBLE: 9,
    TensorProto.BFLOAT16: 13,
    TensorProto.FLOAT8E4M3FN: 19,
    TensorProto.FLOAT8E5M2: 19,
    TensorProto.FLOAT8E4M3FNUZ: 19,
    TensorProto.FLOAT8E5M2FNUZ: 19,
}


def _float(builder: Builder, wanted: Callable[[Value], bool] | None = None) -> Value:
    def fits(value: Value) -> bool:
        plain = value.is_tensor and value.dtype == np.float32
        return plain and (wanted is None or wanted(value))

    value = builder.choose(fits)
    if value is None:
        raise Rejected("no tensor of float32")
    return value


def add_optional(builder: Builder) -> None:
    """Add an optional value, whether it holds something, and what it holds.

    Raises:
        Rejected: these operators are not there.
    """
    if builder.opset < 15:
        raise Rejected("no optional values")
    source, rng = _float(builder), builder.random
    names = [builder.shared.fresh() for _ in range(4)]
    inner = source.name
    nodes = []
    if rng.random() < 0.4:
        inner = names[3]
        nodes.append(helper.make_node("SequenceConstruct", [source.name] * 2, [inner]))
    nodes.append(helper.make_node("Optional", [inner], names[:1]))
    nodes.append(helper.make_node("OptionalHasElement", names[:1], names[1:2]))
    nodes.append(helper.make_node("OptionalGetElement", names[:1], names[2:3]))
    builder.try_nodes(nodes, names[1:3])


def add_list_input(builder: Builder) -> None:
    """Add an input that is a list of tensors, of another length in the second run."""
    rng, shared = builder.rng, builder.shared
    width = builder.random.randint(1, 4)
    same = builder.random.random() < 0.5

    def items(count: int) -> list[Array]:
        rows = [2 if same else builder.random.randint(1, 3) for _ in range(count)]
        return [rng.standard_normal((n, width)).astype(np.float32) for n in rows]

    exact, other = (items(builder.random.randint(1, 4)) for _ in range(2))
    value = Value(shared.fresh("list"), (exact, exact, other, other), "input")
    builder.root.inputs[value.name] = (value, [])
    builder.root.pool.append(value)


def add_list_nodes(builder: Builder) -> None:
    """Add a node on a list: an item, a longer or shorter one, all joined, the length.

    Raises:
        Rejected: there is no list, or the node does not run.
    """
    if builder.opset < 11:
        raise Rejected("no lists")
    value = builder.choose(lambda v: not v.is_tensor)
    if value is None or builder.random.random() < 0.2:
        add_list_input(builder)
        value = builder.root.pool[-1]
    rng = builder.random
    index = builder.add_constant(np.array(rng.choice((0, -1)), np.int64)).name
    way = rng.choice(("at", "insert", "erase", "join", "length", "map"))
    if way == "at":
        builder.try_node("SequenceAt", [value.name, index])
    elif way == "insert":
        item = builder.try_node("SequenceAt", [value.name, index])[0].name
        places = [index] if rng.random() < 0.5 else []
        builder.try_node("SequenceInsert", [value.name, item, *places])
    elif way == "erase":
        places = [index] if rng.random() < 0.5 else []
        builder.try_node("SequenceErase", [value.name, *places])
    elif way == "join":
        axis = rng.choice((0, 0, 1, -1))
        builder.try_node("ConcatFromSequence", [value.name], axis=axis)
    elif way == "length":
        builder.try_node("SequenceLength", [value.name])
    else:
        _map(builder, value)


def _map(builder: Builder, value: Value) -> None:
    if builder.opset < 17:
        raise Rejected("no SequenceMap")
    names = [builder.shared.fresh("item"), builder.shared.fresh()]
    infos = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in names]
    op = builder.random.choice(("Tanh", "Abs", "Transpose", "Softmax"))
    body = helper.make_graph(
        [helper.make_node(op, names[:1], names[1:])], "body", infos[:1], infos[1:]
    )
    builder.try_node("SequenceMap", [value.name], body=body)


def add_texts(builder: Builder) -> None:
    """Add a node on texts, which are an input or stored.

    Raises:
        Rejected: the node is not there, or does not run.
    """
    rng = builder.random
    value = builder.choose(lambda v: v.is_tensor and v.dtype == object)
    if value is None or rng.random() < 0.3:
        array = np.array([rng.choice(TEXTS) for _ in range(3)], object)
        values = builder.add_constant if rng.random() < 0.3 else builder.add_input
        value = values(array)
    other = builder.choose(lambda v: v.is_tensor and v.dtype == object) or value
    ways: list[tuple[int, Callable[[], Any]]] = [
        (9, lambda: builder.try_node("Identity", [value.name])),
        (9, lambda: builder.try_node("Concat", [value.name, other.name], axis=0)),
        (10, lambda: builder.try_node("StringNormalizer", [value.name], **_case(rng))),
        (11, lambda: _looked_up(builder, value)),
        (19, lambda: builder.try_node("Equal", [value.name, other.name])),
        (20, lambda: builder.try_node("StringConcat", [value.name, other.name])),
        (20, lambda: builder.try_node("StringSplit", [value.name], 2)),
        (
            20,
            lambda: builder.try_node("RegexFullMatch", [value.name], pattern="[a-z]+"),
        ),
    ]
    _, add = rng.choice([way for way in ways if way[0] <= builder.opset] or ways[:1])
    add()


def _case(rng: Any) -> dict[str, Any]:
    attrs: dict[str, Any] = {"case_change_action": rng.choice(("LOWER", "UPPER"))}
    if rng.random() < 0.4:
        attrs |= {"stopwords": ["a"], "is_case_sensitive": rng.randint(0, 1)}
    return attrs


def _looked_up(builder: Builder, value: Value) -> None:
    index = builder.add_constant(np.array([0, -1, 0], np.int64)).name
    builder.try_node("Gather", [value.name, index], axis=0)


def add_quantized(builder: Builder) -> None:
    """Add a quantization to few bits and its inverse, of stored or computed numbers.

    Numbers are near the middle between two borders, so that noise moves none over one.

    Raises:
        Rejected: the types are not there.
    """
    rng, opset = builder.random, builder.opset
    kinds = [kind for kind, first in FEW_BITS.items() if first <= opset]
    if not kinds:
        raise Rejected("no quantization")
    kind = rng.choice(kinds)
    rows, width = rng.randint(1, 4), rng.choice((2, 4))
    scale = rng.choice((0.5, 0.1, 0.03))
    steps = builder.rng.integers(-6, 7, (rows, width))
    array = (scale * (steps + 0.1 * builder.rng.random((rows, width)))).astype("f4")
    add = builder.add_constant if rng.random() < 0.5 else builder.add_input
    source = add(array).name
    names = [builder.shared.fresh() for _ in range(2)]
    by_axis = rng.random() < 0.4 and opset >= 13
    scales = np.full((width,) if by_axis else (), scale, np.float32)
    operands = [builder.add_constant(scales).name]
    zero = builder.shared.fresh("zero")
    wide = kind in (TensorProto.UINT8, TensorProto.UINT16)
    number = 8 if wide or kind == TensorProto.UINT4 else 0
    tensor = helper.make_tensor(zero, kind, scales.shape, [number] * scales.size)
    attrs: dict[str, Any] = {"axis": 1} if by_axis else {}
    nodes = [
        helper.make_node("Constant", [], [zero], value=tensor),
        helper.make_node(
            "QuantizeLinear", [source, *operands, zero], names[:1], **attrs
        ),
        helper.make_node(
            "DequantizeLinear", [names[0], *operands, zero], names[1:], **attrs
        ),
    ]
    builder.try_nodes(nodes, names[1:])


def add_casts(builder: Builder) -> None:
    """Add casts to another floating type and back.

    Raises:
        Rejected: they do not run.
    """
    rng = builder.random
    kinds = [kind for kind, first in CASTS.items() if first <= builder.opset]
    if not kinds:
        raise Rejected("no such casts")
    names = [builder.shared.fresh() for _ in range(2)]
    # Quarters: all of these types hold them, and noise rounds to the same ones.
    array = builder.rng.integers(-7, 8, (3, 2)) / 4
    add = builder.add_constant if rng.random() < 0.5 else builder.add_input
    source = add(array.astype(np.float32)).name
    nodes = [
        helper.make_node("Cast", [source], names[:1], to=rng.choice(kinds)),
        helper.make_node("Cast", names[:1], names[1:], to=TensorProto.FLOAT),
    ]
    builder.try_nodes(nodes, names[1:])


def add_stored_bits(builder: Builder) -> None:
    """Add a product with a stored weight of few bits, scaled by columns or blocks.

    Raises:
        Rejected: the types are not there, or nothing fits.
    """
    rng = builder.random
    if builder.opset < 21:
        raise Rejected("no types of few bits")
    x = _float(builder, lambda v: v.rank >= 2 and _is_even(v))
    size = x.shapes[0][-1]
    kind = rng.choice((TensorProto.INT4, TensorProto.UINT4, TensorProto.FLOAT8E4M3FN))
    low = 0 if kind == TensorProto.UINT4 else -7
    numbers = builder.rng.integers(low, 8, (size, 3))
    names = [builder.shared.fresh() for _ in range(3)]
    tensor = helper.make_tensor(names[0], kind, numbers.shape, numbers.ravel().tolist())
    blocks = rng.random() < 0.5
    scales = builder.rng.random((size // 2, 3) if blocks else (3,)).astype("f4") + 0.1
    attrs: dict[str, Any] = {"axis": 0, "block_size": 2} if blocks else {"axis": 1}
    scale = builder.add_constant(scales).name
    nodes = [
        helper.make_node("Constant", [], names[:1], value=tensor),
        helper.make_node("DequantizeLinear", [names[0], scale], names[1:2], **attrs),
        helper.make_node("MatMul", [x.name, names[1]], names[2:]),
    ]
    builder.try_nodes(nodes, names[2:])


def _is_even(value: Value) -> bool:
    return all(shape[-1] == value.shapes[0][-1] for shape in value.shapes) and (
        value.shapes[0][-1] % 2 == 0 and value.shapes[0][-1] > 0
    )
