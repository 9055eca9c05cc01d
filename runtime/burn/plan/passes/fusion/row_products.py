"""Fusion of products of few rows with the norm before them and their gate."""

from math import prod
from typing import Any, NamedTuple

import numpy as np

from burn.ops.conv import conv
from burn.ops.decoding import row_linear
from burn.ops.elementwise import mul
from burn.ops.fused import conv_then, linear_then
from burn.ops.layer_norm import layer_norm, rms_norm
from burn.ops.matmul import linear
from burn.ops.shape import reshape
from burn.plan.passes.graph import Graph, Steps
from burn.plan.plan_ir import Read, Slot, Step
from burn.structs import replace

#: For more rows, tensor cores compute the product as fast as weights are read.
ROWS = 8
_GATED = (("silu",),)


class _Norm(NamedTuple):
    """The norm of ``x`` over its last axis; ``kind`` is empty if there is none."""

    x: Any
    weight: Any = None
    bias: Any = None
    kind: str = ""
    epsilon: float = 1e-5


def fuse_row_products(steps: Steps, graph: Graph) -> Steps:
    """Replace products of at most :data:`ROWS` rows by :func:`row_linear`.

    A convolution of images of one pixel, as in squeeze-and-excitation, is a product.
    """
    steps = [part for step in steps for part in _pixels_as_rows(step, graph)]
    new_steps: list[Step | Read | None] = []
    places: dict[int, int] = {}
    for step in steps:
        whole = None
        if isinstance(step, Step):
            whole, gone = _fuse(step, graph)
            for slot in gone:
                new_steps[places[slot]] = None
        for slot in step.outputs:
            places[slot] = len(new_steps)
        new_steps.append(whole or step)
    return [step for step in new_steps if step is not None]


def _pixels_as_rows(step: Step | Read, graph: Graph) -> Steps:
    """Return ``step``; for convolved single pixels a product between reshapes."""
    if not isinstance(step, Step) or step.primitive not in (conv, conv_then):
        return [step]
    x, weight, bias, residual = (*step.args, None, None)[:4]
    shape_of_x, kernel = graph.known(x)[0], graph.known(weight)[0]
    if shape_of_x is None or kernel is None or step.dtypes != (graph.dtype,):
        return [step]
    if set(shape_of_x[2:] + kernel[2:]) != {1} or np.any(step.static.get("padding", 0)):
        return [step]
    if step.static.get("groups", 1) != 1 or not 0 < shape_of_x[0] <= ROWS:
        return [step]
    if residual is not None and graph.known(residual)[0] != step.shapes[0]:
        return [step]
    shape = step.shapes[0]
    sources = [(x, shape_of_x), (weight, kernel), (residual, shape)]
    views = [
        graph.new_step(reshape, (v, s[:2]), s[:2]) for v, s in sources if v is not None
    ]
    flat = [Slot(view.outputs[0]) for view in views]
    args = (*flat[:2], bias, *flat[2:])
    after = {"after": step.static["after"]} if step.primitive is conv_then else {}
    kind = linear_then if after else linear
    product = graph.new_step(kind, args, shape[:2], **after)
    whole = (Slot(product.outputs[0]), shape)
    return [*views, product, replace(step, primitive=reshape, args=whole, static={})]


def _fuse(step: Step, graph: Graph) -> tuple[Step | None, tuple[int, ...]]:
    """Return the replacement of ``step``, and the places that become unused."""
    if step.dtypes != (graph.dtype,):
        return None, ()
    gated = _fuse_gate(step, graph)
    if gated is not None:
        return gated
    if step.primitive not in (linear, linear_then) or not _is_small(step, graph):
        return None, ()
    x, weight, bias, residual = (*step.args, None, None)[:4]
    after = step.static.get("after", ())
    return (
        _row_linear_step(step, _norm(x, graph), (weight, bias, residual), None, after),
        (),
    )


def _is_small(step: Step, graph: Graph) -> bool:
    weight = graph.known(step.args[1])
    rows = prod(step.shapes[0][:-1])
    is_matrix = weight[0] is not None and len(weight[0]) == 2
    is_constant = graph.is_constant(step.args[1])
    return is_matrix and is_constant and weight[1] == graph.dtype and 0 < rows <= ROWS


def _fuse_gate(step: Step, graph: Graph) -> tuple[Step, tuple[int, ...]] | None:
    """Return ``silu(gate(x)) * layer(x)`` as one step, and its factors' slots."""
    if step.primitive is not mul or len(step.args) != 2:
        return None
    factors = [graph.only_use(value) for value in step.args]
    for gate, layer in (factors, factors[::-1]):
        if gate is None or layer is None:
            return None
        if gate.primitive is not linear_then or gate.static["after"] != _GATED:
            continue
        if layer.primitive is not linear or gate.args[0] != layer.args[0]:
            continue
        biases = (*gate.args[2:], *layer.args[2:])
        if any(bias is not None for bias in biases) or gate.shapes != layer.shapes:
            continue
        if not _is_small(gate, graph) or not _is_small(layer, graph):
            continue
        norm = _norm(layer.args[0], graph)
        whole = _row_linear_step(
            step, norm, (layer.args[1], None, None), gate.args[1], ()
        )
        return whole, (*gate.outputs, *layer.outputs)
    return None


def _norm(value: Any, graph: Graph) -> _Norm:
    """Return the norm over the last axis that computes ``value``, if any."""
    maker = graph.maker.get(getattr(value, "place", -1))
    if not isinstance(maker, Step) or maker.dtypes != (graph.dtype,):
        return _Norm(value)
    if maker.primitive not in (layer_norm, rms_norm):
        return _Norm(value)
    width = maker.shapes[0][-1:]
    axis = maker.static.get("axis", -1)
    x, *affine = maker.args
    if axis not in (-1, len(maker.shapes[0]) - 1) or graph.known(x)[1] != graph.dtype:
        return _Norm(value)
    if any(a is not None and graph.known(a) != (width, graph.dtype) for a in affine):
        return _Norm(value)
    weight, bias = (*affine, None, None)[:2]
    kind = "layer" if maker.primitive is layer_norm else "rms"
    return _Norm(x, weight, bias, kind, maker.static.get("epsilon", 1e-5))


def _row_linear_step(
    step: Step, norm: _Norm, operands: tuple[Any, Any, Any], gate: Any, after: Any
) -> Step:
    args = (norm.x, *operands, norm.weight, norm.bias, gate)
    static = {"norm": norm.kind, "epsilon": norm.epsilon, "after": after}
    return replace(step, primitive=row_linear, args=args, static=static)
