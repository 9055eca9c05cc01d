"""Passes over plans: fewer steps that compute the same on finite numbers.

Each is in a file of its own, and takes the steps of one segment after the other.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from burn.plan.passes.chains import in_chains
from burn.plan.passes.channels import in_memory_order
from burn.plan.passes.constants import constants_first
from burn.plan.passes.contractions import as_products
from burn.plan.passes.dead import without_dead
from burn.plan.passes.endings import with_endings
from burn.plan.passes.graph import Graph, Inputs, Steps
from burn.plan.passes.layers import as_layers, unflattened, with_biases
from burn.plan.passes.merging import merged
from burn.plan.passes.norms import without_norms
from burn.plan.passes.norms_ahead import with_norms_ahead
from burn.plan.passes.pairs import paired
from burn.plan.passes.places import with_own_places
from burn.plan.passes.positions import as_rows
from burn.plan.passes.rows import in_rows
from burn.plan.passes.updates import with_updates_last
from burn.plan.tree import Segment, find_drops

Pass: TypeAlias = Callable[[Steps, Graph], Steps]

#: In the order in which they run.
PASSES: tuple[Pass, ...] = (
    as_products,
    constants_first,
    as_rows,
    as_layers,
    with_biases,
    unflattened,
    without_norms,
    with_norms_ahead,
    merged,
    with_endings,
    in_chains,
    in_rows,
    in_memory_order,
    paired,
    without_dead,
)


def fused(root: Segment, inputs: Inputs = ()) -> Segment:
    """A copy of a plan after all passes."""
    found = with_own_places(root)
    for each in PASSES:
        found = _passed(each, found, inputs)
    found = with_updates_last(found)
    find_drops(found)
    return found


def _passed(each: Pass, root: Segment, inputs: Inputs) -> Segment:
    graph = Graph(root, inputs)

    def copied(segment: Segment) -> Segment:
        steps = each(segment.steps, graph)
        children = {value: copied(child) for value, child in segment.children.items()}
        return replace(segment, steps=steps, drops=[], children=children)

    return copied(root)
