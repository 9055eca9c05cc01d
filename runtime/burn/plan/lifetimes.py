"""Liveness analysis: the peak memory of a plan."""

from math import prod

from burn.box import Box
from burn.ops.support import Array
from burn.plan.plan_ir import Read, Segment, Step


def peak_bytes(segment: Segment, inputs: list[Array], volatile: set[Box]) -> int:
    """Return an estimate of the peak number of live bytes.

    Only ``segment`` is counted, not its successors. Boxes, and values computed only
    from boxes that are not ``volatile``, do not count because they are outside the
    arena's first chunk. A view counts as a copy.
    """
    sizes = {index: array.nbytes for index, array in enumerate(inputs)}
    live: int = sum(sizes.values())
    peak = live
    for step, drops in zip(segment.steps, segment.drops, strict=True):
        if isinstance(step, Read):
            if step.box in volatile:
                sizes[step.place] = 0
        elif any(index in sizes for index in step.operand_places):
            added = _output_bytes(step)
            sizes |= added
            live += sum(added.values())
            peak = max(peak, live)
        live -= sum(sizes.pop(index, 0) for index in drops)
    return peak


def _output_bytes(step: Step) -> dict[int, int]:
    forms = zip(step.outputs, step.shapes, step.dtypes, strict=True)
    return {index: prod(s) * int(d.itemsize) for index, s, d in forms}
