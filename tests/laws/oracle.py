"""What others compute for a model of one node."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as state

from tests.strategies.registry import Array, Example, Key

#: Who judged each (domain, operator, version), for the report at the end.
JUDGES: dict[tuple[str, str, int], set[str]] = {}

_NO_KERNEL = ("NOT_IMPLEMENTED", "*guarantees* support for models stamped")


def judged(
    key: Key, version: int, model: onnx.ModelProto, feeds: Any, example: Example
) -> list[Array] | None:
    """The results by onnxruntime, else the example itself, else ONNX's reference.

    None if nobody can run this version.
    """
    results = by_onnxruntime(model, feeds)
    judge = "onnxruntime"
    if results is None and example.expected is not None:
        results, judge = list(example.expected), "specification"
    if results is None:
        results, judge = by_reference(model, feeds), "reference"
    if results is None:
        judge = "nobody"
    JUDGES.setdefault((*key, version), set()).add(judge)
    return results


def by_onnxruntime(model: onnx.ModelProto, feeds: Any) -> list[Array] | None:
    """The results of onnxruntime without optimisation; None if it has no kernel."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
    except (state.NotImplemented, state.Fail) as error:
        if not any(text in str(error) for text in _NO_KERNEL):
            raise
        return None
    return [np.asarray(y) for y in session.run(None, dict(feeds))]


def by_reference(model: onnx.ModelProto, feeds: Any) -> list[Array] | None:
    """The results of ONNX's reference implementation; None if it has none."""
    try:
        evaluator = ReferenceEvaluator(model)
        return [np.asarray(y) for y in evaluator.run(None, dict(feeds))]
    except (NotImplementedError, RuntimeError, TypeError, AttributeError):
        return None  # an old version whose attributes it does not know
