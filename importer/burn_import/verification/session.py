"""Running of ONNX models by another engine, to compare with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from burn import dtypes


def run_model(
    model: onnx.ModelProto | str, inputs: Mapping[str, Any], engine: str = ""
) -> tuple[list[Any], str]:
    """Return the results of a model (or file), and the engine that computed them.

    ``engine`` is ``"onnxruntime"`` or ``"reference"``; by default onnxruntime where it
    is installed and has the operators, else ONNX's reference.
    """
    if engine != "reference":
        try:
            import onnxruntime
        except ImportError:
            if engine:
                raise
        else:
            failure = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented
            try:
                return _onnxruntime(onnxruntime, model, inputs), "onnxruntime"
            except failure:
                if engine:
                    raise
    from onnx.reference import ReferenceEvaluator

    results = ReferenceEvaluator(model).run(None, dict(inputs))
    return list(results), "onnx.reference"


def _onnxruntime(runtime: Any, model: Any, inputs: Mapping[str, Any]) -> list[Any]:
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    content = model if isinstance(model, str) else model.SerializeToString()
    session = runtime.InferenceSession(
        content, options, providers=["CPUExecutionProvider"]
    )
    return list(session.run(None, dict(inputs)))


def difference(actual: Any, expected: Any) -> float:
    """Return the largest difference relative to the largest number; inf if unlike.

    Equal infinities and NaN do not differ, nor do equal strings.
    """
    if isinstance(actual, list) or isinstance(expected, list):
        return _of_lists(actual, expected)
    a, b = np.asarray(actual), np.asarray(expected)
    if a.shape != b.shape:
        return float("inf")
    if a.dtype == object or b.dtype == object or a.dtype.kind in "US":
        return 0.0 if a.astype(str).tolist() == b.astype(str).tolist() else float("inf")
    kind = complex if dtypes.is_complex(a.dtype) else float
    x, y = a.astype(kind), b.astype(kind)
    same = (x == y) | ((x != x) & (y != y))
    if same.all():
        return 0.0
    if not np.isfinite(x[~same]).all() or not np.isfinite(y[~same]).all():
        return float("inf")
    scale = np.abs(y[np.isfinite(y)]).max(initial=1.0)
    return float(np.abs(x - y)[~same].max() / scale)


def _of_lists(actual: Any, expected: Any) -> float:
    if not isinstance(actual, Sequence) or len(actual) != len(expected):
        return float("inf")
    return max(
        (difference(*pair) for pair in zip(actual, expected, strict=True)), default=0.0
    )
