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
class InputSpec:
    """The dtype, extents and contents of an input; the extent ``n`` differs by call."""

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
    """One call of an operator; ``expected`` computes its results from the inputs."""

    target: str
    expected: Callable[..., Any]
    args: Mapping[str, Any]
    label: str = ""
    tolerance: float = 1e-5
    inputs: Mapping[str, InputSpec] = field(default_factory=dict)
    #: Whether only the first result is compared.
    is_first_only: bool = False
    #: Tensors that the call changes in place, returned after the results.
    changed: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The name of the case in reports."""
        return f"{self.target}-{self.label}" if self.label else self.target

    def arrays(self, size: int) -> list[Array]:
        """Return the inputs at a size."""
        rng = np.random.default_rng(zlib.crc32(self.name.encode()) + size)
        return [spec.array(rng, size) for spec in self.inputs.values()]

    def results(self, arrays: Sequence[Array]) -> list[Array]:
        """Return the expected outputs as one list."""
        result = self.expected(*arrays)
        results = result if isinstance(result, tuple | list) else (result,)
        return [np.asarray(array) for array in results]

    @property
    def varies(self) -> bool:
        """Whether an extent of an input varies."""
        return any("n" in spec.dims for spec in self.inputs.values())


def case(
    target: str,
    expected: Callable[..., Any],
    /,
    *,
    label: str = "",
    tolerance: float = 1e-5,
    sized: InputSpec | None = None,
    **args: Any,
) -> Case:
    """Return a case whose inputs are the ``InputSpec`` among the arguments, in order.

    ``sized`` is an input before them, of which only the extents are used.
    """
    inputs = {} if sized is None else {SIZED: sized}
    inputs |= dict(tensors(args))
    full = target if target.startswith(("aten.", "_operator.")) else f"aten.{target}"
    return Case(full, expected, args, label, tolerance, inputs)


def first_result(target: str, expected: Callable[..., Any], /, **args: Any) -> Case:
    """Return a case of which only the first result is compared."""
    return replace(case(target, expected, **args), is_first_only=True)


def with_changed(changed: str, case_: Case) -> Case:
    """Return a case that also returns some of its tensors, changed in place."""
    return replace(case_, changed=tuple(changed.split()))


def as_pairs(array: Array) -> Array:
    """Return complex numbers as pairs of real ones, which modules use."""
    if array.dtype.kind != "c":
        return array
    return np.stack([array.real, array.imag], -1)


def tensors(args: Mapping[str, Any]) -> Iterator[tuple[str, InputSpec]]:
    """Yield the inputs among arguments, with their names."""
    for key, value in args.items():
        if isinstance(value, InputSpec):
            yield key, value
        elif isinstance(value, list | tuple):
            for index, item in enumerate(value):
                if isinstance(item, InputSpec):
                    yield f"{key}_{index}", item


def dtype_of(name: str) -> np.dtype[Any]:
    """Return the dtype called ``name``."""
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


def f32(*dims: int | str, low: float = -2.0, high: float = 3.0) -> InputSpec:
    """Return an input of float32, uniform between two numbers."""
    return floats("float32", dims, low, high)


def f64(*dims: int | str, low: float = -2.0, high: float = 3.0) -> InputSpec:
    """Return an input of float64, uniform between two numbers."""
    return floats("float64", dims, low, high)


def f16(*dims: int | str, low: float = -2.0, high: float = 3.0) -> InputSpec:
    """Return an input of float16, uniform between two numbers."""
    return floats("float16", dims, low, high)


def c64(*dims: int | str) -> InputSpec:
    """Return an input of complex64."""
    return complexes("complex64", dims)


def c128(*dims: int | str) -> InputSpec:
    """Return an input of complex128."""
    return complexes("complex128", dims)


def complexes(dtype: str, dims: Sequence[int | str]) -> InputSpec:
    """Return an input of complex numbers."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return rng.uniform(-2, 3, shape) + 1j * rng.uniform(-3, 2, shape)

    return InputSpec(dtype, tuple(dims), draw)


def floats(dtype: str, dims: Sequence[int | str], low: float, high: float) -> InputSpec:
    """Return an input of floating-point numbers."""
    return InputSpec(
        dtype, tuple(dims), lambda rng, shape: rng.uniform(low, high, shape)
    )


def ints(dtype: str, dims: Sequence[int | str], low: int, high: int) -> InputSpec:
    """Return an input of integers from ``low`` to ``high``, both included."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return rng.integers(low, high, shape, endpoint=True)

    return InputSpec(dtype, tuple(dims), draw)


def i64(*dims: int | str, low: int = -7, high: int = 9) -> InputSpec:
    """Return an input of int64."""
    return ints("int64", dims, low, high)


def i32(*dims: int | str, low: int = -7, high: int = 9) -> InputSpec:
    """Return an input of int32."""
    return ints("int32", dims, low, high)


def u8(*dims: int | str, low: int = 0, high: int = 9) -> InputSpec:
    """Return an input of uint8."""
    return ints("uint8", dims, low, high)


def bools(*dims: int | str) -> InputSpec:
    """Return an input of bools."""
    return ints("bool", dims, 0, 1)


def distinct(*dims: int | str, dtype: str = "float32") -> InputSpec:
    """Return an input of distinct numbers, whose order is unique."""

    def draw(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
        return (rng.permutation(int(np.prod(shape))) - 3).reshape(shape) * 0.5

    return InputSpec(dtype, tuple(dims), draw)


def fixed(dtype: str, values: Any) -> InputSpec:
    """Return an input with these values in every call."""
    array = np.asarray(values)
    return InputSpec(dtype, array.shape, lambda rng, shape: array)
