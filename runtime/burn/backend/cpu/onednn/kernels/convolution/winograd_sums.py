"""Input and output transforms of Winograd convolutions.

They map tiles of image rows to the inputs of the products, and the products to result
rows. They are products with small matrices in one pass over memory, except the first
and last input, whose rows belong to two tiles.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from burn.backend.cpu.onednn.binding.api import (
    BIAS,
    CONVOLUTION,
    DST,
    INFERENCE,
    SRC,
    WEIGHTS,
    WEIGHTS_MD,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import noted_by, noting
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    any_layout,
    of_array,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32
from burn.backend.cpu.onednn.binding.prepared import Operands, Prepared, described
from burn.backend.cpu.onednn.binding.scratch import Block
from burn.backend.cpu.onednn.kernels.convolution.conv_operands import (
    Slots,
    geometry,
    image,
)
from burn.backend.cpu.onednn.kernels.post_ops import addend_index, post_ops
from burn.ops.window import Windows

_BYTES = FLOAT32.itemsize


class Form:
    """The rows of a tile, and the transform matrices.

    ``image`` [products, rows + 2] has the coefficients of image rows in each product,
    ``weights`` [products, 3] those of weight rows, and ``result`` [rows, products]
    those of products in each result row. The coefficients of the second product, to
    which the bias is added, are 1 in all rows.
    """

    def __init__(self, image: Any, weights: Any, result: Any) -> None:
        self.image = np.array(image, np.float32)
        self.weights = np.array(weights, np.float64)
        self.result = np.array(result, np.float32)
        self.rows, self.products = len(self.result), len(self.image)


#: Four products for each two rows.
TWO = Form(
    [[1, 0, -1, 0], [0, 1, 1, 0], [0, -1, 1, 0], [0, 1, 0, -1]],
    [[1, 0, 0], [1 / 2, 1 / 2, 1 / 2], [1 / 2, -1 / 2, 1 / 2], [0, 0, 1]],
    [[1, 1, 1, 0], [0, 1, -1, -1]],
)
#: Six products for each four rows.
FOUR = Form(
    [
        [4, 0, -5, 0, 1, 0],
        [0, -4, -4, 1, 1, 0],
        [0, 4, -4, -1, 1, 0],
        [0, -2, -1, 2, 1, 0],
        [0, 2, -1, -2, 1, 0],
        [0, 4, 0, -5, 0, 1],
    ],
    [
        [1 / 4, 0, 0],
        [-1 / 6, -1 / 6, -1 / 6],
        [-1 / 6, 1 / 6, -1 / 6],
        [1 / 24, 1 / 12, 1 / 6],
        [1 / 24, -1 / 12, 1 / 6],
        [0, 0, 1],
    ],
    [
        [1, 1, 1, 1, 1, 0],
        [0, 1, -1, 2, -2, 0],
        [0, 1, 1, 4, 4, 0],
        [0, 1, -1, 8, -8, 1],
    ],
)


class Rows(NamedTuple):
    """Channels-last images [N, C, H, W] as rows of elements, in tiles of a form."""

    form: Form
    images: int
    channels: int
    height: int
    width: int

    @property
    def line(self) -> int:
        """The number of elements of a row."""
        return self.channels * self.width

    @property
    def tiles(self) -> int:
        """The number of tiles of an image; the last one may have fewer rows."""
        return -(-self.height // self.form.rows)

    @property
    def sums(self) -> tuple[int, int, int, int]:
        """The extents of the transformed image, in memory order."""
        return self.form.products, self.images, self.tiles, self.line

    @property
    def step(self) -> int:
        """The number of elements between consecutive transforms."""
        return self.images * self.tiles * self.line

    def parts(self) -> Iterator[tuple[int, int, int]]:
        """Yield the first tile, the number of equal tiles, and their number of rows."""
        whole, rest = divmod(self.height, self.form.rows)
        if whole:
            yield 0, whole, self.form.rows
        if rest:
            yield whole, 1, rest

    def image_strides(self) -> tuple[int, ...]:
        """Return the strides of an image as [N, tiles, rows, line]."""
        return self.height * self.line, self.form.rows * self.line, self.line, 1

    def sum_strides(self) -> tuple[int, ...]:
        """Return the strides of the transformed image as [N, tiles, products, line]."""
        return self.tiles * self.line, self.line, self.step, 1


class Sums(NamedTuple):
    """A product of a small matrix with rows, and their start offsets in bytes."""

    prepared: Prepared
    matrix: Array
    source: int
    target: int

    def run(self, source: int, target: int, residual: int | None = None) -> None:
        """Compute on arrays that start at these addresses."""
        more = () if residual is None else (residual + self.target,)
        places = (address(self.matrix), source + self.source, target + self.target)
        self.prepared.run(*places, *more)


class Outer(NamedTuple):
    """The first or last input transform; ``numbers`` are its packed coefficients."""

    prepared: Prepared
    numbers: Block
    target: int

    def run(self, source: int, target: int) -> None:
        """Compute on arrays that start at these addresses."""
        notes = noting()
        if notes is not None:
            notes.keep(self.numbers)
        self.prepared.run(source, self.numbers.address, target + self.target)


def input_transforms(primitives: Primitives, rows: Rows) -> list[Sums | Outer]:
    """Return the input transforms; empty if the library has no code for them."""
    sums: list[Sums | Outer] = []
    for first, tiles, height in rows.parts():
        matrix = rows.form.image[1:-1, 1 : 1 + height]
        strides = (rows.image_strides(), rows.sum_strides())
        prepared = _matmul(primitives, matrix, (rows.images, tiles, rows.line), strides)
        if prepared is None:
            return []
        source, target = first * rows.form.rows * rows.line, rows.step
        places = (_BYTES * source, _BYTES * (target + first * rows.line))
        sums.append(Sums(prepared, matrix, *places))
    for index, above in ((0, 1), (rows.form.products - 1, 0)):
        outer = _outer(primitives, rows, index, above)
        if outer is None:
            return []
        sums.append(outer)
    return sums


def output_transforms(primitives: Primitives, rows: Rows, slots: Slots) -> list[Sums]:
    """Return the output transforms; empty if the library has no code for them."""
    sums = []
    for first, tiles, height in rows.parts():
        matrix = rows.form.result[:height]
        extents, strides = (rows.images, tiles, rows.line), rows.sum_strides()
        prepared = _matmul(
            primitives, matrix, extents, (strides, rows.image_strides()), slots
        )
        if prepared is None:
            return []
        source, target = first * rows.line, first * rows.form.rows * rows.line
        sums.append(Sums(prepared, matrix, _BYTES * source, _BYTES * target))
    return sums


def _matmul(
    primitives: Primitives,
    matrix: Array,
    extents: tuple[int, int, int],
    strides: tuple[tuple[int, ...], tuple[int, ...]],
    slots: Slots | None = None,
) -> Prepared | None:
    """Return ``matrix`` times rows for [N, tiles], plus the addends in ``slots``."""
    api, (height, width), (*tiles, line) = primitives.api, matrix.shape, extents
    step = matrix.strides[0] // _BYTES
    small = strided(api, (1, 1, height, width), (height * step, height * step, step, 1))
    given = strided(api, (*tiles, width, line), strides[0])
    target = strided(api, (*tiles, height, line), strides[1])
    operands: Operands = [(SRC, small), (WEIGHTS, given), (DST, target)]
    post = None
    if slots is not None:
        post = post_ops(api, slots.after, None if slots.in_place else target)
        if slots.residual is not None and not slots.in_place:
            operands.append((addend_index(slots.after), target))
    description = described(
        api, "matmul", api.engine, small, given, None, target, post=post
    )
    return None if description is None else primitives.prepared(description, operands)


def _outer(primitives: Primitives, rows: Rows, index: int, above: int) -> Outer | None:
    """Return the transform ``index``, which may start with the row ``above`` a tile."""
    numbers = rows.form.image[index, 1 - above :: 2]
    taps = int(np.flatnonzero(numbers)[-1]) + 1
    below = rows.form.rows * rows.tiles + 1 - above - rows.height
    wins = Windows(
        *((rows.height, rows.width), (taps, 1), (rows.form.rows, 1), (2, 1)),
        *(((above, below), (0, 0)), (rows.tiles, rows.width)),
    )
    channels = (rows.channels, rows.channels)
    product = convolution(primitives, rows.images, channels, wins, rows.channels)
    if product is None:
        return None
    extents = (rows.channels, 1, 1, taps, 1)
    numbers = np.broadcast_to(numbers[:taps].reshape(1, 1, 1, taps, 1), extents)
    block = _packed(primitives, product, np.ascontiguousarray(numbers))
    return None if block is None else Outer(product, block, _BYTES * index * rows.step)


def _packed(primitives: Primitives, prepared: Prepared, weights: Array) -> Block | None:
    """Return ``weights`` in the layout of a convolution."""
    wanted = prepared.description.descriptor(WEIGHTS_MD)
    reorder = primitives.reorder(of_array(primitives.api, weights), wanted)
    if reorder is None:
        return None
    block = Block(primitives.api.size_of(wanted))
    with noted_by(None):
        reorder.run(address(weights), block.address)
    return block


def convolution(
    primitives: Primitives,
    images: int,
    channels: tuple[int, int],
    wins: Windows,
    groups: int | None = None,
    bias: Array | None = None,
) -> Prepared | None:
    """Return a convolution between channels-last images [N, C, H, W]."""
    api, (inputs, outputs), where = primitives.api, channels, geometry(wins, (0, 1))
    if where is None:
        return None
    source = image(api, (images, inputs, *wins.size), FLOAT32)
    target = image(api, (images, outputs, *wins.count), FLOAT32)
    extents: tuple[int, ...] = (outputs, inputs, *wins.kernel)
    if groups is not None:
        extents = (groups, outputs // groups, inputs // groups, *wins.kernel)
    shift = None if bias is None else of_array(api, bias)
    description = described(
        *(api, "convolution_forward", api.engine, INFERENCE, CONVOLUTION),
        *(source, any_layout(api, extents), shift, target, *where),
    )
    if description is None:
        return None
    operands: Operands = [(SRC, source), (WEIGHTS, description.descriptor(WEIGHTS_MD))]
    operands.append((DST, target))
    if shift is not None:
        operands.append((BIAS, shift))
    return primitives.prepared(description, operands)
