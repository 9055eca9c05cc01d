"""Fusion of dequantization, layer and quantization into integer layers."""

from typing import Any

import numpy as np

from burn.defaults import host
from burn.dtypes import int8, uint8
from burn.ops.conv import conv
from burn.ops.elementwise import add
from burn.ops.fused import conv_then, linear_then
from burn.ops.matmul import linear
from burn.ops.pool import max_pool
from burn.ops.qdq_layers import (
    conv_of_integers,
    from_integers,
    linear_of_integers,
    to_integers,
)
from burn.ops.quantize import dequantize, quantize
from burn.ops.shape import flatten, permute, reshape, squeeze, transpose, unsqueeze
from burn.plan.passes.fusion.epilogue_fusion import after_of, is_activation_step
from burn.plan.passes.graph import FLOAT32, Graph, pair_rule, step_rule
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace
from burn.tensor import Tensor

#: The integer primitive of each layer.
LAYERS: dict[Any, Any] = {
    conv: conv_of_integers,
    conv_then: conv_of_integers,
    linear: linear_of_integers,
    linear_then: linear_of_integers,
}
#: Primitives that commute with quantization.
_COMMUTING = frozenset(
    {max_pool, flatten, permute, reshape, squeeze, transpose, unsqueeze}
)


@step_rule
def form_integer_layers(step: Step, graph: Graph) -> list[Step] | None:
    """Replace layers of dequantized operands by integer layers."""
    if _is_quantization(step, graph):
        return _scaling_by_one(step, graph)
    primitive = LAYERS.get(step.primitive)
    if primitive is None or step.dtypes != (FLOAT32,):
        return None
    x, moves = _input(step.args[0], graph)
    weight, before = _weight(step.args[1], graph)
    if x is None or weight is None or graph.known(weight[0])[1] != int8:
        return None
    bias, residual = (*step.args[2:], None, None)[:2]
    args = (x, weight, bias, residual)
    return [*moves, *before, replace(step, primitive=primitive, args=args)]


def _input(value: Any, graph: Graph) -> tuple[Any, list[Step]]:
    """Return the integer input of a layer, and the steps that move its elements."""
    floats: list[Step] = []
    while (operand := _integers(value, graph)) is None:
        step = graph.maker.get(value.place) if type(value) is Slot else None
        if not isinstance(step, Step) or step.primitive not in _COMMUTING:
            return None, []
        floats.append(step)
        value = step.args[0]
    numbers, *scaling = operand
    moves: list[Step] = []
    for step in reversed(floats):
        numbers = _moved(step, numbers, graph, moves)
    return (numbers, *scaling), moves


def _moved(step: Step, numbers: Any, graph: Graph, moves: list[Step]) -> Slot:
    """Append ``step`` for integers in place of floats, and return its result."""
    new = graph.new_step(step.primitive, (numbers, *step.args[1:]), step.shapes[0])
    new = replace(new, static=step.static, dtypes=(graph.known(numbers)[1],))
    graph.maker[new.outputs[0]] = new
    moves.append(new)
    return Slot(new.outputs[0])


def _scaling_by_one(step: Step, graph: Graph) -> list[Step]:
    """Return a quantization by one scale, or [] if it inverts a dequantization."""
    x, dtype = step.args[0], step.dtypes[0]
    source = graph.maker.get(x.place) if type(x) is Slot else None
    if isinstance(source, Step) and source.primitive is dequantize:
        numbers = source.args[0]
        if _are_inverse(step, source) and graph.known(numbers)[1] == dtype:
            back = (numbers, step.shapes[0])
            return [replace(step, primitive=reshape, args=back, static={})]
    static = {"dtype": dtype}
    return [replace(step, primitive=to_integers, static=static)]


def _are_inverse(quantization: Step, dequantization: Step) -> bool:
    """Return whether two steps have the same scale and zero point."""
    pairs = zip(
        *((*step.args, None)[1:3] for step in (quantization, dequantization)),
        strict=True,
    )
    return all(a is b or (type(a) in (Slot, int) and a == b) for a, b in pairs)


def _integers(value: Any, graph: Graph, axis: int | None = None) -> Any:
    """Return the integer operand from which ``value`` is dequantized, or None.

    It has one scale, or one for each index of ``axis``.
    """
    step = graph.maker.get(value.place) if type(value) is Slot else None
    if not isinstance(step, Step) or step.primitive is not dequantize:
        return None
    numbers, scale, zero_point = (*step.args, None)[:3]
    if not _is_scaling(step, scale, zero_point, graph, axis):
        return None
    if graph.known(numbers)[1] not in (int8, uint8):
        return None
    return (numbers, scale, _zero(zero_point, graph.known(numbers)[1]))


def _zero(zero_point: Any, dtype: Any) -> Any:
    """Return a zero point as an operand, None for 0."""
    if type(zero_point) is not int:
        return zero_point
    return Tensor(np.array(zero_point, dtype), host()) if zero_point else None


def _is_scaling(
    step: Step, scale: Any, zero_point: Any, graph: Graph, axis: int | None = None
) -> bool:
    """Return whether ``step`` scales by a constant, or one per index of ``axis``."""
    shape, dtype = graph.known(scale)
    if shape is None or dtype != FLOAT32 or step.static.get("block_size", 0):
        return False
    if not graph.is_constant(scale):
        return False
    if type(zero_point) is not int and not graph.is_constant(zero_point):
        return False
    if shape in ((), (1,)):
        return True
    channel_axis = step.static.get("axis", 1) % len(
        graph.known(step.args[0])[0] or (1,)
    )
    return axis is not None and channel_axis == axis and len(shape) == 1


def _weight(value: Any, graph: Graph) -> tuple[Any, list[Step]]:
    """Return integer weights with a scale per output, and the steps of both."""
    operand = _integers(value, graph, 0)
    if operand is not None:
        return operand, []
    step = graph.maker.get(value.place) if type(value) is Slot else None
    if not isinstance(step, Step) or step.primitive is not transpose:
        return None, []
    source = _integers(step.args[0], graph, 1)
    if source is None or len(step.shapes[0]) != 2:
        return None, []
    moves: list[Step] = []
    return (_moved(step, source[0], graph, moves), *source[1:]), moves


@pair_rule
def hoist_quantization(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Move data movement and selection behind the quantization of their results."""
    if not _is_quantization(step, graph):
        return None
    before = graph.only_use(step.args[0])
    if before is None or before.primitive not in _COMMUTING:
        return None
    shape, dtype = graph.known(before.args[0])
    if shape is None or dtype != FLOAT32:
        return None
    index = graph.fresh()
    args = (before.args[0], *step.args[1:])
    first = replace(step, args=args, outputs=(index,), shapes=(shape,))
    then = replace(
        before,
        args=(Slot(index), *before.args[1:]),
        outputs=step.outputs,
        dtypes=step.dtypes,
    )
    return before, [first, then]


def _is_quantization(step: Step, graph: Graph) -> bool:
    """Return whether ``step`` quantizes to 8 bits with one constant scale."""
    if step.primitive not in (quantize, to_integers):
        return False
    if step.dtypes[0] not in (int8, uint8) or graph.known(step.args[0])[1] != FLOAT32:
        return False
    if step.static.get("precision", FLOAT32) != FLOAT32:
        return False
    scale, zero_point = (*step.args, None)[1:3]
    return _is_scaling(step, scale, zero_point, graph)


def _is_requantized(layer: Step) -> bool:
    """Return whether the result of an integer layer is quantized as well."""
    return len(layer.args) > 4 and layer.args[4] is not None


def _unquantized_layer(value: Any, graph: Graph) -> Step | None:
    """Return the integer layer with the floating result ``value``, read only once."""
    layer = graph.only_use(value)
    if layer is None or layer.primitive not in LAYERS.values():
        return None
    return None if _is_requantized(layer) else layer


@pair_rule
def fuse_sums(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Fuse additions into integer layers whose results were quantized before.

    The results are clipped to the range of the integers, but not rounded.
    """
    if step.primitive is not add or len(step.args) != 2:
        return None
    for value, other in (step.args, step.args[::-1]):
        wide = graph.only_use(value)
        narrow = None if wide is None else graph.only_use(wide.args[0])
        if wide is None or narrow is None or wide.primitive is not dequantize:
            continue
        layer = graph.only_use(narrow.args[0])
        if layer is None or layer.primitive not in LAYERS.values():
            continue
        if not _is_quantization(narrow, graph) or len(layer.args) > 4:
            continue
        integers = _integers(value, graph)
        shape = (step.shapes[0], FLOAT32)
        if integers is None or graph.known(other) != shape or layer.args[3] is not None:
            continue
        if not _are_inverse(narrow, wide) or layer.shapes != step.shapes:
            continue
        limits = (*integers[1:], narrow.dtypes[0])
        args = (*layer.args[:3], other, None, limits)
        after = (*layer.static.get("after", ()), ("limits",), ("add",))
        static = {**layer.static, "after": after}
        new_step = replace(step, primitive=layer.primitive, args=args, static=static)
        return layer, [new_step]
    return None


@pair_rule
def fuse_activations(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Fuse activations that follow additions into integer layers."""
    if not is_activation_step(step, graph):
        return None
    layer = _unquantized_layer(step.args[0], graph)
    if layer is None:
        return None
    after = (*layer.static.get("after", ()), after_of(step, 0, graph))
    static = {**layer.static, "after": after}
    new_step = replace(step, primitive=layer.primitive, args=layer.args, static=static)
    return layer, [new_step]


@pair_rule
def fuse_requantization(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Fuse the quantization of results into integer layers."""
    if not _is_quantization(step, graph):
        return None
    layer = _unquantized_layer(step.args[0], graph)
    if layer is None:
        return None
    scale, zero_point = (*step.args, None)[1:3]
    scaling = (scale, _zero(zero_point, step.dtypes[0]))
    *others, residual, _, limits = (*layer.args, None, None)[:6]
    added = _integers(residual, graph)
    args = (*others, residual if added is None else added, scaling, limits)
    static = {**layer.static, "dtype": step.dtypes[0]}
    return layer, [replace(step, primitive=layer.primitive, args=args, static=static)]


@step_rule
def simplify_scalings(step: Step, graph: Graph) -> list[Step] | None:
    """Use float values from before a quantization, and fast dequantizations."""
    if step.primitive is dequantize and _integers(Slot(step.outputs[0]), graph):
        args = _integers(Slot(step.outputs[0]), graph)
        return [replace(step, primitive=from_integers, args=args, static={})]
    if step.primitive is to_integers:
        *operands, zero_point = (*step.args, None)[:3]
        zero_point = _zero(zero_point, step.dtypes[0])
        return [replace(step, args=(*operands, zero_point))]
    if step.primitive not in LAYERS.values() or _is_requantized(step):
        return None
    *others, residual = step.args[:4]
    source = _integers(residual, graph)
    maker = graph.maker.get(source[0].place) if source is not None else None
    if not isinstance(maker, Step) or maker.primitive is not to_integers:
        return None
    return [replace(step, args=(*others, maker.args[0], *step.args[4:]))]
