"""Linear layers of integers whose inputs are quantized by their range in each call."""

from typing import Any, NamedTuple

from burn.dtypes import int8, int32, uint8
from burn.ops.casting import cast
from burn.ops.elementwise import add, mul
from burn.ops.exact_integer import integer_matmul
from burn.ops.qdq_layers import linear_of_integers, signed_rows, signed_zero_point
from burn.ops.quantize import quantization_range, quantize
from burn.plan.passes.graph import FLOAT32, Graph, Steps, is_same, pair_rule
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace


class _Match(NamedTuple):
    """The operands of a layer: integers, their scale and shift, weights and theirs."""

    source: Slot
    scaling: tuple[Slot, Slot, Slot]
    weight: Any
    weight_scale: Any
    weight_shift: Any


def form_dynamic_layers(steps: Steps, graph: Graph) -> Steps:
    """Replace integer products, their conversion to float32 and scaling by one step.

    Layers of one input quantize it once.
    """
    quantized: dict[Slot, tuple[Any, ...]] = {}
    new_steps: Steps = []
    for step in steps:
        match = _matched(step, graph) if isinstance(step, Step) else None
        if match is None or not isinstance(step, Step):
            new_steps.append(step)
            continue
        if match.source not in quantized:
            integers, scale, shift = match.scaling
            wide = graph.new_step(cast, (shift,), (), dtype=int32)
            new_steps.append(replace(wide, dtypes=(int32,)))
            quantized[match.source] = (integers, scale, Slot(wide.outputs[0]))
        new_steps += _layer(step, match, quantized[match.source], graph)
    return new_steps


def _matched(step: Step, graph: Graph) -> _Match | None:
    """Return the operands of the layer that ends with ``step``, a product."""
    if step.primitive is not mul or step.dtypes != (FLOAT32,) or len(step.args) != 2:
        return None
    for total, factor in (step.args, step.args[::-1]):
        wide, scales = graph.only_use(total), _maker(factor, graph)
        if wide is None or wide.primitive is not cast or wide.dtypes != (FLOAT32,):
            continue
        product = graph.only_use(wide.args[0])
        if product is None or product.primitive is not integer_matmul:
            continue
        if scales is None or scales.primitive is not mul:
            continue
        match = _operands(product, scales, graph)
        if match is not None:
            return match
    return None


def _maker(value: Any, graph: Graph) -> Step | None:
    step = graph.maker.get(value.place) if type(value) is Slot else None
    return step if isinstance(step, Step) else None


def _operands(product: Step, scales: Step, graph: Graph) -> _Match | None:
    """Return the operands of a product, if their scales are those of ``scales``."""
    x, weight, shift, weight_shift = (*product.args, None, None)[:4]
    rounding = _maker(x, graph)
    if rounding is None or rounding.primitive is not quantize or rounding.static:
        return None
    source, scale, own_shift = (*rounding.args, None)[:3]
    limits = _maker(scale, graph)
    if limits is None or limits.primitive is not quantization_range:
        return None
    results = tuple(Slot(place) for place in limits.outputs)
    if not (is_same(own_shift, shift) and is_same(limits.args[0], source)):
        return None
    if type(source) is not Slot or not all(map(is_same, results, (scale, shift))):
        return None
    factors = [value for value in scales.args if not is_same(value, scale)]
    if len(factors) != 1 or not _are_weights(weight, factors[0], weight_shift, graph):
        return None
    return _Match(source, (x, scale, shift), weight, factors[0], weight_shift)


def _are_weights(weight: Any, scale: Any, shift: Any, graph: Graph) -> bool:
    """Return whether a constant matrix has a scale for it or for each column."""
    if not all(map(graph.is_constant, (weight, scale, shift))):
        return False
    shape, dtype = graph.known(weight)
    sizes, kind = graph.known(scale)
    if shape is None or len(shape) != 2 or dtype not in (int8, uint8):
        return False
    if kind != FLOAT32 or sizes not in ((), (1,), (shape[1],)):
        return False
    return shift is None or graph.known(shift)[0] in ((), (1,))


def _layer(step: Step, match: _Match, x: tuple[Any, ...], graph: Graph) -> list[Step]:
    """Return the steps of a layer: its weights, constants in every run, and itself."""
    shape, dtype = graph.known(match.weight)
    assert shape is not None
    rows = graph.new_step(signed_rows, (match.weight,), shape[::-1])
    steps, shift = [replace(rows, dtypes=(int8,))], None
    if match.weight_shift is not None or dtype == uint8:
        numbers = (match.weight_shift, match.weight)
        point = graph.new_step(signed_zero_point, numbers, ())
        steps.append(replace(point, dtypes=(int32,)))
        shift = Slot(point.outputs[0])
    weight = (Slot(rows.outputs[0]), match.weight_scale, shift)
    for new in steps:
        graph.maker.update(dict.fromkeys(new.outputs, new))
    args = (x, weight, None, None)
    return [*steps, replace(step, primitive=linear_of_integers, args=args, static={})]


@pair_rule
def fuse_dynamic_bias(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    """Fuse the addition of a bias into a layer of integers."""
    if step.primitive is not add or step.dtypes != (FLOAT32,):
        return None
    for value, other in (step.args, step.args[::-1]):
        layer = graph.only_use(value)
        if layer is None or layer.primitive is not linear_of_integers:
            continue
        if any(arg is not None for arg in layer.args[2:]) or layer.static:
            continue
        if graph.known(other) == (layer.shapes[0][-1:], FLOAT32):
            args = (*layer.args[:2], other, None)
            return layer, [replace(step, primitive=linear_of_integers, args=args)]
    return None
