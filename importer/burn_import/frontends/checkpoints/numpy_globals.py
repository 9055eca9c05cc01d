"""NumPy arrays in a pickle among tensors.

``numpy.dtype``, ``numpy.ndarray`` and scalars are rebuilt from their saved state, for
numeric dtypes that PyTorch has too. Arrays of other dtypes are skipped.
"""

from burn.record.errors import shown
from burn_import.frontends.checkpoints.element_types import ELEMENTS, Element
from burn_import.frontends.checkpoints.pickle_globals import Context, inert, rebuilds
from burn_import.frontends.checkpoints.pickle_values import Bytes, Unread, Value, named
from burn_import.frontends.checkpoints.tensors import (
    Block,
    Storage,
    integers,
    tensor_in,
)
from burn_ir import InvalidModel

#: Element types by ``numpy.dtype.str`` without the byte order.
CODES = {
    **{f"i{n}": f"int{8 * n}" for n in (1, 2, 4, 8)},
    **{f"u{n}": f"uint{8 * n}" for n in (1, 2, 4, 8)},
    **{f"f{n}": f"float{8 * n}" for n in (2, 4, 8)},
    "c8": "complex64",
    "c16": "complex128",
    "b1": "bool",
}


class Buildable:
    """An object that is created empty and receives its state later."""

    __slots__ = ()

    def build(self, state: Value) -> None:
        """Set the state.

        Raises:
            InvalidModel: the state has the wrong structure.
        """
        raise NotImplementedError


class NumpyDtype(Buildable):
    """A dtype by its type code; its state sets the byte order."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        self.code = code
        self.order = "|"

    def build(self, state: Value) -> None:
        if not isinstance(state, tuple) or len(state) < 2 or state[1] not in _ORDERS:
            raise InvalidModel("expected the state of a dtype of NumPy")
        self.order = state[1]

    @property
    def element(self) -> Element | None:
        """The equivalent dtype of PyTorch; None if there is none."""
        return ELEMENTS.get(CODES.get(self.code, ""))


_ORDERS = ("<", ">", "|", "=")


class NumpyArray(Buildable):
    """An array, which becomes a tensor or an :class:`Unread` when built."""

    __slots__ = ("_context", "_value")

    def __init__(self, context: Context) -> None:
        self._context = context
        self._value: Value = Unread("an array of NumPy without contents")

    def build(self, state: Value) -> None:
        if not isinstance(state, tuple) or len(state) != 5:
            raise InvalidModel("expected the state of an array of NumPy")
        _, shape, dtype, is_fortran, raw = state
        self._value = array_of(self._context, raw, dtype, shape, is_fortran is True)

    def value(self) -> Value:
        """Return the tensor, or an :class:`Unread`."""
        return self._value


def array_of(
    context: Context, raw: Value, dtype: Value, shape: Value, is_fortran: bool
) -> Value:
    """Return the tensor over bytes in C order or Fortran order.

    Raises:
        InvalidModel: the number of bytes does not match the shape.
    """
    if not isinstance(dtype, NumpyDtype):
        raise InvalidModel(f"expected a dtype of NumPy, got {named(dtype)}")
    element = dtype.element
    if element is None or isinstance(raw, list):
        return Unread(f"an array of NumPy of dtype {shown(dtype.code)}")
    if isinstance(raw, str):  # Python 2 pickled bytes as text
        context.spend(len(raw) // 16)
        raw = raw.encode("utf-8", "surrogatepass")
    if not isinstance(raw, Bytes):
        raise InvalidModel(f"expected the bytes of an array, got {named(raw)}")
    dims = integers(shape, "sizes")
    strides, step = [], 1
    for dim in dims if is_fortran else reversed(dims):
        strides.append(step)
        step *= dim
    block = Block("an array of NumPy", memoryview(raw))
    if dtype.order == ">" and element.size > 1:
        block.swapped = element.size // (2 if element.name.startswith("c") else 1)
    if step * element.size != len(raw):
        raise InvalidModel(
            f"an array of NumPy of shape {shown(list(dims))}: expected "
            f"{step * element.size} bytes, got {len(raw)}"
        )
    storage = Storage(block, element, step)
    ordered = strides if is_fortran else strides[::-1]
    return tensor_in(context.limits, storage, 0, dims, tuple(ordered))


_CORES = ("numpy.core", "numpy._core")


@rebuilds("numpy.dtype", args=(1, 3))
def dtype(context: Context, code: Value, align: Value = 0, copy: Value = 1) -> Value:
    """Return the dtype of a type code."""
    return NumpyDtype(code if isinstance(code, str) else "O")


@rebuilds(*(f"{core}.multiarray._reconstruct" for core in _CORES), args=(3, 3))
def reconstruct(context: Context, kind: Value, shape: Value, code: Value) -> Value:
    """Return an empty array, which receives its state later."""
    return NumpyArray(context)


@rebuilds(*(f"{core}.numeric._frombuffer" for core in _CORES), args=(4, 4))
def from_buffer(
    context: Context, raw: Value, dtype: Value, shape: Value, order: Value
) -> Value:
    """Return the array over bytes, as protocol 5 writes it."""
    return array_of(context, raw, dtype, shape, order == "F")


for _core in _CORES:
    inert(f"{_core}.multiarray.scalar")
