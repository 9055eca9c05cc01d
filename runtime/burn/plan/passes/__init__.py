"""Passes over plans: fewer steps that compute the same on finite numbers.

Each is in a file of its own, and takes the steps of one segment after the other.
"""

from collections.abc import Callable
from typing import TypeAlias

from burn.plan.passes.constants import constants_first
from burn.plan.passes.contractions import as_products
from burn.plan.passes.endings import with_endings
from burn.plan.passes.graph import Graph, Inputs, Steps
from burn.plan.passes.layers import as_layers, unflattened, with_biases
from burn.plan.passes.merging import merged
from burn.plan.passes.norms import without_norms
from burn.plan.tree import Segment, find_drops

Pass: TypeAlias = Callable[[Steps, Graph], Steps]

#: In the order in which they run.
PASSES: tuple[Pass, ...] = (
    as_products,
    constants_first,
    as_layers,
    with_biases,
    unflattened,
    without_norms,
    merged,
    with_endings,
)


def fused(root: Segment, inputs: Inputs = ()) -> Segment:
    """A copy of a plan after all passes; ``root`` itself if nothing changed."""
    found = root
    for each in PASSES:
        found = _passed(each, found, inputs)
    if found is not root:
        find_drops(found)
    return found


def _passed(each: Pass, root: Segment, inputs: Inputs) -> Segment:
    graph = Graph(root, inputs)

    def copied(segment: Segment) -> Segment:
        steps = each(segment.steps, graph)
        children = {value: copied(child) for value, child in segment.children.items()}
        return Segment(steps, [], segment.guard, children, segment.result)

    copy = copied(root)
    return root if _same(root, copy) else copy


def _same(a: Segment, b: Segment) -> bool:
    return (
        len(a.steps) == len(b.steps)
        and all(x is y for x, y in zip(a.steps, b.steps, strict=True))
        and all(_same(child, b.children[value]) for value, child in a.children.items())
    )
