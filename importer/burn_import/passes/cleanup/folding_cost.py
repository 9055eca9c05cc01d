"""Estimates of the work and memory that computing a constant node takes."""

from __future__ import annotations

from math import prod

from burn_ir.graph import Graph, Node
from burn_ir.ops.pool import Pooling
from burn_ir.types import Array, Type

#: Elements of work and bytes of results that any model may cause, and for each element
#: or byte that it stores. One pass over an array is one unit for each element.
WORK, WORK_PER_ELEMENT = 2**24, 64
BYTES, BYTES_PER_BYTE = 2**26, 4
#: The most memory that one folded value, and all that one run folds, may hold.
VALUE_BYTES = 2**26
TOTAL_BYTES = 2**30
#: The most characters of a string result.
CHARACTERS = 2**18
#: Units of work for each element, where it is not 1.
FACTORS = {
    "AffineGrid": 8,
    "DFT": 32,
    "GridSample": 16,
    "NonZero": 8,
    "Resize": 16,
    "TopK": 16,
    "Unique": 16,
}
#: Operators whose results have no more elements than this many times their operands'.
BOUNDED = {"Compress": 1, "Flatten": 1, "NonZero": 8, "Reshape": 1, "Unique": 4}


class Budget:
    """The work and memory that are left for folding the constants of a graph."""

    def __init__(self, graph: Graph) -> None:
        constants = graph.constants
        made = constants.literals | constants.source.keys() | constants.recipes.keys()
        stored = [_stored(a) for n, a in constants.items() if n not in made]
        elements, size = (sum(each) for each in zip((0, 0), *stored, strict=True))
        self.work = WORK + WORK_PER_ELEMENT * elements
        self.left = min(TOTAL_BYTES, BYTES + BYTES_PER_BYTE * size)

    def admits(self, node: Node, arrays: list[Array | None], types: list[Type]) -> bool:
        """Whether computing ``node`` stays within the budget, which then has less.

        ``types`` are those of its results. A result of an unknown shape is as large as
        the operator can make it; without such a bound it is refused.
        """
        sizes = [_count(t, node, arrays) for t in types]
        if None in sizes or not _are_strings_short(arrays, sizes):
            return False
        counts = [size for size in sizes if size is not None]
        held = sum(n * t.dtype.itemsize for n, t in zip(counts, types, strict=True))
        units = work(node, arrays, sum(counts))
        if held > min(VALUE_BYTES, self.left) or units > self.work:
            return False
        self.work -= units
        return True


def may_copy(node: Node, array: Array | None) -> bool:
    """Whether ``node`` copies all elements of an array that has axes of stride 0."""
    if node.op.onnx not in ("Flatten", "Reshape") or array is None:
        return False
    return _stored(array)[0] < array.size


def work(node: Node, arrays: list[Array | None], results: int) -> int:
    """Units of work: elements read and written, or products that are summed."""
    given = [array for array in arrays if array is not None]
    touched = sum(array.size for array in given) + results
    factor = FACTORS.get(node.op.onnx, 1)
    inner = 1
    if node.op.onnx in ("MatMul", "Gemm") and given and given[0].ndim:
        inner = max(given[0].shape[-2:])
    elif node.op.onnx in ("Conv", "ConvTranspose") and len(given) > 1:
        inner = prod(given[1].shape[1:])
    elif node.op.onnx == "Det" and given and given[0].ndim:
        inner, results = given[0].shape[-1], given[0].size
    elif isinstance(node.op, Pooling):
        inner = prod(node.op.kernel_shape)
    elif node.op.onnx in _PRODUCTS and len(given) > 1:
        return int(prod(array.size for array in given[:3]))
    return int(touched * factor + results * inner)


#: Operators that may multiply every element of one operand by every one of another.
_PRODUCTS = frozenset(
    (
        *("Attention", "ConvInteger", "DeformConv", "Einsum", "GRU", "LSTM"),
        *("MatMulInteger", "NonMaxSuppression", "QLinearConv", "QLinearMatMul", "RNN"),
        *("RoiAlign", "STFT"),
    )
)


def _stored(array: Array) -> tuple[int, int]:
    """The elements and bytes of memory behind an array; an axis of stride 0 has one."""
    extents = zip(array.shape, array.strides, strict=True)
    count = prod(extent for extent, stride in extents if stride)
    return count, count * array.itemsize


def _count(t: Type, node: Node, arrays: list[Array | None]) -> int | None:
    """The elements of a result, at most; None without a bound."""
    if t.shape is not None and all(isinstance(d, int) for d in t.shape):
        return int(prod(t.shape))
    times = BOUNDED.get(node.op.onnx)
    if times is None:
        return None
    return times * sum(array.size for array in arrays if array is not None)


def _are_strings_short(arrays: list[Array | None], sizes: list[int | None]) -> bool:
    """Whether strings that are computed with have few characters altogether."""
    texts = [a for a in arrays if a is not None and a.dtype.kind in "OUST"]
    if any(a.size > CHARACTERS for a in texts):
        return False
    longest = sum(max((len(str(s)) for s in a.flat), default=0) for a in texts)
    return longest * max((n or 0 for n in sizes), default=0) <= CHARACTERS
