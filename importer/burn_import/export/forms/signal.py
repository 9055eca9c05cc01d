"""Fourier transforms."""

from typing import Any

from burn import dtypes
from burn_import.export.registry import form
from burn_import.export.writer import GraphWriter, Operand


@form("dft")
def dft(
    w: GraphWriter,
    x: Operand,
    length: Any = None,
    axis: Any = -2,
    *,
    inverse: bool = False,
    onesided: bool = False,
) -> Operand:
    w.require(17, "DFT")
    if inverse and onesided:
        raise w.refuse("has no form for the real signal of one-sided frequencies")
    count = None if length is None else w.scalar(length, dtypes.int64)
    options: dict[str, Any] = {"inverse": int(inverse), "onesided": int(onesided)}
    if w.opset >= 20:
        return w.node("DFT", x, count, w.scalar(axis, dtypes.int64), **options)
    if not isinstance(axis, int):
        raise w.refuse("has no form for a computed axis before opset 20")
    return w.node("DFT", x, count, axis=axis % x.rank, **options)
