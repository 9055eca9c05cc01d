"""Trial executions: a few nodes are run on the contents of their operands."""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, helper, numpy_helper

from tests.fuzz.generator.values import (
    EXACT,
    NOISY,
    OTHER,
    OTHER_NOISY,
    RUNS,
    Array,
    Value,
    with_noise_where_inexact,
)
from tests.fuzz.reference.session import REFUSALS, session_of
from tests.fuzz.rules.explained import explanation
from tests.fuzz.rules.not_finite import is_not_finite, not_finite_explanation

#: Limits on what a result may be: elements, magnitude, sensitivity to noise.
MOST_ELEMENTS = 6000
LARGEST = 1e4
MOST_NOISE = 1e-2


class Rejected(Exception):  # noqa: N818
    """The nodes cannot run, or compute what cannot be compared."""


def value_info(name: str, example: Any) -> onnx.ValueInfoProto:
    """The declaration of a value like ``example``, with unknown extents."""
    return helper.make_value_info(name, type_proto(example))


def type_proto(example: Any, shape: Sequence[int | str] | None = None) -> Any:
    """The type of ``example``: an array, or a list of arrays of one dtype."""
    if isinstance(example, list):
        item = example[0] if example else np.zeros((), np.float32)
        kind = helper.np_dtype_to_tensor_dtype(item.dtype)
        tensor = helper.make_tensor_type_proto(int(kind), None)
        return helper.make_sequence_type_proto(tensor)
    text = example.dtype == object
    element_type = helper.np_dtype_to_tensor_dtype
    kind = onnx.TensorProto.STRING if text else element_type(example.dtype)
    dims: list[Any] = [None] * example.ndim if shape is None else list(shape)
    return helper.make_tensor_type_proto(int(kind), dims)


def trial_model(
    nodes: Sequence[NodeProto],
    operands: Sequence[Value],
    results: Sequence[str],
    opsets: Mapping[str, int],
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    """A model of ``nodes`` whose inputs are the operands that are no constants."""
    given = [v for v in operands if v.origin != "constant"]
    stored = [v for v in operands if v.origin == "constant"]
    graph = helper.make_graph(
        list(nodes),
        "trial",
        [value_info(v.name, v.runs[0]) for v in given],
        [onnx.ValueInfoProto(name=name) for name in results],
        [numpy_helper.from_array(v.runs[0], v.name) for v in stored],
    )
    imports = [helper.make_opsetid(d, v) for d, v in opsets.items()]
    if functions:
        imports += [helper.make_opsetid(d, 1) for d in {f.domain for f in functions}]
    return helper.make_model(
        graph, opset_imports=imports, ir_version=10, functions=list(functions)
    )


def executed(
    nodes: Sequence[NodeProto],
    operands: Sequence[Value],
    results: Sequence[str],
    opsets: Mapping[str, int],
    rng: np.random.Generator,
    functions: Sequence[onnx.FunctionProto] = (),
) -> list[Value]:
    """The results of ``nodes`` in every run.

    Raises:
        Rejected: onnxruntime refuses them, or a result is too large, is not finite,
            or changes much by noise on the operands.
    """
    if len(nodes) == 1:
        _check_explained(nodes[0], {v.name: v for v in operands})
    model = trial_model(nodes, operands, results, opsets, functions)
    try:
        onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
        session = session_of(model)
        runs = [_run(session, operands, run) for run in range(RUNS)]
    except REFUSALS as error:
        raise Rejected(str(error)[:200]) from error
    values = []
    for name, contents in zip(results, zip(*runs, strict=True), strict=True):
        _check(contents)
        values.append(Value(name, _noised(contents, rng)))
    return values


def _check_explained(node: NodeProto, contents: Mapping[str, Value]) -> None:
    for run in (EXACT, OTHER):
        operands = [contents[n].runs[run] if n else None for n in node.input]
        reason = explanation(node, operands)
        if reason is None and any(map(is_not_finite, operands)):
            reason = not_finite_explanation(node, operands)
        if reason is not None:
            raise Rejected(f"explained: {reason}")


def _run(session: Any, operands: Sequence[Value], run: int) -> list[Any]:
    feeds = {v.name: v.runs[run] for v in operands if v.origin != "constant"}
    if any(o.type.startswith("optional") for o in session.get_outputs()):
        raise Rejected("an optional value")
    return [as_arrays(y) for y in session.run(None, deepcopy(feeds))]


def as_arrays(value: Any) -> Any:
    """A result of onnxruntime as an array or a list of arrays.

    Raises:
        Rejected: it is a map or None.
    """
    if isinstance(value, list):
        return [as_arrays(item) for item in value]
    if value is None or isinstance(value, dict):
        raise Rejected("the result is no tensor")
    return np.asarray(value)


def _noised(contents: tuple[Any, ...], rng: np.random.Generator) -> tuple[Any, ...]:
    runs = list(contents)
    for exact, noisy in ((EXACT, NOISY), (OTHER, OTHER_NOISY)):
        runs[noisy] = with_noise_where_inexact(runs[exact], runs[noisy], rng)
    return tuple(runs)


def _check(contents: tuple[Any, ...]) -> None:
    for exact, noisy in ((EXACT, NOISY), (OTHER, OTHER_NOISY)):
        _check_pair(contents[exact], contents[noisy])


def _check_pair(exact: Any, noisy: Any) -> None:
    if isinstance(exact, list):
        if not 0 < len(exact) == len(noisy) <= 20:
            raise Rejected("the length of a sequence depends on noise, or is 0")
        for a, b in zip(exact, noisy, strict=True):
            _check_pair(a, b)
        return
    if exact.size > MOST_ELEMENTS:
        raise Rejected("too large")
    if exact.shape != noisy.shape:
        raise Rejected("a shape depends on noise")
    if exact.dtype.kind in "fc":
        _check_floating(exact, noisy)
        return
    if not np.array_equal(exact, noisy):
        raise Rejected("a discrete result depends on noise")
    if exact.dtype.kind in "iu" and _is_near_overflow(exact):
        raise Rejected("near overflow")


def _check_floating(exact: Array, noisy: Array) -> None:
    if not np.isfinite(exact).all() or (exact.size and abs(exact).max() > LARGEST):
        raise Rejected("not finite, or large")
    if sensitivity(exact, noisy) > MOST_NOISE * max(1.0, scale_of(exact)):
        raise Rejected("sensitive to noise")


def _is_near_overflow(array: Array) -> bool:
    """Return whether 32 or 64 bit integers are so large that arithmetic overflows."""
    if array.dtype.itemsize < 4:
        return False
    return bool((array.astype(np.float64) > 2**28).any() or (array < -(2**28)).any())


def sensitivity(exact: Array, noisy: Array) -> float:
    """The largest difference that noise on the inputs makes."""
    if exact.dtype.kind not in "fc" or not exact.size:
        return 0.0
    wide = exact.astype(np.float64) - noisy.astype(np.float64)
    return float(np.nan_to_num(abs(wide), nan=np.inf).max())


def scale_of(array: Array) -> float:
    """The largest magnitude among finite elements."""
    if array.dtype.kind not in "fc":
        return 0.0
    finite = array[np.isfinite(array)]
    return float(abs(finite).max()) if finite.size else 0.0
