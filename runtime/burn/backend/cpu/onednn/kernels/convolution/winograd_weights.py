"""Weight transforms of Winograd convolutions.

Constant weights are transformed and packed once. In plans that update the weights they
are transformed in each run: three rows form a matrix, and the transform of all weights
is one product with it.
"""

from functools import partial
from typing import Protocol

import numpy as np

from burn.backend.cpu.onednn.binding.api import DST, SRC, WEIGHTS, WEIGHTS_MD
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import empty, noting
from burn.backend.cpu.onednn.binding.engine import Session
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    is_dense,
    row_major,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32
from burn.backend.cpu.onednn.binding.prepared import Prepared, described
from burn.backend.cpu.onednn.binding.weights import Weights
from burn.backend.cpu.onednn.kernels.convolution.conv_operands import (
    Slots,
)

_BYTES = FLOAT32.itemsize


class TransformedWeights(Protocol):
    """The transformed weights."""

    def places(self, weight: Array) -> list[int]:
        """Return the addresses of the packed weights of each product."""


class _ConstantWeights:
    """Weights that are transformed once."""

    def __init__(self, packed: list[Weights]) -> None:
        self._packed = packed

    def places(self, weight: Array) -> list[int]:
        return [packed.place(weight) for packed in self._packed]


class _UpdatedWeights:
    """Weights that are transformed in each run.

    ``rows`` copy the columns of windows, each as [3, I, O], between byte offsets.
    """

    def __init__(
        self,
        rows: list[tuple[Prepared, int, int]],
        product: Prepared,
        matrix: Array,
        extents: tuple[int, ...],
        packed: list[Weights],
    ) -> None:
        self._rows, self._product, self._matrix = rows, product, matrix
        self._extents, self._packed = extents, packed

    def places(self, weight: Array) -> list[int]:
        rows = empty((3, *self._extents))
        for copy, source, target in self._rows:
            copy.run(address(weight) + source, address(rows) + target)
        notes = noting()
        if notes is not None:
            notes.keep(self._matrix)
        sums = empty((len(self._matrix), *self._extents))
        self._product.run(address(self._matrix), address(rows), address(sums))
        pairs = zip(self._packed, sums, strict=True)
        return [packed.place(each) for packed, each in pairs]


def transformed_weights(
    session: Session,
    primitives: Primitives,
    slots: Slots,
    numbers: Array,
    products: list[Prepared],
) -> TransformedWeights | None:
    """Return the weights of ``products``, transformed by ``numbers`` [products, 3].

    None if the library has no code for it.
    """
    if not slots.constant:
        return _updated_weights(session, primitives, slots, numbers, products)
    outputs, inputs, _, columns = slots.weight.shape
    extents = (outputs, inputs, 1, columns)
    given = strided(primitives.api, extents, row_major(extents))
    packed = []
    for each, product in zip(numbers, products, strict=True):
        arrange = partial(_transform_weight, numbers=each, mirrored=slots.mirrored)
        form = (*each, slots.mirrored, slots.weight.strides)
        packed.append(
            Weights(
                *(primitives, session.packed, given, form),
                *(product.description, WEIGHTS_MD),
                arrange=arrange,
            )
        )
    return _ConstantWeights(packed)


def _transform_weight(weight: Array, numbers: Array, mirrored: bool) -> Array:
    """Return [O, I, 3, columns] transformed for one product, [O, I, 1, columns]."""
    if mirrored:
        weight = weight.swapaxes(0, 1)[:, :, ::-1, ::-1]
    sums_ = np.zeros_like(weight[:, :, :1], np.float64)
    for row, number in enumerate(numbers):
        if number:
            sums_[:, :, 0] += weight[:, :, row] * number
    return np.ascontiguousarray(sums_, np.float32)


def _updated_weights(
    session: Session,
    primitives: Primitives,
    slots: Slots,
    numbers: Array,
    products: list[Prepared],
) -> TransformedWeights | None:
    api, (outputs, inputs, _, columns) = primitives.api, slots.weight.shape
    if not is_dense(slots.weight):
        return None
    step = inputs * outputs
    first, second, down, right = (each // _BYTES for each in slots.weight.strides)
    source = strided(api, (3, inputs, outputs), (down, second, first))
    target = strided(api, (3, inputs, outputs), (columns * step, outputs, 1))
    copy = primitives.reorder(source, target)
    matrix = np.array(numbers[:, ::-1] if slots.mirrored else numbers, np.float32)
    line = columns * step
    left = strided(api, matrix.shape, (3, 1))
    rows = strided(api, (3, line), (line, 1))
    sums = strided(api, (len(matrix), line), (line, 1))
    description = described(api, "matmul", api.engine, left, rows, None, sums)
    if copy is None or description is None:
        return None
    product = primitives.prepared(
        description, [(SRC, left), (WEIGHTS, rows), (DST, sums)]
    )
    places = [columns - 1 - c if slots.mirrored else c for c in range(columns)]
    copies = [
        (copy, _BYTES * right * column, _BYTES * step * position)
        for column, position in enumerate(places)
    ]
    given = strided(api, (outputs, inputs, 1, columns), (1, outputs, line, step))
    packed = [
        Weights(
            *(primitives, session.packed, given, ("sums",)),
            *(each.description, WEIGHTS_MD),
        )
        for each in products
    ]
    return _UpdatedWeights(copies, product, matrix, (columns, inputs, outputs), packed)
