"""How much a plan has to do, and from where on it pays to do it on several threads."""

from math import prod

from burn.backend.onednn.cache import ALONE
from burn.ops.conv import conv
from burn.ops.fused import conv_then, linear_then, matmul_then
from burn.ops.matmul import linear, matmul
from burn.ops.support import Array
from burn.plan.tree import Segment, Slot, Step
from burn.tensor import Tensor

#: Fewer multiplications than this are over so soon that the other threads sleep
#: between them: waking them pays for what takes several times as long.
SHORT = 50_000_000
ASLEEP = 4 * ALONE

_ROWS = frozenset({conv, conv_then, linear, linear_then})
_PRODUCTS = frozenset({matmul, matmul_then})


def helped_from(segment: Segment, values: dict[int, Array]) -> int:
    """The least work of a primitive that pays help, where ``segment`` follows."""
    shapes = {place: array.shape for place, array in values.items()}
    total = 0
    for step in segment.steps:
        if isinstance(step, Step):
            shapes.update(zip(step.outputs, step.shapes, strict=True))
            total += _work(step, shapes)
        else:
            shapes[step.place] = step.box.shape
    return ALONE if total >= SHORT else ASLEEP


def _work(step: Step, shapes: dict[int, tuple[int, ...]]) -> int:
    """How many products are summed by a convolution, or a product of matrices."""
    if step.primitive in _ROWS:
        summed = prod(_shape(step.args[1], shapes)[1:])
    elif step.primitive in _PRODUCTS:
        summed = prod(_shape(step.args[0], shapes)[-1:])
    else:
        return 0
    return prod(step.shapes[0]) * summed


def _shape(arg: object, shapes: dict[int, tuple[int, ...]]) -> tuple[int, ...]:
    if type(arg) is Slot:
        return shapes[arg.place]
    return arg.shape if isinstance(arg, Tensor) else ()
