"""Matrix products with oneDNN: ``matmul`` and ``linear``.

Operands are read in place, transposed or not, by their strides. All products that
OpenBLAS would multithread are computed here: two libraries with spinning threads on the
same cores slow each other down.
"""

from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from burn.backend.cpu.blas.generated_rows import generated_row
from burn.backend.cpu.device import Cpu
from burn.backend.cpu.onednn.binding.api import BIAS, DST, SRC, WEIGHTS, WEIGHTS_MD
from burn.backend.cpu.onednn.binding.cache import Primitives, work_of_row
from burn.backend.cpu.onednn.binding.capture import (
    compact,
    empty,
    may_overwrite,
    noting,
    reshaped,
)
from burn.backend.cpu.onednn.binding.engine import Session, current, limits
from burn.backend.cpu.onednn.binding.memory import (
    Array,
    address,
    any_layout,
    is_dense,
    matrix_strides,
    of_array,
    ordered,
    row_major,
    strided,
)
from burn.backend.cpu.onednn.binding.operands import FLOAT32, are_multiplied, form
from burn.backend.cpu.onednn.binding.prepared import Operands, Prepared, described
from burn.backend.cpu.onednn.binding.weights import Weights
from burn.backend.cpu.onednn.kernels.matrices import (
    are_tiny,
    has_few_gapped_rows,
    is_readable,
    operand,
)
from burn.backend.cpu.onednn.kernels.pointwise_products import faster_product
from burn.backend.cpu.onednn.kernels.post_ops import (
    After,
    addend_index,
    adds_first,
    post_ops,
)
from burn.ops.fused import linear_then as linear_then_op, matmul_then as matmul_then_op
from burn.ops.matmul import linear as linear_op, matmul as matmul_op

#: The operands of a product: ``x``, ``y`` and the addend of each row.
Given: TypeAlias = tuple[Array, Array, Array | None]

# The code for matrices is slow on one row.
_FOR_MATRICES = "brg"
# That for matrices of any strides is slow on many small ones, which are copied. Its
# first call in a process compiles code for all shapes.
_FOR_LARGE = "gemm"
# The elements of the largest weights that plans pack for one row: it saves a quarter of
# the time to read them from a cache. Larger ones are read from memory.
_MOST_OF_ROW = 1 << 22


@matmul_op.on(Cpu)
def matmul(x: Array, y: Array) -> Array:
    """Compute :func:`burn.ops.matmul` with oneDNN if faster, else with NumPy."""
    out = product(x, y)
    return matmul_op.kernel(x, y) if out is None else out


def product(x: Array, y: Array) -> Array | None:
    """Return the product of matrices; None if NumPy should compute it."""
    return _product_of(x, y, _Ending())


@matmul_then_op.on(Cpu)
def matmul_then(
    x: Array,
    y: Array,
    bias: None = None,
    residual: Array | None = None,
    *,
    after: After,
) -> Array:
    """Compute :func:`burn.ops.fused.matmul_then` with oneDNN or NumPy."""
    out = None
    if residual is None or residual.dtype in (x.dtype, FLOAT32):
        out = _product_of(x, y, _Ending(after, residual))
    if out is None:
        return matmul_then_op.kernel(x, y, bias, residual, after=after)
    return out


def _product_of(x: Array, y: Array, ending: "_Ending") -> Array | None:
    """Return the product of matrices; None if NumPy should compute it."""
    if not (getattr(x, "ndim", 0) > 1 < getattr(y, "ndim", 0) and are_multiplied(x, y)):
        return None
    rows = x.size // x.shape[-1] if x.size else 0
    work = max(rows, prod(y.shape[:-2]) * x.shape[-2]) * x.shape[-1] * y.shape[-1]
    session = _session(work, min(x.shape[-2] if y.ndim > 2 else rows, y.shape[-1]))
    if session is None or x.shape[-1] != y.shape[-2] or not y.size:
        return None
    return _matmul(session, x, y, work, ending)


@linear_op.on(Cpu)
def linear(x: Array, weight: Array, bias: Array | None = None) -> Array:
    """Compute :func:`burn.ops.linear` with oneDNN if faster, else with NumPy."""
    out = generated_row(x, weight, bias)
    if out is None:
        out = _linear(x, weight, bias, _Ending())
    return linear_op.kernel(x, weight, bias) if out is None else out


@linear_then_op.on(Cpu)
def linear_then(
    x: Array,
    weight: Array,
    bias: Array | None = None,
    residual: Array | None = None,
    *,
    after: After,
) -> Array:
    """Compute :func:`burn.ops.fused.linear_then` with oneDNN or NumPy."""
    out = generated_row(x, weight, bias, residual, after)
    if out is None and (residual is None or residual.dtype in (x.dtype, FLOAT32)):
        rows = None if residual is None else _rows(residual)
        out = _linear(x, weight, bias, _Ending(after, rows))
    if out is None:
        return linear_then_op.kernel(x, weight, bias, residual, after=after)
    return out


class _Ending(NamedTuple):
    """The epilogue of a product."""

    after: After = ()
    residual: Array | None = None


def _linear(
    x: Array, weight: Array, bias: Array | None, ending: _Ending
) -> Array | None:
    """Return the linear layer; None if NumPy should compute it."""
    if not (x.size and x.ndim and weight.ndim == 2):
        return None
    if not are_multiplied(x, weight, bias):
        return None
    width = x.shape[-1]
    count = x.size // width
    work = count * weight.size
    session = _session(work, min(count, len(weight)))
    if session is None or width != weight.shape[1]:
        return None
    rows = x if x.ndim == 2 else reshaped(x, (count, width))
    out = _product(session, (rows, weight.T, bias), weight, work, ending)
    if out is None or x.ndim == 2:
        return out
    return out.reshape(*x.shape[:-1], len(weight))


def _rows(x: Array) -> Array:
    return reshaped(x, (x.size // max(x.shape[-1], 1), x.shape[-1]))


def _session(work: int, least: int) -> Session | None:
    """Return the session if products of this ``work`` and ``least`` are faster."""
    limit = limits()
    if work < (limit.products if least > 1 else limit.vectors):
        return None
    return current(work)


def _matmul(
    session: Session, x: Array, y: Array, work: int, ending: _Ending
) -> Array | None:
    if y.ndim == 2:
        rows = x if x.ndim == 2 else _rows(x)
        if ending.residual is not None:
            ending = ending._replace(residual=_rows(ending.residual))
        out = _product(session, (rows, y, None), y, work, ending)
        return out if out is None else out.reshape(*x.shape[:-1], y.shape[1])
    rank = max(x.ndim, y.ndim)
    left, right = (
        array.reshape((1,) * (rank - array.ndim) + array.shape) for array in (x, y)
    )
    return _product(session, (left, right, None), None, work, ending)


def _product(
    session: Session,
    given: Given,
    owner: Array | None,
    work: int,
    ending: _Ending | None = None,
) -> Array | None:
    """Return ``x @ y + bias`` of the ``given`` operands, None if unsupported.

    ``owner`` is the array that ``y`` is a view of, if it may be a parameter: from its
    second use it is packed.
    """
    (x, y, bias), (after, residual) = given, ending or _Ending()
    if residual is not None:
        residual = compact(_repeated(residual, max(x.shape[0], y.shape[0])))
    pack = owner is not None and _may_be_packed(session, x, owner)

    order = _order(x, y, residual)
    in_place = residual is not None and _is_whole(residual, x, y)
    in_place = in_place and adds_first(after)
    in_place = in_place and may_overwrite(residual, x, y, bias)

    def make(primitives: Primitives) -> "_Product | None":
        wanted = _ProductForm(after, residual, order, in_place)
        return _prepare(session, primitives, given, wanted, pack)

    forms = (form(x), form(y), form(bias), form(residual))
    key = ("matmul", pack, *forms, after, order, in_place)
    if x.shape[-2] == 1:
        work = work_of_row(work)
    kernel: _Product | None = session.primitives.get(key, make, work)
    return None if kernel is None else kernel.run(given, owner, residual)


def _may_be_packed(session: Session, x: Array, owner: Array) -> bool:
    """Return whether packing ``owner`` is worth its memory."""
    notes = noting()
    if x.shape[-2] == 1 and (notes is None or owner.size > _MOST_OF_ROW):
        return False
    return session.packed.seen(owner) if notes is None else notes.is_constant(owner)


def _repeated(residual: Array, batch: int) -> Array:
    """Return ``residual`` expanded to the batch, unless it is one row for all."""
    shape = residual.shape
    if len(shape) < 3 or shape[0] == batch or set(shape[:-1]) == {1}:
        return residual
    return np.broadcast_to(residual, (batch, *shape[1:]))


def _is_whole(residual: Array, x: Array, y: Array) -> bool:
    """Return whether ``residual`` has the shape of the product."""
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return bool(
        residual.dtype == x.dtype
        and residual.shape == (*batch, x.shape[-2], y.shape[-1])
    )


def _order(x: Array, y: Array, residual: Array | None) -> tuple[int, ...] | None:
    """Return the memory order in which a plan prefers the result, or None."""
    notes = noting()
    if notes is None or residual is not None or min(x.ndim, y.ndim) < 3:
        return None
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    return notes.order_of((*batch, x.shape[-2], y.shape[-1]))


class _ProductForm(NamedTuple):
    """The epilogue of a product, and the layout of its result."""

    after: After
    residual: Array | None
    order: tuple[int, ...] | None
    in_place: bool


class _Product:
    """A prepared matrix product."""

    __slots__ = (*("_back", "_copies", "_in_place", "_prepared", "_shape", "_weights"),)

    def __init__(
        self,
        prepared: Prepared,
        result: tuple[tuple[int, ...], tuple[int, ...], bool],
        weights: Weights | None,
        copies: tuple[bool, bool],
    ) -> None:
        self._prepared = prepared
        shape, order, self._in_place = result
        self._shape = tuple(shape[axis] for axis in order)
        self._back = None if order == tuple(sorted(order)) else np.argsort(order)
        self._weights, self._copies = weights, copies

    @property
    def implementation(self) -> str:
        return self._prepared.description.implementation

    def run(self, given: Given, owner: Array | None, residual: Array | None) -> Array:
        """Return the result, in the preferred order or row-major."""
        x, y, bias = given
        if self._copies[0]:
            x = compact(x)
        if self._weights is None or owner is None:
            if self._copies[1]:
                y = compact(y)
            right = address(y)
        else:
            right = self._weights.place(owner)
        out: Any = residual if self._in_place else empty(self._shape, x.dtype)
        parts = (bias, None if self._in_place else residual)
        more = [address(part) for part in parts if part is not None]
        self._prepared.run(address(x), right, address(out), *more)
        result: Array = out if self._back is None else out.transpose(self._back)
        return result


def _prepare(
    session: Session,
    primitives: Primitives,
    given: Given,
    wanted: _ProductForm,
    pack: bool,
) -> _Product | None:
    x, y, bias = given
    try:
        batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    except ValueError:
        return None  # NumPy's kernel raises the error
    if bias is not None and (bias.shape != y.shape[-1:] or not is_dense(bias)):
        return None
    shape = (*batch, x.shape[-2], y.shape[-1])
    copies = (not is_readable(x), not is_readable(y))
    pack = pack and not copies[1]
    if has_few_gapped_rows(x) if pack else are_tiny(x, y):
        target = (shape, wanted._replace(order=None))
        plan = _attempt(session, primitives, given, target, (True, not pack), pack)
        if plan is not None and not plan.implementation.startswith(_FOR_LARGE):
            return plan
    for again in (False, True):
        if again:
            copies = (True, copies[1] if pack else True)
        for way in (wanted, wanted._replace(order=None)):
            plan = _attempt(session, primitives, given, (shape, way), copies, pack)
            if plan is not None:
                return plan
    return None


def _attempt(
    session: Session,
    primitives: Primitives,
    given: Given,
    wanted: tuple[tuple[int, ...], _ProductForm],
    copies: tuple[bool, bool],
    pack: bool,
) -> _Product | None:
    api, (x, y, bias), (shape, way) = primitives.api, given, wanted
    after, residual, order, in_place = way
    order = order or tuple(range(len(shape)))
    left, right = operand(api, x, copies[0]), operand(api, y, copies[1])
    out = strided(api, shape, matrix_strides(shape, ordered(shape, order)), x.dtype)
    other = out if residual is None else of_array(api, residual)
    shift = None
    if bias is not None:
        wide = (*(1 for _ in shape[1:]), bias.size)
        shift = strided(api, wide, row_major(wide), bias.dtype)
    one = 1 in (x.shape[-2], y.shape[-1])
    desc = described(
        *(api, "matmul", api.engine, left),
        *(any_layout(api, y.shape, y.dtype) if pack else right, shift, out),
        avoid=_FOR_MATRICES if one else None,
        post=post_ops(api, after, None if in_place else other),
    )
    if desc is None:
        return None
    operands: Operands = [(SRC, left), (WEIGHTS, desc.descriptor(WEIGHTS_MD))]
    operands.append((DST, out))
    if shift is not None:
        operands.append((BIAS, shift))
    if ("add",) in after and not in_place:
        operands.append((addend_index(after), other))
    weights = None
    if pack:
        ending = (after, None if in_place else residual)
        faster = faster_product(api, desc.implementation, given, *ending, copies[0])
        if faster is not None:
            desc, operands, right = faster
        view = (y.shape, y.strides)
        weights = Weights(primitives, session.packed, right, view, desc, WEIGHTS_MD)
    prepared = primitives.prepared(desc, operands)
    return _Product(prepared, (shape, order, in_place), weights, copies)
