"""Results of reference engines for a model of one node."""

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as state

from burn import dtypes
from burn_ir.ops.cast import NARROW
from tests.laws.models import mapped
from tests.strategies.registry import Example, Key

#: The engines that checked each (domain, operator, version).
REFERENCES: dict[tuple[str, str, int], set[str]] = {}

_NO_KERNEL = (
    "NOT_IMPLEMENTED",
    "*guarantees* support for models stamped",
    "is not a registered function/op",
    "Unrecognized attribute",
    "not implemented for CPU",
    # Some of the results that the specification has optional are not to it.
    "must be requested together",
    "has output size 1 not in range",
)
_REFUSALS = (
    state.NotImplemented,
    state.Fail,
    state.InvalidGraph,
    state.RuntimeException,
)


def reference_results(
    key: Key, version: int, model: onnx.ModelProto, feeds: Any, example: Example
) -> list[Any] | None:
    """The results by onnxruntime, else the example itself, else ONNX's reference.

    None if no engine can run this version.
    """
    results = by_onnxruntime(model, feeds)
    reference = "onnxruntime"
    if results is None and example.expected is not None:
        results, reference = list(example.expected), "specification"
    if results is None:
        results, reference = by_reference(model, feeds), "reference"
    if results is None:
        reference = "none"
    REFERENCES.setdefault((*key, version), set()).add(reference)
    return results


def by_onnxruntime(model: onnx.ModelProto, feeds: Any) -> list[Any] | None:
    """The results of onnxruntime without optimization; None if it has no kernel."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    )
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    model, narrow = with_wide_outputs(model)
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        results = [mapped(np.asarray, y) for y in session.run(None, dict(feeds))]
    except _REFUSALS as error:
        if not any(text in str(error) for text in _NO_KERNEL):
            raise
        return None
    return [y.astype(narrow[i]) if i in narrow else y for i, y in enumerate(results)]


def with_wide_outputs(model: onnx.ModelProto) -> tuple[onnx.ModelProto, dict[int, Any]]:
    """``model`` with float32 for results that onnxruntime cannot hand to NumPy.

    The second result says which they were, and of what dtype.
    """
    wide = onnx.ModelProto()
    wide.CopyFrom(model)
    narrow = {}
    for i, output in enumerate(wide.graph.output):
        element = output.type.tensor_type.elem_type
        if not element:  # no tensor
            continue
        dtype = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(element))
        if dtype not in (dtypes.bfloat16, *dtypes.FLOAT8, *NARROW):
            continue
        narrow[i] = dtype
        inner = f"{output.name}.narrow"
        for node in wide.graph.node:
            node.output[:] = [inner if n == output.name else n for n in node.output]
        cast = onnx.helper.make_node(
            "Cast", [inner], [output.name], to=onnx.TensorProto.FLOAT
        )
        wide.graph.node.append(cast)
        output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    return wide, narrow


def by_reference(model: onnx.ModelProto, feeds: Any) -> list[Any] | None:
    """The results of ONNX's reference implementation; None if it has none."""
    try:
        evaluator = ReferenceEvaluator(model)
        return [mapped(np.asarray, y) for y in evaluator.run(None, dict(feeds))]
    except (NotImplementedError, RuntimeError, TypeError, AttributeError):
        return None  # an old version whose attributes it does not know
