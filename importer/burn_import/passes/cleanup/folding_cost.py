"""Estimates of the work and memory needed to fold a constant node."""

from math import prod

from burn_ir.graph import Graph, Node
from burn_ir.ops.pool import Pooling
from burn_ir.types import Array, Type

#: Elements of work and bytes of results allowed for any model, and in addition for each
#: element or byte that the model stores. One pass over an array costs one unit per
#: element.
WORK, WORK_PER_ELEMENT = 2**24, 64
BYTES, BYTES_PER_BYTE = 2**26, 4
#: The largest size in bytes of one folded value, and of all values of a run.
VALUE_BYTES = 2**26
TOTAL_BYTES = 2**30
#: The largest number of characters of a string result.
CHARACTERS = 2**18
#: Units of work per element, where it is not 1.
FACTORS = {
    "AffineGrid": 8,
    "DFT": 32,
    "GridSample": 16,
    "NonZero": 8,
    "Resize": 16,
    "TopK": 16,
    "Unique": 16,
}
#: Bound of the result's elements, as a multiple of the elements of all operands.
BOUNDED = {"Compress": 1, "Flatten": 1, "NonZero": 8, "Reshape": 1, "Unique": 4}


class Budget:
    """The work and memory left for folding the constants of a graph."""

    def __init__(self, graph: Graph) -> None:
        constants = graph.constants
        computed = (
            constants.literals | constants.source.keys() | constants.recipes.keys()
        )
        stored = [_memory_size(a) for n, a in constants.items() if n not in computed]
        elements, size = (sum(each) for each in zip((0, 0), *stored, strict=True))
        self.work = WORK + WORK_PER_ELEMENT * elements
        self.free_bytes = min(TOTAL_BYTES, BYTES + BYTES_PER_BYTE * size)

    def admits(self, node: Node, arrays: list[Array | None], types: list[Type]) -> bool:
        """Return whether computing ``node`` fits the budget, and reduce it if so.

        ``types`` are those of its results. A result of unknown shape counts with the
        bound of its operator; without a bound it is refused.
        """
        sizes = [_count(t, node, arrays) for t in types]
        if None in sizes or not _are_strings_short(arrays, sizes):
            return False
        counts = [size for size in sizes if size is not None]
        result_bytes = sum(
            n * t.dtype.itemsize for n, t in zip(counts, types, strict=True)
        )
        units = work(node, arrays, sum(counts))
        if result_bytes > min(VALUE_BYTES, self.free_bytes) or units > self.work:
            return False
        self.work -= units
        return True


def may_copy(node: Node, array: Array | None) -> bool:
    """Return whether ``node`` may materialize an array with broadcast axes."""
    if node.op.onnx not in ("Flatten", "Reshape") or array is None:
        return False
    return _memory_size(array)[0] < array.size


def work(node: Node, arrays: list[Array | None], results: int) -> int:
    """Return the units of work: elements read and written, or products summed."""
    operands = [array for array in arrays if array is not None]
    touched = sum(array.size for array in operands) + results
    factor = FACTORS.get(node.op.onnx, 1)
    inner = 1
    if node.op.onnx in ("MatMul", "Gemm") and operands and operands[0].ndim:
        inner = max(operands[0].shape[-2:])
    elif node.op.onnx in ("Conv", "ConvTranspose") and len(operands) > 1:
        inner = prod(operands[1].shape[1:])
    elif node.op.onnx == "Det" and operands and operands[0].ndim:
        inner, results = operands[0].shape[-1], operands[0].size
    elif isinstance(node.op, Pooling):
        inner = prod(node.op.kernel_shape)
    elif node.op.onnx in _PRODUCTS and len(operands) > 1:
        return int(prod(array.size for array in operands[:3]))
    return int(touched * factor + results * inner)


#: Operators that may combine every element of one operand with every one of another.
_PRODUCTS = frozenset(
    (
        *("Attention", "ConvInteger", "DeformConv", "Einsum", "GRU", "LSTM"),
        *("MatMulInteger", "NonMaxSuppression", "QLinearConv", "QLinearMatMul", "RNN"),
        *("RoiAlign", "STFT"),
    )
)


def _memory_size(array: Array) -> tuple[int, int]:
    """Return the elements and bytes in memory; broadcast axes count once."""
    extents = zip(array.shape, array.strides, strict=True)
    count = prod(extent for extent, stride in extents if stride)
    return count, count * array.itemsize


def _count(t: Type, node: Node, arrays: list[Array | None]) -> int | None:
    """Return the largest number of elements of a result; None if unbounded."""
    if t.shape is not None and all(isinstance(d, int) for d in t.shape):
        return int(prod(t.shape))
    times = BOUNDED.get(node.op.onnx)
    if times is None:
        return None
    return times * sum(array.size for array in arrays if array is not None)


def _are_strings_short(arrays: list[Array | None], sizes: list[int | None]) -> bool:
    """Return whether the string results have few characters in total."""
    texts = [a for a in arrays if a is not None and a.dtype.kind in "OUST"]
    if any(a.size > CHARACTERS for a in texts):
        return False
    longest = sum(max((len(str(s)) for s in a.flat), default=0) for a in texts)
    return longest * max((n or 0 for n in sizes), default=0) <= CHARACTERS
