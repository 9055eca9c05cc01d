"""Fused plans on CUDA: constants computed once, and the kernels of each run."""

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

from burn.backend.arrays import ArrayBackend
from burn.backend.cuda.kernels.elementwise.printing import PRIMITIVES, is_printed
from burn.box import Box
from burn.ops import fused
from burn.ops.caches import update_slice
from burn.ops.conv import conv
from burn.ops.decoding import cached_attention, row_linear
from burn.ops.elements import elements, elements_of_many
from burn.ops.fused_attention import scaled_attention
from burn.ops.matmul import linear, matmul
from burn.ops.support import Array, namespace
from burn.plan.device_passes import device_segment, training_segment
from burn.plan.executable import Plan
from burn.plan.passes import run_passes
from burn.plan.passes.constants import hoist_constants
from burn.plan.passes.fusion.elements import KernelSupport
from burn.plan.passes.graph import Graph
from burn.plan.passes.unique_slots import last_slot
from burn.plan.plan_ir import Read, Segment, Slot, Step, slots_in
from burn.plan.replay import Values, arguments, bound_step, constant, fill_result
from burn.primitive import Primitive
from burn.structs import replace

#: The largest difference of a fused kernel from its parts, relative to the largest
#: element, by how many bits of mantissa products read.
_MOST = {23: 1e-3, 10: 3e-2}
#: Fused primitives whose kernel for all devices consists of their parts.
_WHOLE = frozenset(
    {scaled_attention, elements, elements_of_many, cached_attention, row_linear}
)
#: The primitive without epilogue of each fused primitive.
_LAYERS: dict[Any, Primitive[..., Any]] = {
    fused.conv_then: conv,
    fused.linear_then: linear,
    fused.matmul_then: matmul,
}


class Program:
    """The steps of a plan without branches, bound to kernels.

    ``notes`` name the fused kernels that were wrong and are disabled. Without
    ``is_fused`` the steps are those of the recording. The values of ``varying`` boxes
    are read in each run.
    """

    def __init__(
        self,
        plan: Plan,
        device: ArrayBackend,
        is_fused: bool = True,
        varying: frozenset[Box] = frozenset(),
    ) -> None:
        self.is_fused = is_fused
        root = _run_passes(
            replace(plan, root=replace(plan.root, varying=varying)), is_fused
        )
        graph = Graph(root, plan.inputs)
        self.device, self.notes = device, list[str]()
        #: The boxes that are set, and the reads of those that are not constant.
        self.writes, self.reads = tuple(root.writes), dict[Box, Read]()
        #: Boxes of which a run writes a slice alone, with the axis of the slice.
        self.slices = dict[Box, int]()
        late = _slice_updates(root)
        ends = []
        for box, slot in root.writes.items():
            ends.append(slot if box not in late else late[box].args[1:3])
            if box in late:
                self.slices[box] = late[box].static.get("axis", -2)
        self._result = (root.result, ends)
        gone, results = set(map(id, late.values())), set(slots_in([ends]))
        self._count = last_slot(root) + 1
        self._constant_calls: list[Callable[[Values], None]] = []
        self._steps: list[tuple[Step, tuple[int, ...]]] = []
        used = set(slots_in(self._result))
        for step, drops in zip(root.steps, root.drops, strict=True):
            if id(step) in gone:
                continue
            drops = tuple(slot for slot in drops if slot not in results)
            if graph.constant.issuperset(step.outputs):
                self._constant_calls.append(bound_step(step, (), device))
            elif isinstance(step, Read):
                self.reads[step.box] = step
            else:
                used.update(step.operand_places)
                drops = tuple(p for p in drops if p not in graph.constant)
                self._steps.append((step, drops))
        self._constants = sorted(used & graph.constant)
        self._calls = [bound_step(step, drops, device) for step, drops in self._steps]

    def constants(self) -> dict[int, Any]:
        """Return the values that depend on boxes alone, by place."""
        values = [None] * self._count
        for call in self._constant_calls:
            call(values)
        return {slot: values[slot] for slot in self._constants}

    def run(self, inputs: list[Any], constants: dict[int, Any]) -> Any:
        """Return the result of the plan, and the list of new values of boxes.

        For boxes in :attr:`slices` these are tuples of the slice and its start.
        ``constants`` are the results of :meth:`constants`, and the values of
        :attr:`reads`.
        """
        values = self._values(inputs, constants)
        for call in self._calls:
            call(values)
        return fill_result(self._result, values, self.device)

    def run_checked(self, inputs: list[Any], constants: dict[int, Any]) -> Any:
        """Execute :meth:`run`, and compare each fused kernel with its unfused steps.

        A kernel that differs is disabled.
        """
        for _ in self.compared(inputs, constants):
            pass
        return self.run(inputs, constants)

    def compared(
        self, inputs: list[Any], constants: dict[int, Any]
    ) -> Iterator[tuple[int, Step, float]]:
        """Yield number, step and relative error of each step against unfused ones."""
        values = self._values(inputs, constants)
        for number, (step, drops) in enumerate(self._steps):
            parts = _parts(step, self.device)
            args = None
            if parts is not None:
                args = arguments([constant(a, self.device) for a in step.args], values)
            self._calls[number](values)
            if parts is None or args is None or step.outputs[0] in drops:
                continue
            expected = parts(*args, **step.static)
            several = expected if step.primitive.outputs != 1 else (expected,)
            pairs = list(zip(step.outputs, several, strict=True))
            error = max(
                difference(values[slot], array)
                for slot, array in pairs
                if slot not in drops
            )
            yield number, step, error
            if not error <= _MOST[self._bits(step)]:
                self._calls[number] = bound_step(step, drops, self.device, parts)
                for slot, array in pairs:
                    values[slot] = array
                self.notes.append(
                    f"{step.primitive.name} {list(step.shapes[0])} differs from its "
                    f"parts by {error:.1e}, which run instead (step {number})"
                )

    def _bits(self, step: Step) -> int:
        tf32 = getattr(self.device, "tf32", False)
        is_exact = step.dtypes[0] == np.float32 and not tf32
        return 23 if is_exact else 10

    def _values(self, inputs: list[Any], constants: dict[int, Any]) -> Values:
        values: Values = inputs + [None] * (self._count - len(inputs))
        for slot, value in constants.items():
            values[slot] = value
        return values


def _run_passes(plan: Plan, is_fused: bool) -> Segment:
    """Return the steps of ``plan``, fused as far as gradients and options allow."""
    abilities = KernelSupport(is_printed, PRIMITIVES)
    if not is_fused:
        return run_passes(plan.root, plan.inputs, (hoist_constants,))
    if plan.has_gradients:
        return training_segment(plan, abilities)
    return device_segment(plan, abilities)


def _slice_updates(root: Segment) -> dict[Box, Step]:
    """Return the steps that update a slice of a box."""
    makers = {step.outputs[0]: step for step in root.steps if isinstance(step, Step)}
    reads = {step.box: step.place for step in root.steps if isinstance(step, Read)}
    uses = Counter(slot for step in makers.values() for slot in step.operand_places)
    uses.update(slots_in(root.ends))
    updates = {}
    for box, slot in root.writes.items():
        step = makers.get(slot.place)
        if step is None or step.primitive is not update_slice or uses[slot.place] != 1:
            continue
        x = step.args[0]
        if box in reads and type(x) is Slot and x.place == reads[box]:
            updates[box] = step
    return updates


def _parts(step: Step, device: ArrayBackend) -> Callable[..., Any] | None:
    """Return a function that computes a fused step by unfused kernels, or None."""
    if step.primitive in _WHOLE:
        kernel: Callable[..., Any] = step.primitive.kernel
        return kernel
    layer = _LAYERS.get(step.primitive)
    return None if layer is None else partial(_in_parts, layer.kernel_for(device))


def _in_parts(
    layer: Callable[..., Any],
    x: Any,
    weight: Any,
    bias: Any = None,
    residual: Any = None,
    *,
    after: fused.After,
    **static: Any,
) -> Any:
    operands = (x, weight) if bias is None else (x, weight, bias)
    return fused.apply_after(layer(*operands, **static), residual, after)


def difference(array: Array, expected: Array) -> float:
    """Return the maximum error of finite numbers, relative to the largest of them."""
    if array.shape != expected.shape or not expected.size:
        return 0.0 if array.shape == expected.shape else float(np.inf)
    xp = namespace(expected)
    a, b = array.astype(np.float64), expected.astype(np.float64)
    is_finite = xp.isfinite(b) & xp.isfinite(a)
    a, b = xp.where(is_finite, a, 0), xp.where(is_finite, b, 0)
    largest = float(xp.abs(b).max())
    return float(xp.abs(a - b).max()) / (largest or 1.0)
