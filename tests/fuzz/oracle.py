"""What others compute for a graph: onnxruntime, and ONNX's reference evaluator."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

from tests.fuzz.generator.case import noise_between
from tests.fuzz.generator.trial import (
    MOST_NOISE,
    Rejected,
    as_arrays,
    scale_of,
)
from tests.fuzz.generator.values import NOISE, with_noise
from tests.fuzz.reference.session import REFUSALS, session_of


class Discarded(Exception):  # noqa: N818
    """Nobody can say what the graph computes."""


def check(model: onnx.ModelProto) -> None:
    """Return if ``model`` is valid ONNX and its shapes can be inferred.

    Raises:
        Discarded: it is not.
    """
    try:
        onnx.checker.check_model(model, full_check=True)
    except (
        onnx.checker.ValidationError,
        onnx.shape_inference.InferenceError,
        RuntimeError,
        ValueError,
    ) as error:
        raise Discarded(f"checker: {str(error)[:200]}") from error


class Oracle:
    """onnxruntime without graph optimizations."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._model = model

    def outputs(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs as arrays and lists of arrays.

        Raises:
            Discarded: onnxruntime refuses the model, or fails on these inputs.
        """
        try:
            # BatchNormalization writes running statistics over its operands: inputs
            # of the graph, and stored numbers, which a next run would read.
            session = session_of(self._model)
            results = session.run(None, deepcopy(dict(feeds)))
            return [as_arrays(y) for y in results]
        except (*REFUSALS, Rejected) as error:
            raise Discarded(f"onnxruntime: {str(error)[:200]}") from error


def noise_of_constants(
    model: onnx.ModelProto, feeds: Mapping[str, Any], expected: list[Any]
) -> list[float]:
    """The difference that noise on stored numbers makes to each output.

    Noise on inputs does not reach what follows from constants alone. Attributes are
    float32, and decimal numbers in the source: among float64 that is a difference. It
    is 0 for all outputs if shapes or other discrete values change as well.
    """
    weights, attributes = onnx.ModelProto(), onnx.ModelProto()
    weights.CopyFrom(model)
    attributes.CopyFrom(model)
    rng = np.random.default_rng(0)
    for tensor in weights.graph.initializer:
        array = numpy_helper.to_array(tensor)
        if array.dtype in NOISE:
            exact = numpy_helper.from_array(with_noise(array, rng), tensor.name)
            tensor.CopyFrom(exact)
    _move_attributes(attributes.graph.node)
    noise = [_noise_between(m, feeds, expected) for m in (weights, attributes)]
    return [max(pair) for pair in zip(*noise, strict=True)]


def _move_attributes(nodes: Iterable[onnx.NodeProto]) -> None:
    """Add the step of its dtype to each number that is an attribute."""
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.FLOAT:
                attribute.f = np.nextafter(np.float32(attribute.f), np.float32(np.inf))
            _move_attributes(attribute.g.node)


def _noise_between(
    noisy: onnx.ModelProto, feeds: Mapping[str, Any], expected: list[Any]
) -> list[float]:
    nothing = [0.0] * len(expected)
    try:
        outputs = Oracle(noisy).outputs(feeds)
    except Discarded:
        return nothing
    pairs = list(zip(expected, outputs, strict=True))
    if not all(_is_smooth(exact, other) for exact, other in pairs):
        return nothing
    return [noise_between(exact, other) for exact, other in pairs]


def _is_smooth(exact: Any, noisy: Any) -> bool:
    """Return whether two runs differ by no more than small differences of floats."""
    if isinstance(exact, list):
        return len(exact) == len(noisy) and all(map(_is_smooth, exact, noisy))
    if exact.shape != noisy.shape:
        return False
    if exact.dtype.kind not in "fc":
        return bool(np.array_equal(exact, noisy))
    return noise_between(exact, noisy) <= MOST_NOISE * max(1.0, scale_of(exact))


def reference_outputs(
    model: onnx.ModelProto, feeds: Mapping[str, Any]
) -> list[Any] | None:
    """Return the results of ONNX's reference evaluator; None if it has none."""
    try:
        with np.errstate(all="ignore"):
            results = ReferenceEvaluator(model).run(None, dict(feeds))
        return [as_arrays(y) for y in results]
    except (
        ArithmeticError,
        AttributeError,
        AssertionError,
        LookupError,
        NameError,
        NotImplementedError,
        RuntimeError,
        TypeError,
        ValueError,
        Rejected,
    ):
        return None
