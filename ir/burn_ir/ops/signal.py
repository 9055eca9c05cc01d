"""Fourier transforms, windows and filter banks."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from burn import dtypes, ops
from burn.dtypes import DType
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.functions import expect_float
from burn_ir.ops.support import element_type, ints_of, known_dims, size_of
from burn_ir.static import static
from burn_ir.upgrade import Draft


def extent_of(operand: Type) -> Dim:
    """Return the dimension in a scalar operand, a fresh symbol if unknown."""
    dims = known_dims(operand)
    return unnamed() if dims is None else dims[0]


def expect_scalars(**operands: Type | None) -> None:
    """Check that every present operand is a single number.

    Raises:
        InvalidOperand: one has another shape.
    """
    for name, operand in operands.items():
        if operand is not None and operand.shape is not None:
            numbers = {d for d in operand.shape if isinstance(d, int)}
            if numbers - {1}:
                raise InvalidOperand(f"expected a scalar {name}, got {operand.name}")


def numeric_type(number: int) -> DType:
    """Return the dtype that an attribute selects, which must be numeric.

    Raises:
        InvalidOperand: it is not.
    """
    dtype = element_type(number)
    if not dtypes.is_float(dtype) and not dtypes.is_integer(dtype):
        raise InvalidOperand(
            f"expected a dtype of numbers, got {dtypes.name_of(dtype)}"
        )
    return dtype


@operator
class Window:
    """Window functions whose size is an operand."""

    output_datatype: int = 1
    periodic: Literal[0, 1] = 1
    primitive: ClassVar[Any]

    def infer(self, size: Type) -> Type:
        expect_scalars(size=size)
        return Type(numeric_type(self.output_datatype), (extent_of(size),))

    def lower(self, size: Value) -> Value:
        dtype = numeric_type(self.output_datatype)
        options: dict[str, Any] = {} if self.periodic else {"periodic": False}
        if dtype != dtypes.float32:
            options["dtype"] = dtype
        return type(self).primitive(size_of(size), **options)


@operator
class HannWindow(Window, Op, onnx="HannWindow", versions=(17,)):
    primitive = ops.hann_window


@operator
class HammingWindow(Window, Op, onnx="HammingWindow", versions=(17,)):
    primitive = ops.hamming_window


@operator
class BlackmanWindow(Window, Op, onnx="BlackmanWindow", versions=(17,)):
    primitive = ops.blackman_window


@operator
class MelWeightMatrix(Op, onnx="MelWeightMatrix", versions=(17,)):
    output_datatype: int = 1

    def infer(
        self,
        num_mel_bins: Type,
        dft_length: Type,
        sample_rate: Type,
        lower_edge_hertz: Type,
        upper_edge_hertz: Type,
    ) -> Type:
        expect_scalars(
            num_mel_bins=num_mel_bins,
            dft_length=dft_length,
            sample_rate=sample_rate,
            lower_edge_hertz=lower_edge_hertz,
            upper_edge_hertz=upper_edge_hertz,
        )
        frequencies = extent_of(dft_length) // 2 + 1
        dtype = numeric_type(self.output_datatype)
        return Type(dtype, (frequencies, extent_of(num_mel_bins)))

    def lower(
        self,
        num_mel_bins: Value,
        dft_length: Value,
        sample_rate: Value,
        lower_edge_hertz: Value,
        upper_edge_hertz: Value,
    ) -> Value:
        sizes = map(size_of, (num_mel_bins, dft_length, sample_rate))
        edges = map(_float_of, (lower_edge_hertz, upper_edge_hertz))
        dtype = numeric_type(self.output_datatype)
        options = {} if dtype == dtypes.float32 else {"dtype": dtype}
        return ops.mel_weight_matrix(*sizes, *edges, **options)


def _float_of(operand: Value) -> Any:
    """Return a floating operand as a number; a tensor if it is unknown."""
    try:
        return float(static(operand).item())
    except Undecided:
        return operand


def check_complex(x: Type) -> Type:
    """Check that ``x`` [..., 1 or 2] holds real or complex numbers; return it.

    Raises:
        InvalidOperand: it does not.
    """
    expect_float(x)
    if x.shape is None:
        return x
    parts = x.shape[-1] if x.rank > 1 else 0
    if isinstance(parts, int) and parts not in (1, 2):
        raise InvalidOperand(f"expected a signal [..., 1 or 2], got {x.name}")
    return x


@operator
class DFT(Op, onnx="DFT", versions=(17, 20)):
    inverse: Literal[0, 1] = 0
    onesided: Literal[0, 1] = 0

    def infer(
        self, x: Type, dft_length: Type | None = None, axis: Type | None = None
    ) -> Type:
        check_complex(x)
        expect_scalars(dft_length=dft_length, axis=axis)
        if x.shape is None:
            return x.forget()
        if self.onesided and not self.inverse and x.shape[-1] == 2:
            raise InvalidOperand(
                f"expected a real signal [..., 1] with onesided=1, got {x.name}"
            )
        parts = 1 if self.onesided and self.inverse else 2
        axes = (-2,) if axis is None else known_dims(axis)
        if axes is None:
            return x.with_shape((*(unnamed() for _ in x.shape[:-1]), parts))
        (along,) = x.axes(int(axes[0]))
        if along == x.rank - 1:
            raise InvalidOperand(
                f"expected an axis before the last one of {x.name}, got {axes[0]}"
            )
        dims = [*x.shape[:-1], parts]
        dims[along] = self._extent(dims[along], dft_length)
        return x.with_shape(dims)

    def _extent(self, extent: Dim, dft_length: Type | None) -> Dim:
        if dft_length is not None:
            extent = extent_of(dft_length)
        elif self.onesided and self.inverse:
            extent = 2 * (extent - 1)
        return extent // 2 + 1 if self.onesided and not self.inverse else extent

    def lower(self, x: Value, dft_length: Value = None, axis: Value = None) -> Value:
        flags = {n: True for n in ("inverse", "onesided") if getattr(self, n)}
        axes = (-2,) if axis is None else ints_of(axis)
        length = None if dft_length is None else size_of(dft_length)
        if axes is None:
            return ops.dft(x, length, axis, **flags)
        if axes[0] != -2:
            return ops.dft(x, length, axes[0], **flags)
        if length is not None:
            return ops.dft(x, length, **flags)
        return ops.dft(x, **flags)


@DFT.upgrade(17)
def axis_attribute(draft: Draft) -> Draft:
    """Upgrade: before 20, the axis was an attribute, by default 1."""
    axis = draft.constant("axis", np.array(draft.attrs.get("axis", 1), np.int64))
    return draft.with_attrs("axis").with_input(2, axis)


@operator
class STFT(Op, onnx="STFT", versions=(17,)):
    onesided: Literal[0, 1] = 1

    def infer(
        self,
        signal: Type,
        frame_step: Type,
        window: Type | None = None,
        frame_length: Type | None = None,
    ) -> Type:
        if signal.shape is not None and signal.rank == 2:
            expect_float(signal)
        else:
            check_complex(signal)
        expect_scalars(frame_step=frame_step, frame_length=frame_length)
        if signal.shape is None:
            return signal.with_shape(tuple(unnamed() for _ in range(3)) + (2,))
        if signal.rank not in (2, 3):
            raise InvalidOperand(f"expected a signal [N, L, 1 or 2], got {signal.name}")
        if self.onesided and signal.shape[2:] == (2,):
            raise InvalidOperand(
                f"expected a real signal [N, L, 1] with onesided=1, got {signal.name}"
            )
        batch, extent = signal.shape[:2]
        size = self._frame(extent, window, frame_length)
        step = extent_of(frame_step)
        if isinstance(step, int) and step < 1:
            raise InvalidOperand(f"expected a frame_step of 1 or more, got {step}")
        frames = (extent - size) // step + 1 if isinstance(step, int) else unnamed()
        bins = size // 2 + 1 if self.onesided else size
        return signal.with_shape((batch, frames, bins, 2))

    def _frame(
        self, extent: Dim, window: Type | None, frame_length: Type | None
    ) -> Dim:
        if window is not None and window.shape is not None and window.rank != 1:
            raise InvalidOperand(f"expected a window of rank 1, got {window.name}")
        if frame_length is not None and known_dims(frame_length) is not None:
            return extent_of(frame_length)
        if window is not None and window.shape is not None:
            return window.shape[0]
        return extent if window is None and frame_length is None else unnamed()

    def lower(
        self,
        signal: Value,
        frame_step: Value,
        window: Value = None,
        frame_length: Value = None,
    ) -> Value:
        options = {} if self.onesided else {"onesided": False}
        step = size_of(frame_step)
        if len(signal.shape) == 2:  # PyTorch's exporter writes real signals like this
            signal = signal.unsqueeze(-1)
        if window is not None:
            return ops.stft(signal, step, window, **options)
        if frame_length is None:
            return ops.stft(signal, step, **options)
        return ops.stft(signal, step, None, size_of(frame_length), **options)
