"""Sessions of onnxruntime, and the errors by which it refuses a model."""

import onnx
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as state

from tests.fuzz.reference.statistics import with_copied_statistics

#: Errors by which onnxruntime refuses a model or its inputs.
REFUSALS = (
    state.NotImplemented,
    state.Fail,
    state.InvalidGraph,
    state.InvalidArgument,
    state.RuntimeException,
    state.NoSuchFile,
    onnx.checker.ValidationError,
    onnx.shape_inference.InferenceError,
    RuntimeError,
    ValueError,
)


def session_of(model: onnx.ModelProto) -> onnxruntime.InferenceSession:
    """A session without graph optimizations on one thread.

    What batch normalizations write over is copied before.
    """
    options = onnxruntime.SessionOptions()
    level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.graph_optimization_level = level
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    providers = ["CPUExecutionProvider"]
    data = with_copied_statistics(model).SerializeToString()
    return onnxruntime.InferenceSession(data, options, providers=providers)
