"""Fusion of activations, scales and residuals into the layer or norm before them."""

from math import isfinite
from typing import Any

from burn.ops import activation
from burn.ops.conv import conv
from burn.ops.elementwise import add, div, mul
from burn.ops.fused import (
    batch_norm_then,
    conv_then,
    group_norm_then,
    linear_then,
    matmul_then,
)
from burn.ops.matmul import linear, matmul
from burn.ops.norm import batch_norm, group_norm
from burn.plan.passes.graph import Graph, Steps
from burn.plan.plan_ir import Read, Slot, Step
from burn.structs import replace
from burn.tensor import Tensor

#: The fused variant of each primitive.
_THEN: dict[Any, Any] = {
    conv: conv_then,
    conv_then: conv_then,
    group_norm: group_norm_then,
    group_norm_then: group_norm_then,
    linear: linear_then,
    linear_then: linear_then,
    matmul: matmul_then,
    matmul_then: matmul_then,
}
#: Activations without parameters, by their names in ``after``.
PLAIN: dict[Any, str] = {
    activation.relu: "relu",
    activation.sigmoid: "sigmoid",
    activation.tanh: "tanh",
    activation.silu: "silu",
    activation.hard_swish: "hard_swish",
    activation.mish: "mish",
    activation.softplus: "softplus",
}
#: Parametrized activations: their names in ``after``, and parameters with defaults.
_NUMBERS: dict[Any, tuple[str, dict[str, float]]] = {
    activation.elu: ("elu", {"alpha": 1.0}),
    activation.hard_sigmoid: ("hard_sigmoid", {"alpha": 0.2, "beta": 0.5}),
    activation.leaky_relu: ("leaky_relu", {"alpha": 0.01}),
}


#: With norms of channels, including those by stored statistics.
THEN_WITH_NORMS: dict[Any, Any] = {
    **_THEN,
    batch_norm: batch_norm_then,
    batch_norm_then: batch_norm_then,
}


def fuse_epilogues(
    steps: Steps, graph: Graph, then: dict[Any, Any] | None = None
) -> Steps:
    """Fuse activations and residual additions into the layers and norms before them.

    ``then`` maps primitives to those with a fused epilogue.
    """
    then = _THEN if then is None else then
    new_steps: list[Step | Read | None] = []
    producers: dict[int, int] = {}  # value to position in ``new_steps``
    for step in steps:
        if isinstance(step, Step):
            joined = _fuse(step, new_steps, producers, graph, then)
            if joined is not None:
                position, step = joined
                new_steps[position] = None
        for index in step.outputs:
            producers[index] = len(new_steps)
        new_steps.append(step)
    return [step for step in new_steps if step is not None]


def fuse_epilogues_of_norms(steps: Steps, graph: Graph) -> Steps:
    """Fuse epilogues, including those of norms by stored statistics."""
    return fuse_epilogues(steps, graph, THEN_WITH_NORMS)


def is_activation_step(step: Step, graph: Graph) -> bool:
    """Return whether ``step`` is an activation that can be an epilogue."""
    if step.primitive in (add, mul, div):
        return False
    return after_of(step, 0, graph) is not None


def _fuse(
    step: Step,
    steps: list[Any],
    producers: dict[int, int],
    graph: Graph,
    then: dict[Any, Any],
) -> tuple[int, Step] | None:
    """Return the position of the first step and the fused step, or None."""
    for index, arg in enumerate(step.args):
        position = producers.get(arg.place) if type(arg) is Slot else None
        if position is None or graph.uses[arg.place] != 1:
            continue
        source = steps[position]
        if not isinstance(source, Step) or source.primitive not in then:
            continue
        if source.shapes != step.shapes or {*source.dtypes, *step.dtypes} != {
            graph.dtype
        }:
            continue
        after = after_of(step, index, graph)
        if after is None or not _supports_epilogue(source, after):
            continue
        args = [*source.args, *(None for _ in range(4 - len(source.args)))]
        if after == ("add",):
            args[3] = other = step.args[1 - index]
            if after in _epilogue_of(source) or not _can_add(source, other, graph):
                continue
        static = {**source.static, "after": (*_epilogue_of(source), after)}
        changed = replace(
            step, primitive=then[source.primitive], args=tuple(args), static=static
        )
        return position, changed
    return None


def _supports_epilogue(source: Step, after: tuple[Any, ...]) -> bool:
    """Return whether the kernel of ``source`` can apply ``after`` to its results.

    Norms of groups apply it with their weights; norms of single channels cannot.
    """
    if source.primitive in (batch_norm, batch_norm_then):
        return after[0] == "relu" or (after[0] == "scale" and not _epilogue_of(source))
    if source.primitive not in (group_norm, group_norm_then):
        return True
    parts = (*source.args, None, None)[1:3]
    is_affine = all(part is not None for part in parts)
    within = source.shapes[0][1] != source.static["groups"]
    return is_affine and within and after[0] not in ("add", "scale")


def _can_add(source: Step, other: Any, graph: Graph) -> bool:
    """Return whether ``source`` can add ``other`` to its result, as far as known."""
    shape, dtype = graph.known(other)
    (result,) = source.shapes
    if dtype != graph.dtype or shape is None:
        return False
    if shape == result:
        return True
    return (
        source.primitive in (matmul, matmul_then)
        and len(shape) == len(result) > 2
        and all(n in (1, m) for n, m in zip(shape, result, strict=True))
        and shape[-1] == result[-1]
    )


def _epilogue_of(step: Step) -> tuple[Any, ...]:
    """Return the epilogue that ``step`` already has."""
    done: tuple[Any, ...] = step.static.get("after", ())
    return done


def after_of(step: Step, index: int, graph: Graph) -> tuple[Any, ...] | None:
    """Return ``step`` as an epilogue of the producer of its operand ``index``."""
    if step.primitive in PLAIN:
        return (PLAIN[step.primitive],)
    if step.primitive is activation.gelu:
        tanh = step.static.get("approximate") == "tanh"
        return ("gelu_tanh",) if tanh else ("gelu",)
    if step.primitive in _NUMBERS:
        name, defaults = _NUMBERS[step.primitive]
        return (name, *map(float, {**defaults, **step.static}.values()))
    if step.primitive is activation.clip and index == 0:
        bounds = step.args[1:]
        if len(bounds) == 2 and all(type(bound) in (int, float) for bound in bounds):
            return ("clip", *map(float, bounds))
    if step.primitive in (add, mul, div) and len(step.args) == 2:
        return _with_other(step, index, graph)
    return None


def _with_other(step: Step, index: int, graph: Graph) -> tuple[Any, ...] | None:
    other = step.args[1 - index]
    if step.primitive is add:
        return ("add",) if type(other) in (Slot, Tensor) else None
    if step.primitive is div and index == 1:
        return None
    if type(other) is Tensor and other.shape == () and other.dtype == graph.dtype:
        other = other.item()
    if type(other) not in (int, float) or not isfinite(other) or other == 0:
        return None
    return ("scale", 1 / other if step.primitive is div else float(other))
