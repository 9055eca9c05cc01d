"""Hoisting of slices before the operations whose results are sliced.

A classifier reads one token of an encoder's output, a decoder the last position of its
logits. The last layer need not compute other rows, whose gradients are zero.
"""

from typing import Any

from burn.ops.indexing import getitem, getitem_grad
from burn.ops.matmul import linear, matmul
from burn.ops.shape import reshape
from burn.plan.passes.graph import Graph, Steps
from burn.plan.passes.slices.analysis import Analysis, Mode, analyze
from burn.plan.passes.slices.rules import RESHAPES
from burn.plan.passes.slices.selection import Selection, key_in_selection
from burn.plan.plan_ir import Slot, Step
from burn.structs import replace

_PRODUCTS = (matmul, linear)


def hoist_slices(steps: Steps, graph: Graph) -> Steps:
    """Compute the used rows of values whose other rows are not used, or are zero.

    Steps stay as they are if no product of matrices becomes smaller.
    """
    analysis = analyze(steps, graph)
    modes = [
        analysis.modes.get(step.outputs[0])
        for step in steps
        if isinstance(step, Step) and step.primitive in _PRODUCTS
    ]
    if not any(mode is not None and any(mode.needed) for mode in modes):
        return steps
    writer = _Writer(analysis, graph)
    for step in steps:
        mode = analysis.modes.get(step.outputs[0]) if isinstance(step, Step) else None
        if mode is None or not isinstance(step, Step):
            writer.steps.append(step)
        else:
            writer.write(step, mode)
    return writer.steps


class _Writer:
    """The steps of a segment, with values of which there are some rows."""

    def __init__(self, analysis: Analysis, graph: Graph) -> None:
        self.steps: Steps = []
        self._analysis, self._graph = analysis, graph
        self._selected: dict[tuple[int, Selection], Slot] = {}

    def write(self, step: Step, mode: Mode) -> None:
        """Append a step that computes the needed rows of the results of ``step``."""
        args = tuple(
            arg if rows is None else self._rows_of(arg, rows)
            for arg, rows in zip(step.args, mode.needed, strict=True)
        )
        if step.primitive is getitem:
            rows = mode.needed[0]
            assert rows is not None
            rank = len(self._graph.known(step.args[0])[0] or ())
            key = key_in_selection(step.args[1], rows, rank)
            self.steps.append(replace(step, args=(args[0], key)))
        elif mode.rows is None:
            self.steps.append(replace(step, args=args))
        else:
            self._write_selected(step, mode.rows, args)

    def _write_selected(
        self, step: Step, rows: Selection, args: tuple[Any, ...]
    ) -> None:
        replaced, whole = step.outputs[0], step.shapes[0]
        shape = rows.selected_shape(whole)
        slot = Slot(self._graph.fresh())
        new = replace(
            step,
            args=args,
            outputs=(slot.place, *step.outputs[1:]),
            shapes=(shape, *step.shapes[1:]),
        )
        if step.primitive in (*RESHAPES, getitem_grad):
            new = replace(new, primitive=reshape, args=(args[0], shape), static={})
        self._append(new)
        self._selected[replaced, rows] = slot
        if self._analysis.uses.get(replaced, set()) - {rows}:
            self._write_whole(step, slot, rows)

    def _append(self, step: Step) -> Slot:
        self.steps.append(step)
        self._graph.maker.update(dict.fromkeys(step.outputs, step))
        self._graph.new_steps += 1
        return Slot(step.outputs[0])

    def _write_whole(self, step: Step, slot: Slot, rows: Selection) -> None:
        """Append steps that pad rows with zeros, for readers of the whole value."""
        shape, dtype = step.shapes[0], step.dtypes[0]
        apart, target = rows.unmerged(shape)
        parts = self._view(slot, apart.selected_shape(target), dtype)
        args, static = (parts, apart.key(len(target))), {"shape": target}
        whole = Step(getitem_grad, args, static, (), (target,), (dtype,))
        if target == shape:
            self._append(replace(whole, outputs=step.outputs[:1]))
            return
        slot = self._append(replace(whole, outputs=(self._graph.fresh(),)))
        view = Step(reshape, (slot, shape), {}, step.outputs[:1], (shape,), (dtype,))
        self._append(view)

    def _rows_of(self, arg: Any, rows: Selection) -> Slot:
        """Return the slot of rows of an argument; append the steps that slice it."""
        if type(arg) is Slot and (arg.place, rows) in self._selected:
            return self._selected[arg.place, rows]
        shape, dtype = self._graph.known(arg)
        assert shape is not None
        apart, target = rows.unmerged(shape)
        view, key = self._view(arg, target, dtype), apart.key(len(target))
        taken = apart.selected_shape(target)
        outputs = (self._graph.fresh(),)
        slot = self._append(Step(getitem, (view, key), {}, outputs, (taken,), (dtype,)))
        selected: Slot = self._view(slot, rows.selected_shape(shape), dtype)
        if type(arg) is Slot:
            self._selected[arg.place, rows] = selected
        return selected

    def _view(self, arg: Any, shape: tuple[int, ...], dtype: Any) -> Any:
        """Return an argument in another shape, and append the step if it differs."""
        if self._graph.known(arg)[0] == shape:
            return arg
        outputs = (self._graph.fresh(),)
        return self._append(
            Step(reshape, (arg, shape), {}, outputs, (shape,), (dtype,))
        )
