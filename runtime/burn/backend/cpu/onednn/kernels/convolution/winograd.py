"""Winograd convolutions F(2, 3) and F(4, 3) along rows, with fewer multiplications.

With a window of three rows, four rows of a result are twelve products of image rows and
weight rows. The same rows are sums of six products, between sums of image rows and sums
of weight rows (S. Winograd, "Arithmetic Complexity of Computations", 1980; A. Lavin and
S. Gray, "Fast Algorithms for Convolutional Neural Networks", 2015). Such results are
rounded otherwise, and differ by a few 1e-6 of their largest element at most.

The terms of the sums must be finite, as they are in plans.
"""

from math import prod
from typing import NamedTuple

from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import empty
from burn.backend.cpu.onednn.binding.engine import Session
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    channels_last,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32, Arranged
from burn.backend.cpu.onednn.binding.prepared import Prepared
from burn.backend.cpu.onednn.kernels.convolution.conv_operands import (
    Slots,
)
from burn.backend.cpu.onednn.kernels.convolution.windowed import (
    Windowed,
)
from burn.backend.cpu.onednn.kernels.convolution.winograd_sums import (
    FOUR,
    TWO,
    Form,
    Outer,
    Rows,
    Sums,
    convolution,
    input_transforms,
    output_transforms,
)
from burn.backend.cpu.onednn.kernels.convolution.winograd_weights import (
    TransformedWeights,
    transformed_weights,
)
from burn.ops.window import Windows

# The product that every row of a result contains once: the bias is added to it.
_COMMON = 1
#: Thresholds above which the sums are faster: multiplications of the direct
#: convolution, sums of the image for each weight, and the fraction of their rows that
#: are used. The last one is the maximum number of elements that the sums take.
_WORK, _MEETINGS, _WANTED, _MOST = 80_000_000, 50, 0.8, 8_000_000
#: The multiplications on one thread, where no stage waits for other threads.
_WORK_ALONE = 7_000_000
#: The harmonic mean of the channels, times the columns of a window: fewer products
#: take less time, and sums of as many channels as before.
_CHANNELS = 120
#: With fewer sums per weight F(2, 3) is faster, since it has fewer weights.
_FEW = 100
#: The minimum for weights that are transformed in every run of the plan.
_SET = 1000


class _Steps(NamedTuple):
    """The stages of a Winograd convolution, in order."""

    input_transforms: list[Sums | Outer]
    weights: TransformedWeights
    products: list[Prepared]
    output_transforms: list[Sums]


class Winograd(Windowed):
    """A prepared Winograd convolution."""

    __slots__ = ("_source", "_steps", "_target")

    def __init__(
        self,
        primitives: Primitives,
        slots: Slots,
        sides: tuple[Rows, Rows],
        steps: _Steps,
    ) -> None:
        arranged = Arranged(primitives, slots.x, channels_last(slots.x.shape))
        super().__init__(primitives, slots, arranged, steps.products[0])
        self._steps, (self._source, self._target) = steps, sides

    def _compute(
        self,
        x: Array,
        weight: Array,
        bias: Array | None,
        residual: Array | None,
        out: Array,
    ) -> None:
        sums, products = empty(self._source.sums), empty(self._target.sums)
        for part in self._steps.input_transforms:
            part.run(address(x), address(sums))
        weights = self._steps.weights.places(weight)
        for index, product in enumerate(self._steps.products):
            places = [address(sums[index]), weights[index], address(products[index])]
            if index == _COMMON and bias is not None:
                places.append(address(bias))
            product.run(*places)
        addend = None if residual is None else address(residual)
        for part in self._steps.output_transforms:
            part.run(address(products), address(out), addend)


def winograd(
    session: Session, primitives: Primitives, slots: Slots, wins: Windows
) -> Winograd | None:
    """Return a Winograd convolution; None if unsupported or not faster."""
    form = _form(slots, wins, session.api.threads)
    if form is None or not slots.has_plain_bias:
        return None
    source, target = _rows(form, slots.x.shape), _rows(form, slots.shape)
    products = _products(primitives, slots, wins, source)
    if not products:
        return None
    weights = transformed_weights(session, primitives, slots, form.weights, products)
    first, last = input_transforms(primitives, source), output_transforms(
        primitives, target, slots
    )
    if weights is None or not first or not last:
        return None
    steps = _Steps(first, weights, products, last)
    return Winograd(primitives, slots, (source, target), steps)


def _candidate_forms(slots: Slots) -> tuple[tuple[Form, int], ...]:
    """Return the candidate forms, with the minimum number of uses of each weight.

    With gradients, results decide which elements pass a ReLU, and must be bitwise those
    of eager calls: then only gradients use these forms.
    """
    if slots.constant:
        return (FOUR, _FEW), (TWO, _MEETINGS)
    return ((FOUR, _SET),) if slots.mirrored else ()


def _form(slots: Slots, wins: Windows, threads: int) -> Form | None:
    """Return the best form for a convolution; None if unsupported or not faster."""
    if not slots.planned or len(slots.shape) != 4 or len(slots.weight.shape) != 4:
        return None
    given = (slots.x, slots.weight, slots.bias, slots.residual)
    if any(array is not None and array.dtype != FLOAT32 for array in given):
        return None
    if (wins.kernel[0], wins.stride[0], wins.dilation[0]) != (3, 1, 1):
        return None
    outputs, inputs, _, columns = slots.weight.shape
    enough = 2 * columns * inputs * outputs >= _CHANNELS * (inputs + outputs)
    if wins.pads[0] != (1, 1) or not enough:
        return None
    least_work = _WORK if threads > 1 else _WORK_ALONE
    if prod(slots.shape) * inputs * wins.taps < least_work:
        return None
    for form, least in _candidate_forms(slots):
        sides = _rows(form, slots.x.shape), _rows(form, slots.shape)
        meetings = sides[1].step // outputs
        wanted = sides[1].height / (form.rows * sides[1].tiles)
        if meetings >= least and wanted >= _WANTED:
            return form if max(prod(side.sums) for side in sides) <= _MOST else None
    return None


def _rows(form: Form, shape: tuple[int, ...]) -> Rows:
    """Return the rows of images [N, C, H, W]."""
    images, channels, height, width = shape
    return Rows(form, images, channels, height, width)


def _products(
    primitives: Primitives, slots: Slots, wins: Windows, source: Rows
) -> list[Prepared]:
    """Return the products, convolutions with windows of one row; empty if unsupported.

    Nothing if the library has no code for them.
    """
    outputs, inputs, _, columns = slots.weight.shape
    line = Windows(
        *((source.tiles, wins.size[1]), (1, columns)),
        *((1, wins.stride[1]), (1, wins.dilation[1])),
        *(((0, 0), wins.pads[1]), (source.tiles, wins.count[1])),
    )
    where = (primitives, source.images, (inputs, outputs), line)
    plain, common = convolution(*where), convolution(*where, bias=slots.bias)
    if plain is None or common is None:
        return []
    count = source.form.products
    return [common if index == _COMMON else plain for index in range(count)]
