"""Products with weights, and sums with biases, become linear layers."""

from dataclasses import replace

from burn.ops.elementwise import add
from burn.ops.matmul import linear, matmul
from burn.ops.shape import flatten, reshape, transpose
from burn.plan.passes.graph import FLOAT32, Graph, Steps
from burn.plan.tree import Slot, Step


def as_layers(steps: Steps, graph: Graph) -> Steps:
    """``x @ w`` as a linear layer if ``w`` is constant, with what is added to rows."""
    found: Steps = []
    layers: dict[int, int] = {}  # where in ``found`` a layer without bias is
    for step in steps:
        if isinstance(step, Step):
            layer = _layer(step, graph)
            if layer is not None:
                found.extend(layer[:-1])
                step = layer[-1]
            position = _shifted(step, layers, graph)
            if position is not None:
                before, step = found[position], _with_bias(found[position], step)
                found.pop(position)
                layers = {p: n - (n > position) for p, n in layers.items()}
                assert before is not step
            if step.primitive is linear and len(step.args) == 2:
                layers[step.outputs[0]] = len(found)
        found.append(step)
    return found


def _layer(step: Step, graph: Graph) -> list[Step] | None:
    """The steps of a linear layer that is written as a product, or None."""
    if step.primitive is not matmul or step.dtypes != (FLOAT32,):
        return None
    x, weight = step.args
    shape, dtype = graph.known(weight)
    if shape is None or len(shape) != 2 or dtype != FLOAT32 or len(step.shapes[0]) < 2:
        return None
    if not graph.is_constant(weight) or graph.is_constant(x):
        return None
    turned = graph.made(transpose, (weight, 0, 1), shape[::-1])
    return [
        turned,
        replace(step, primitive=linear, args=(x, Slot(turned.outputs[0]))),
    ]


def _shifted(step: Step, layers: dict[int, int], graph: Graph) -> int | None:
    """Where the layer is that ``step`` adds a bias to, or None."""
    if step.primitive is not add or len(step.args) != 2:
        return None
    for value, other in (step.args, step.args[::-1]):
        place = value.place if type(value) is Slot else -1
        if place not in layers or graph.uses[place] != 1:
            continue
        shape, dtype = graph.known(other)
        if graph.is_constant(other) and dtype == FLOAT32:
            if shape == step.shapes[0][-1:] and graph.known(value)[0] == step.shapes[0]:
                return layers[place]
    return None


def _with_bias(layer: Step, step: Step) -> Step:
    """A layer with what ``step`` adds as its bias."""
    (bias,) = [arg for arg in step.args if arg != Slot(layer.outputs[0])]
    return replace(step, primitive=linear, args=(*layer.args, bias))


def unflattened(steps: Steps, graph: Graph) -> Steps:
    """Layers of ``[..., in]`` where only rows were given, and taken apart again."""
    found: Steps = []
    for step in steps:
        rows = _unflattened(step, graph) if isinstance(step, Step) else None
        if rows is None:
            found.append(step)
            continue
        layer, changed = rows
        found = [other for other in found if other is not layer]
        found.append(changed)
    return found


def _unflattened(step: Step, graph: Graph) -> tuple[Step, Step] | None:
    """The layer before a reshape, and what stands for both, or None."""
    if step.primitive not in (reshape, flatten):
        return None
    layer = graph.only_use(step.args[0])
    if layer is None or layer.primitive is not linear:
        return None
    rows = graph.maker.get(layer.args[0].place) if type(layer.args[0]) is Slot else None
    if not isinstance(rows, Step) or rows.primitive not in (reshape, flatten):
        return None
    x = rows.args[0]
    shape, _ = graph.known(x)
    if shape is None or shape[-1] != rows.shapes[0][-1] or len(shape) < 2:
        return None
    if step.shapes[0] != (*shape[:-1], layer.shapes[0][-1]):
        return None
    return layer, replace(step, primitive=linear, args=(x, *layer.args[1:]), static={})
