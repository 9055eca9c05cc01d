"""Fusion of consecutive elementwise operations into one loop."""

from math import isfinite, prod
from typing import Any, NamedTuple

import numpy as np

from burn.defaults import host
from burn.ops.activation import relu
from burn.ops.elementwise import add, div, mul, neg, sqrt, sub
from burn.ops.fused import Chain, chained
from burn.plan.passes.graph import FLOAT32, Graph, Steps, replace_pairs, replace_steps
from burn.plan.plan_ir import Slot, Step
from burn.tensor import Tensor

#: The maximum length of a chain, and the minimum number of elements: for fewer, an
#: engine call takes as long as several NumPy calls.
LINKS = 16
LEAST = 1_024
LEAST_OF_ONE = 8_192
_BINARY: dict[Any, str] = {add: "add", sub: "sub", mul: "mul", div: "div"}
_UNARY: dict[Any, str] = {relu: "relu", sqrt: "sqrt"}


class _Links(NamedTuple):
    """Consecutive elementwise operations on ``x``."""

    x: Any
    operands: tuple[Any, ...]
    chain: Chain

    def then(self, other: "_Links") -> "_Links":
        """Return the chain extended by a chain that starts from its result."""
        count = len(self.operands)
        moved = ((n, p if p is None else p + count) for n, p in other.chain)
        return _Links(self.x, self.operands + other.operands, (*self.chain, *moved))


def in_chains(steps: Steps, graph: Graph) -> Steps:
    """Fuse elementwise operations on float32 tensors of one shape, and on scalars."""
    return replace_steps(replace_pairs(steps, graph, _extend_chain), graph, _one_step)


def _extend_chain(step: Step, graph: Graph) -> tuple[Step, list[Step]] | None:
    for links in _possible_links(step, graph) if _size(step) >= LEAST else ():
        before = graph.only_use(links.x)
        if before is None or before.shapes != step.shapes:
            continue
        for first in _possible_links(before, graph):
            whole = first.then(links)
            if len(whole.chain) <= LINKS and whole.chain[0][1] is not None:
                return before, [_chain_step(step, whole)]
    return None


def _one_step(step: Step, graph: Graph) -> list[Step] | None:
    if step.primitive is chained or _size(step) < LEAST_OF_ONE:
        return None
    for links in _possible_links(step, graph):
        if links.chain[0][1] is not None:
            return [_chain_step(step, links)]
    return None


def _size(step: Step) -> int:
    return prod(step.shapes[0]) if len(step.shapes) == 1 else 0


def _chain_step(step: Step, links: _Links) -> Step:
    args, static = (links.x, *links.operands), {"chain": links.chain}
    return Step(chained, args, static, step.outputs, step.shapes, step.dtypes)


def _possible_links(step: Step, graph: Graph) -> list[_Links]:
    """Return the chains that a step starts, one for each operand it can start from."""
    if step.dtypes != (FLOAT32,) or not prod(step.shapes[0]):
        return []
    if step.primitive is chained:
        return [_Links(step.args[0], tuple(step.args[1:]), step.static["chain"])]
    args = [_operand(arg, step.shapes[0], graph) for arg in step.args]
    if any(arg is None for arg in args):
        return []
    if step.primitive in _UNARY and _is_whole(args[0], step, graph):
        link = (_UNARY[step.primitive], None)
        # The engine starts with an operation of two operands.
        first = _Links(args[0], (_number(1),), (("mul", 0), link))
        return [_Links(args[0], (), (link,)), first]
    if step.primitive is neg and _is_whole(args[0], step, graph):
        return [_Links(args[0], (_number(-1),), (("mul", 0),))]
    if step.primitive not in _BINARY or len(args) != 2:
        return []
    (a, b), name, links = args, _BINARY[step.primitive], []
    if _is_whole(a, step, graph):
        links.append(_Links(a, (b,), ((name, 0),)))
    if _is_whole(b, step, graph) and name in ("add", "mul"):
        links.append(_Links(b, (a,), ((name, 0),)))
    if _is_whole(b, step, graph) and name == "sub":
        links.append(_Links(b, (_number(-1), a), (("mul", 0), ("add", 1))))
    return links


def _operand(arg: Any, shape: tuple[int, ...], graph: Graph) -> Any:
    """Return ``arg`` as a tensor if it has that shape or is a scalar, else None."""
    if type(arg) in (int, float):
        return _number(arg) if isfinite(np.float32(arg)) else None
    extents, dtype = graph.known(arg)
    if extents is None or dtype != FLOAT32:
        return None
    return arg if extents == shape or prod(extents) == 1 else None


def _is_whole(arg: Any, step: Step, graph: Graph) -> bool:
    return type(arg) in (Slot, Tensor) and graph.known(arg)[0] == step.shapes[0]


def _number(value: float) -> Tensor:
    return Tensor(np.asarray(value, np.float32), host())
