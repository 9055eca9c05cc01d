"""Elementwise chains with oneDNN, in one pass and multithreaded."""

from typing import TypeAlias

from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import (
    BINARY_ADD,
    BINARY_DIV,
    BINARY_MUL,
    BINARY_SUB,
    DST,
    POST_OPERATION,
    RELU,
    SQRT,
    SRC,
    SRC_1,
)
from burn.backend.cpu.onednn.binding.cache import Primitives
from burn.backend.cpu.onednn.binding.capture import (
    empty_like,
    like_memory,
    may_overwrite,
    noting,
)
from burn.backend.cpu.onednn.binding.engine import current
from burn.backend.cpu.onednn.binding.memory import Array, address, is_dense, strided
from burn.backend.cpu.onednn.binding.operands import are_float32
from burn.backend.cpu.onednn.binding.prepared import (
    Operands,
    PostOps,
    Prepared,
    described,
)
from burn.ops.fused import Chain, chained as chained_op

# An element of a chain takes as long as that many multiplications.
_COST = 16
_BINARY = {"add": BINARY_ADD, "div": BINARY_DIV, "mul": BINARY_MUL, "sub": BINARY_SUB}
_UNARY = {"relu": RELU, "sqrt": SQRT}
#: For each operand, whether it is a scalar.
Single: TypeAlias = tuple[bool, ...]


@chained_op.on(Cpu)
def chained(x: Array, *operands: Array, chain: Chain) -> Array:
    """Compute :func:`burn.ops.fused.chained` with oneDNN in plans, else with NumPy.

    It does not propagate NaN, which plans exclude.
    """
    session = current() if noting() is not None and are_float32(x, *operands) else None
    if session is not None and x.size and chain[0][1] is not None and is_dense(x):
        single = tuple(operand.size == 1 != x.size for operand in operands)

        def make(primitives: Primitives) -> "_Chain | None":
            return _prepare(primitives, x.size, chain, single)

        key = ("chain", x.size, chain, single)
        kernel: _Chain | None = session.primitives.get(key, make, x.size * _COST)
        if kernel is not None:
            return kernel.run(x, *operands)
    return chained_op.kernel(x, *operands, chain=chain)


class _Chain:
    """A chain on a number of elements, in any memory order."""

    __slots__ = ("_prepared", "_single")

    def __init__(self, prepared: Prepared, single: Single) -> None:
        self._prepared, self._single = prepared, single

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(self, x: Array, *operands: Array) -> Array:
        """Return the result, in the memory of an operand that is dead."""
        pairs = list(zip(operands, self._single, strict=True))
        whole = [x, *(operand for operand, single in pairs if not single)]
        out = next((y for y in whole if _is_free(y, (x, *operands))), None)
        like = x if out is None else out
        arrays = [
            operand if single else like_memory(operand, like)
            for operand, single in ((x, False), *pairs)
        ]
        if out is None:
            out = empty_like(arrays[0], *arrays[1:])
        self._prepared.run(*map(address, arrays), address(out))
        return out


def _is_free(y: Array, read: tuple[Array, ...]) -> bool:
    """Return whether ``y`` may be overwritten elementwise while ``read`` is read."""
    others = [other for other in read if not _is_same(y, other)]
    return is_dense(y) and may_overwrite(y, *others)


def _is_same(a: Array, b: Array) -> bool:
    return address(a) == address(b) and (a.shape, a.strides) == (b.shape, b.strides)


def _prepare(
    primitives: Primitives, size: int, chain: Chain, single: Single
) -> _Chain | None:
    api = primitives.api
    line, number = strided(api, (size,), (1,)), strided(api, (1,), (1,))
    kinds = [number if one else line for one in single]
    (name, first), *rest = chain
    assert first is not None
    post = PostOps(api)
    where = {first: [SRC_1]}
    for position, (other, operand) in enumerate(rest):
        if operand is None:
            post.activation(_UNARY[other])
        else:
            post.binary(_BINARY[other], kinds[operand])
            argument = POST_OPERATION * (position + 1) | SRC_1
            where.setdefault(operand, []).append(argument)
    description = described(
        *(api, "binary", api.engine, _BINARY[name], line, kinds[first], line),
        post=post,
    )
    if description is None or any(len(places) > 1 for places in where.values()):
        return None
    operands: Operands = [(SRC, line)]
    operands += [(where[operand][0], kind) for operand, kind in enumerate(kinds)]
    return _Chain(primitives.prepared(description, [*operands, (DST, line)]), single)
