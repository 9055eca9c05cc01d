"""Models of integers, as onnxruntime's own tool makes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.cases import Feeds


def quantized(path: Path, feeds: Feeds, folder: Path) -> Path:
    """The model in ``path`` with its layers between quantizations, in ``folder``.

    Weights are of int8 by channels, activations of uint8; their ranges are those that
    ``feeds`` make.
    """
    from onnxruntime import quantization

    class Reader(quantization.CalibrationDataReader):  # type: ignore[misc]
        def __init__(self, samples: Iterable[Feeds]) -> None:
            self._samples = iter(samples)

        def get_next(self) -> Any:
            return next(self._samples, None)

    target = folder / f"{path.stem}_int8.onnx"
    quantization.quantize_static(
        path,
        target,
        Reader([feeds]),
        quant_format=quantization.QuantFormat.QDQ,
        per_channel=True,
        activation_type=quantization.QuantType.QUInt8,
        weight_type=quantization.QuantType.QInt8,
    )
    return target
