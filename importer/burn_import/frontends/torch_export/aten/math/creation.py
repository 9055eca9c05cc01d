"""New tensors: ranges and filled tensors."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from burn_import.frontends.torch_export.aten.shape.slicing import multiples
from burn_import.frontends.torch_export.builder import (
    BOOL,
    FLOAT32,
    INT64,
    Builder,
    Operand,
    Value,
)
from burn_import.frontends.torch_export.registry import Rule, rule
from burn_ir.ops.support import ELEMENT_NUMBERS
from burn_ir.types import Array

Sizes = Sequence[int | Value]


@rule("aten.arange.default")
def arange(g: Builder, end: Operand, dtype: Any = None) -> Value:
    return arange_step(g, 0, end, 1)


@rule("aten.arange.start")
def arange_start(g: Builder, start: Operand, end: Operand, dtype: Any = None) -> Value:
    return arange_step(g, start, end, 1)


@rule("aten.arange.start_step")
def arange_step(
    g: Builder, start: Operand, end: Operand, step: Operand = 1, dtype: Any = None
) -> Value:
    is_whole = all(
        isinstance(x, int) or (isinstance(x, Value) and x.dtype == INT64)
        for x in (start, end, step)
    )
    if is_whole and g.dtype != INT64:
        numbers = g.op("Range", *(g.cast(x, INT64) for x in (start, end, step)))
        return g.cast(Value(numbers.name, INT64))
    return g.op("Range", *(g.cast(x) for x in (start, end, step)))


def filled_tensor(g: Builder, size: Sizes, number: Operand) -> Value:
    """Return a tensor filled with a number."""
    if not size:
        return g.cast(number)
    if isinstance(number, Value):
        return g.op("Expand", g.cast(number), g.ints(list(size)))
    value = np.full([1], number).astype(g.dtype)
    return g.op("ConstantOfShape", g.ints(list(size)), value=value)


@rule("aten.full.default")
def full(g: Builder, size: Sizes, fill_value: Operand, dtype: Any = None) -> Value:
    return filled_tensor(g, size, fill_value)


@rule("aten.new_full.default")
def new_full(
    g: Builder, self: Value, size: Sizes, fill_value: Operand, dtype: Any = None
) -> Value:
    return filled_tensor(g, size, fill_value)


@rule("aten.full_like.default")
def full_like(g: Builder, self: Value, fill_value: Operand, dtype: Any = None) -> Value:
    if self.dims is not None and all(isinstance(d, int) for d in self.dims):
        return filled_tensor(g, [int(str(d)) for d in self.dims], fill_value)
    shape = g.at(INT64).op("Shape", self)
    if isinstance(fill_value, Value):
        return g.op("Expand", g.cast(fill_value), shape)
    value = np.full([1], fill_value).astype(g.dtype)
    return g.op("ConstantOfShape", shape, value=value)


def register_filled(number: int) -> None:
    """Register the rules of tensors filled with a number; ``empty`` is zeros."""

    def plain(
        g: Builder,
        size: Sizes,
        stride: Sizes = (),
        physical_layout: Sizes = (),
        dtype: Any = None,
    ) -> Value:
        return filled_tensor(g, size, number)

    def new(
        g: Builder, self: Value, size: Sizes, stride: Sizes = (), dtype: Any = None
    ) -> Value:
        return filled_tensor(g, size, number)

    def like(g: Builder, self: Value, dtype: Any = None) -> Value:
        return full_like(g, self, number)

    for name in NAMES[number]:
        overload = "memory_format" if name == "empty" else "default"
        rule(f"aten.{name}.{overload}")(plain)
        rule(f"aten.new_{name}.default")(new)
        rule(f"aten.{name}_like.default")(like)


NAMES = {0: ("zeros", "empty"), 1: ("ones",)}
for _number in NAMES:
    register_filled(_number)


@rule("aten.empty_strided.default", "aten.empty_permuted.default")
def empty(
    g: Builder,
    size: Sizes,
    stride: Sizes = (),
    physical_layout: Sizes = (),
    dtype: Any = None,
) -> Value:
    return filled_tensor(g, size, 0)


@rule("aten.new_empty_strided.default")
def new_empty_strided(
    g: Builder, self: Value, size: Sizes, stride: Sizes = (), dtype: Any = None
) -> Value:
    return filled_tensor(g, size, 0)


@rule("aten.fill.Scalar", "aten.fill.Tensor")
def fill(g: Builder, self: Value, value: Operand) -> Value:
    return full_like(g, self, value)


@rule("aten.zero.default")
def zero(g: Builder, self: Value) -> Value:
    return full_like(g, self, 0)


@rule("aten.scalar_tensor.default", "prims.scalar_tensor.default")
def scalar_tensor(g: Builder, s: Operand, dtype: Any = None) -> Value:
    return g.cast(s)


@rule(
    *("aten.linspace.default", "aten.linspace.Tensor_Tensor"),
    *("aten.linspace.Tensor_Scalar", "aten.linspace.Scalar_Tensor"),
)
def linspace(
    g: Builder, start: Operand, end: Operand, steps: int | Value, dtype: Any = None
) -> Value:
    """Return evenly spaced numbers; a single one is ``start``."""
    if not any(isinstance(x, Value) for x in (start, end, steps)):
        numbers: Any = (start, end, steps)
        return g.constant(np.linspace(*numbers), g.dtype)
    of = g if g.dtype.kind == "f" else g.at(FLOAT32)
    first, last, count = (of.cast(x) for x in (start, end, steps))
    gaps = of.op("Max", of.op("Sub", count, 1), 1)
    step = of.op("Div", of.op("Sub", last, first), gaps)
    line = of.cast(multiples(g, steps))
    return g.cast(of.op("Add", of.op("Mul", line, step), first))


@rule(
    *("aten.logspace.default", "aten.logspace.Tensor_Tensor"),
    *("aten.logspace.Tensor_Scalar", "aten.logspace.Scalar_Tensor"),
)
def logspace(
    g: Builder,
    start: Operand,
    end: Operand,
    steps: int | Value,
    base: float = 10.0,
    dtype: Any = None,
) -> Value:
    return g.op("Pow", g.cast(base), linspace(g, start, end, steps))


@rule("aten.fft_rfftfreq.default")
def rfftfreq(g: Builder, n: int | Value, d: float = 1.0, dtype: Any = None) -> Value:
    """Return the frequencies of a real Fourier transform of ``n`` samples."""
    if isinstance(n, int):
        return g.constant(np.fft.rfftfreq(n, d), g.dtype)
    half = g.at(INT64).op("Add", g.at(INT64).op("Div", n, 2), 1)
    return _frequencies(g, multiples(g, half), n, d)


@rule("aten.fft_fftfreq.default")
def fftfreq(g: Builder, n: int | Value, d: float = 1.0, dtype: Any = None) -> Value:
    """Return the frequencies of a Fourier transform of ``n`` samples."""
    if isinstance(n, int):
        return g.constant(np.fft.fftfreq(n, d), g.dtype)
    whole = g.at(INT64)
    number = multiples(g, n)
    half = whole.op("Div", whole.op("Add", n, 1), 2)
    is_negative = g.at(BOOL).op("GreaterOrEqual", number, half)
    multiple = whole.op("Where", is_negative, whole.op("Sub", number, n), number)
    return _frequencies(g, multiple, n, d)


def _frequencies(g: Builder, multiples: Value, n: Value, d: float) -> Value:
    return g.op("Div", g.cast(multiples), g.op("Mul", g.cast(n), g.cast(d)))


@rule("aten.eye.default")
def eye(g: Builder, n: int | Value, dtype: Any = None) -> Value:
    return eye_of(g, n, n)


@rule("aten.eye.m")
def eye_of(g: Builder, n: int | Value, m: int | Value, dtype: Any = None) -> Value:
    blank = filled_tensor(g, [n, m], 0)
    return g.op("EyeLike", blank)


def window(op_type: str) -> Rule:
    """Return the rule of a window function that ONNX has."""

    def apply(
        g: Builder, window_length: int | Value, periodic: bool = True, dtype: Any = None
    ) -> Value:
        size = g.value(window_length, INT64)
        return g.op(
            op_type,
            size,
            output_datatype=ELEMENT_NUMBERS[g.dtype],
            periodic=None if periodic else 0,
        )

    return apply


for _name in ("hann", "blackman"):
    rule(f"aten.{_name}_window.default", f"aten.{_name}_window.periodic")(
        window(f"{_name.capitalize()}Window")
    )


def stored_window(make: Callable[[int], Array]) -> Rule:
    """Return the rule of a window that ONNX lacks or defines differently."""

    def apply(
        g: Builder, window_length: int, periodic: bool = True, dtype: Any = None
    ) -> Value:
        values = make(window_length + periodic)[:window_length]
        return g.constant(values, g.dtype)

    return apply


for _name, _make in {"bartlett": np.bartlett, "hamming": np.hamming}.items():
    rule(f"aten.{_name}_window.default", f"aten.{_name}_window.periodic")(
        stored_window(_make)
    )


@rule(
    "aten.kaiser_window.default",
    "aten.kaiser_window.periodic",
    "aten.kaiser_window.beta",
)
def kaiser_window(
    g: Builder,
    window_length: int,
    periodic: bool = True,
    beta: float = 12.0,
    dtype: Any = None,
) -> Value:
    values = np.kaiser(window_length + periodic, beta)[:window_length]
    return g.constant(values, g.dtype)


@rule("aten.vander.default")
def vander(
    g: Builder, x: Value, N: int | None = None, increasing: bool = False  # noqa: N803
) -> Value:
    count = g.extent(x, 0) if N is None else N
    line = multiples(g, count)
    if not increasing:
        line = g.op("Flip", line, domain="burn", axes=(0,))
    return g.op("Pow", g.op("Unsqueeze", g.cast(x), [-1]), g.cast(line))


@rule("aten.linalg_vander.default")
def powers(g: Builder, x: Value, N: int | None = None) -> Value:  # noqa: N803
    """Return the powers of elements from 0, along a new last axis."""
    line = multiples(g, g.extent(x, -1) if N is None else N)
    return g.op("Pow", g.op("Unsqueeze", g.cast(x), [-1]), g.cast(line))
