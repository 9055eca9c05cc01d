"""Which rows of each value of a segment are used, and how steps compute them."""

from collections import Counter
from collections.abc import Iterator
from typing import NamedTuple

from burn.ops.indexing import getitem, getitem_grad
from burn.plan.passes.graph import Graph, Steps
from burn.plan.passes.slices.rules import Needed, needed_rows
from burn.plan.passes.slices.selection import Selection, selection_of_key
from burn.plan.passes.slices.zeros import Zeros, nonzero_rows, summed_rows
from burn.plan.plan_ir import Slot, Step, slots_in
from burn.tensor import Tensor


class Mode(NamedTuple):
    """The rows of its arguments from which a step is computed (None: all).

    ``rows`` are those of the first result, None if it is computed as a whole.
    """

    needed: Needed
    rows: Selection | None = None


class Analysis:
    """The modes of steps that need less than all rows, by their first place.

    ``uses`` has the rows of each slot that are used by some step; None is all.
    """

    def __init__(self) -> None:
        self.modes: dict[int, Mode] = {}
        self.uses: dict[int, set[Selection | None]] = {}
        self.zeros: Zeros = {}


def analyze(steps: Steps, graph: Graph) -> Analysis:
    """Return which rows the steps of a segment need."""
    analysis = Analysis()
    for step in steps:
        if isinstance(step, Step):
            rows = nonzero_rows(step, analysis.zeros, graph)
            if rows is not None:
                analysis.zeros[step.outputs[0]] = rows
    for slot in _used_later(steps, graph):
        analysis.uses[slot] = {None}
    for step in reversed(steps):
        if isinstance(step, Step):
            _visit(step, analysis, graph)
    return analysis


def _used_later(steps: Steps, graph: Graph) -> Iterator[int]:
    """Yield the places that are used in later segments, or are results."""
    local: Counter[int] = Counter()
    for step in steps:
        local.update(step.operand_places if isinstance(step, Step) else ())
    for step in steps:
        yield from (p for p in step.outputs if graph.uses[p] > local[p])


def _visit(step: Step, analysis: Analysis, graph: Graph) -> None:
    mode = _mode(step, analysis, graph)
    if mode is not None:
        analysis.modes[step.outputs[0]] = mode
    for number, arg in enumerate(step.args):
        rows = None if mode is None else mode.needed[number]
        for slot in slots_in(arg):
            analysis.uses.setdefault(slot, set()).add(rows)


def _mode(step: Step, analysis: Analysis, graph: Graph) -> Mode | None:
    """Return how to compute a step from less than all rows, or None."""
    uses = analysis.uses.get(step.outputs[0], set())
    rows = analysis.zeros.get(step.outputs[0])
    if step.primitive is getitem_grad:
        # Other rows are zero: with all rows the step is unchanged.
        is_whole = rows is None or uses == {None}
        return None if is_whole else Mode((None, None), rows)
    if step.primitive is getitem:
        return _mode_of_slice(step, graph)
    if rows is not None:
        needed = needed_rows(step, rows, graph)
        return None if needed is None else Mode(needed, rows)
    needed = summed_rows(step, analysis.zeros, graph)
    if needed is not None:
        return Mode(needed)
    rows = next(iter(uses)) if len(uses) == 1 and len(step.outputs) == 1 else None
    needed = None if rows is None else needed_rows(step, rows, graph)
    return None if needed is None else Mode(needed, rows)


def _mode_of_slice(step: Step, graph: Graph) -> Mode | None:
    shape = graph.known(step.args[0])[0]
    if shape is None or slots_in(step.args[1]):
        return None
    rows = selection_of_key(step.args[1], shape)
    is_tensor = type(step.args[0]) in (Slot, Tensor)
    return None if rows is None or not is_tensor else Mode((rows, None))
