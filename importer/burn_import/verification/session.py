"""Execution of ONNX models by another engine, for comparison."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from burn import dtypes
from burn_import.file_kinds import FileKind, described, file_kind
from burn_import.verification.errors import InputsError
from burn_ir import UnsupportedModel

#: Exceptions of onnx.reference for inputs that an operator does not accept.
_FAULTS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError)


def read_proto(path: Path) -> onnx.ModelProto:
    """Return the ONNX model in a file, for execution by another engine.

    Raises:
        UnreadableFile: the file is no model, as the importer reports it.
        UnsupportedModel: it is a model of another kind.
    """
    from google.protobuf.message import DecodeError

    kind = file_kind(path)
    if kind is not FileKind.ONNX and kind is not FileKind.OTHER:
        raise UnsupportedModel(
            f"{path.name}: expected an ONNX model, which another engine can run, got "
            f"this: {described(path) or 'weights'}",
            "Compare with the ONNX export of the same model: verify MODEL --reference "
            "NAME.onnx.",
        )
    try:
        return onnx.load(str(path))
    except (OSError, DecodeError, ValueError):
        from burn_import.frontends.onnx import read

        read(path)  # its message states the problem
        raise


def run_model(
    model: onnx.ModelProto | str,
    inputs: Mapping[str, Any],
    engine: str = "",
    *,
    is_optimized: bool = True,
) -> tuple[list[Any], str]:
    """Return the results of a model (or file), and the engine that computed them.

    ``engine`` is ``"onnxruntime"`` or ``"reference"``; by default onnxruntime where it
    is installed and has the operators, else ONNX's reference. Without
    ``is_optimized`` onnxruntime computes each node by itself.

    Raises:
        InputsError: the engine does not accept the inputs, or is not installed.
    """
    if engine != "reference":
        try:
            import onnxruntime
        except ImportError:
            if engine:
                hint = "Install it, or leave out --engine."
                raise InputsError("onnxruntime is not installed", hint) from None
        else:
            failure = onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented
            try:
                session = _session(onnxruntime, model, is_optimized)
                return list(session.run(None, dict(inputs))), "onnxruntime"
            except failure as error:
                if engine:
                    raise _refusal("onnxruntime", error) from error
            except runtime_errors() as error:
                raise _refusal("onnxruntime", error) from error
    from onnx.reference import ReferenceEvaluator

    try:
        results = ReferenceEvaluator(model).run(None, dict(inputs))
    except (*_FAULTS, ValueError, NotImplementedError) as error:
        raise _refusal("onnx.reference", error) from error
    return list(results), "onnx.reference"


def runtime_errors() -> tuple[type[Exception], ...]:
    """Return the exception classes of onnxruntime, which must be installed."""
    from onnxruntime.capi import onnxruntime_pybind11_state as state

    kinds = (value for value in vars(state).values() if isinstance(value, type))
    return tuple(kind for kind in kinds if issubclass(kind, Exception))


#: The beginnings of onnxruntime's messages when it fails to load a model.
_NOT_LOADED = ("Load model from", "This is an invalid model", "Invalid model.")


def _refusal(engine: str, error: Exception) -> InputsError:
    reason = str(error).rpartition("Status Message: ")[2].splitlines() or [""]
    if not any(words in reason[0] for words in _NOT_LOADED):
        text = f"{engine} does not run the model on these inputs: {reason[0]}"
        return InputsError(text)
    return InputsError(
        f"{engine} does not load the model: {reason[0]}",
        "The inputs are not the reason. burn-import reads the model.",
    )


def _session(
    runtime: Any, model: onnx.ModelProto | str, is_optimized: bool = True
) -> Any:
    options = runtime.SessionOptions()
    if not is_optimized:
        level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.graph_optimization_level = level
    options.log_severity_level = 4  # errors are raised as well
    # Without it sums of 8-bit products saturate on processors that lack VNNI.
    options.add_session_config_entry("session.x64quantprecision", "1")
    content = model if isinstance(model, str) else model.SerializeToString()
    return runtime.InferenceSession(
        content, options, providers=["CPUExecutionProvider"]
    )


@contextmanager
def refused_by_onnxruntime() -> Iterator[None]:
    """Context in which errors of onnxruntime become an InputsError."""
    try:
        yield
    except runtime_errors() as error:
        raise _refusal("onnxruntime", error) from error


def session_runner(model: onnx.ModelProto) -> Callable[[Mapping[str, Any]], list[Any]]:
    """Return a function from inputs to results that keeps one session of onnxruntime.

    Raises:
        InputsError: onnxruntime, which is installed, does not accept the model, or
            later the inputs.
    """
    import onnxruntime

    with refused_by_onnxruntime():
        session = _session(onnxruntime, model)

    def run(inputs: Mapping[str, Any]) -> list[Any]:
        with refused_by_onnxruntime():
            return list(session.run(None, dict(inputs)))

    return run


def difference(actual: Any, expected: Any) -> float:
    """Return the largest deviation relative to the largest magnitude.

    It is infinite if types or non-finite values differ. Equal infinities, NaNs and
    strings do not differ.
    """
    if isinstance(actual, list) or isinstance(expected, list):
        return _list_difference(actual, expected)
    if isinstance(actual, dict) or isinstance(expected, dict):
        return _map_difference(actual, expected)
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


def _map_difference(actual: Any, expected: Any) -> float:
    if not isinstance(actual, Mapping) or not isinstance(expected, Mapping):
        return float("inf")
    keys = list(expected)
    if set(keys) != set(actual):
        return float("inf")
    return _list_difference(
        [actual[key] for key in keys], [expected[key] for key in keys]
    )


def _list_difference(actual: Any, expected: Any) -> float:
    if not isinstance(actual, Sequence) or len(actual) != len(expected):
        return float("inf")
    return max(
        (difference(*pair) for pair in zip(actual, expected, strict=True)), default=0.0
    )
