"""Cases: one call of an operator, its inputs, and NumPy's results."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ml_dtypes
import numpy as np

from burn_ir.types import Array

#: The two extents of an axis called ``n``.
SIZES = (2, 5)
Draw = Callable[[np.random.Generator, tuple[int, ...]], Any]


@dataclass(frozen=True)
class Given:
    """An input tensor; ``n`` among its extents varies from call to call."""

    dtype: str
    dims: tuple[int | str, ...]
    draw: Draw

    def array(self, rng: np.random.Generator, size: int) -> Array:
        """Return the tensor at a size."""
        shape = tuple(size if isinstance(dim, str) else dim for dim in self.dims)
        return np.asarray(self.draw(rng, shape)).astype(dtype_of(self.dtype))


@dataclass(frozen=True)
class Extent:
    """An extent of the first tensor, as a number that the program computes."""

    axis: int = 0


#: The input of which only the extents are read.
SIZED = "sized"
#: The symbolic extent.
N = Extent()


@dataclass(frozen=True)
class Case:
    """One call of an operator; ``expected`` receives the input tensors."""

    target: str
    expected: Callable[..., Any]
    args: Mapping[str, Any]
    label: str = ""
    tolerance: float = 1e-5
    given: Mapping[str, Given] = field(default_factory=dict)
    #: Whether only the first result is compared.
    first: bool = False
    #: Tensors that the call changes in place, returned after the results.
    changed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the case in reports."""
        return f"{self.target}-{self.label}" if self.label else self.target

    def arrays(self, size: int) -> list[Array]:
        """Return the inputs at a size."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()) + size)
        return [given.array(rng, size) for given in self.given.values()]

    def results(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the expected outputs as one list."""
        result = self.expected(*arrays)
        several = result if isinstance(result, tuple | list) else (result,)
        return [np.asarray(array) for array in several]

    @property
    def varies(self) -> bool:
        """Whether an extent of an input varies."""
        return any("n" in given.dims for given in self.given.values())


def case(
    target: str,
    expected: Callable[..., Any],
    /,
    *,
    label: str = "",
    tolerance: float = 1e-5,
    sized: Given | None = None,
    **args: Any,
) -> Case:
    """Return a case; tensors among the arguments are the inputs, in their order.

    ``sized`` is an input before them, of which only the extents are used.
    """
    given = {} if sized is None else {SIZED: sized}
    given |= dict(tensors(args))
    full = target if target.startswith(("aten.", "_operator.")) else f"aten.{target}"
    return Case(full, expected, args, label, tolerance, given)


def first(target: str, expected: Callable[..., Any], /, **args: Any) -> Case:
    """Return a case of which only the first result is compared."""
    return replace(case(target, expected, **args), first=True)


def changing(changed: str, case_: Case) -> Case:
    """Return a case that also returns some of its tensors, changed in place."""
    return replace(case_, changed=tuple(changed.split()))


def paired(array: Array) -> Array:
    """Return complex numbers as pairs, the inputs and outputs of modules."""
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], -1)


def tensors(args: Mapping[str, Any]) -> Iterator[tuple[str, Given]]:
    """Yield the tensors among arguments with the names of inputs."""
    for key, value in args.items():
        if isinstance(value, Given):
            yield key, value
        elif isinstance(value, list | tuple):
            for index, item in enumerate(value):
                if isinstance(item, Given):
                    yield f"{key}_{index}", item


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype called ``name``."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def f32(*dims: int | str, low: float = -2.0, high: float = 3.0) -> Given:
    """Return a tensor of float32 between two numbers."""
    return floats("float32", dims, low, high)


def f64(*dims: int | str, low: float = -2.0, high: float = 3.0) -> Given:
    """Return a tensor of float64 between two numbers."""
    return floats("float64", dims, low, high)


def f16(*dims: int | str, low: float = -2.0, high: float = 3.0) -> Given:
    """Return a tensor of float16 between two numbers."""
    return floats("float16", dims, low, high)


def c64(*dims: int | str) -> Given:
    """Return a tensor of complex64."""
    return complexes("complex64", dims)


def c128(*dims: int | str) -> Given:
    """Return a tensor of complex128."""
    return complexes("complex128", dims)


def complexes(dtype: str, dims: Sequence[int | str]) -> Given:
    """Return a tensor of complex numbers."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return rng.uniform(-2, 3, shape) + 1j * rng.uniform(-3, 2, shape)

    return Given(dtype, tuple(dims), draw)


def floats(dtype: str, dims: Sequence[int | str], low: float, high: float) -> Given:
    """Return a tensor of floating numbers."""
    return Given(dtype, tuple(dims), lambda rng, shape: rng.uniform(low, high, shape))


def ints(dtype: str, dims: Sequence[int | str], low: int, high: int) -> Given:
    """Return a tensor of whole numbers, ``high`` among them."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return rng.integers(low, high, shape, endpoint=True)

    return Given(dtype, tuple(dims), draw)


def i64(*dims: int | str, low: int = -7, high: int = 9) -> Given:
    """Return a tensor of int64."""
    return ints("int64", dims, low, high)


def i32(*dims: int | str, low: int = -7, high: int = 9) -> Given:
    """Return a tensor of int32."""
    return ints("int32", dims, low, high)


def u8(*dims: int | str, low: int = 0, high: int = 9) -> Given:
    """Return a tensor of uint8."""
    return ints("uint8", dims, low, high)


def bools(*dims: int | str) -> Given:
    """Return a tensor of bools."""
    return ints("bool", dims, 0, 1)


def distinct(*dims: int | str, dtype: str = "float32") -> Given:
    """Return a tensor of distinct numbers, whose order is unique."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return (rng.permutation(int(np.prod(shape))) - 3).reshape(shape) * 0.5

    return Given(dtype, tuple(dims), draw)


def of(dtype: str, values: Any) -> Given:
    """Return a tensor of given numbers."""
    array = np.asarray(values)
    return Given(dtype, array.shape, lambda rng, shape: array)
