"""Descriptions of matrices in memory in cuBLAS's terms."""

from dataclasses import dataclass

from burn.backend.cuda.kernels.elementwise.elements import dense
from burn.ops.support import Array

#: Alignments of addresses, in bytes, that algorithms are chosen by.
ALIGNMENT = 256


@dataclass(frozen=True)
class Matrix:
    """Matrices in memory in cuBLAS's column-major terms.

    ``rows`` x ``columns`` with ``leading`` elements from column to column, ``count``
    times with ``step`` elements between them. ``transposed`` tells that the product
    reads the transpose. ``alignment`` is that of the address.
    """

    rows: int
    columns: int
    leading: int
    count: int
    step: int
    transposed: bool
    alignment: int


def describe_matrices(array: Array) -> tuple[Array, Matrix]:
    """Return ``array`` [..., n, k] as matrices; copied if strides are unsupported."""
    matrix = matrix_of(array)
    if matrix is None:
        array = dense(array)
        matrix = matrix_of(array)
        assert matrix is not None
    return array, matrix


def matrix_of(array: Array) -> Matrix | None:
    """Return the matrix description of ``array``, None if cuBLAS has none."""
    size = array.itemsize
    *outer, height, width = array.shape
    *steps, down, across = (stride // size for stride in array.strides)
    count = step = 1
    for extent, stride in zip(reversed(outer), reversed(steps), strict=True):
        if extent == 1:
            continue
        if count == 1:
            count, step = extent, stride
        elif stride == step * count:
            count *= extent
        else:
            return None
    address = array.data.ptr
    alignment = min(address & -address, ALIGNMENT) if address else ALIGNMENT
    if (across == 1 or width == 1) and (down >= width or height == 1):
        leading = max(down, width) if height > 1 else width
        return Matrix(width, height, leading, count, step, False, alignment)
    if (down == 1 or height == 1) and (across >= height or width == 1):
        leading = max(across, height) if width > 1 else height
        return Matrix(height, width, leading, count, step, True, alignment)
    return None
