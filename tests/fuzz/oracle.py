"""What others compute for a graph: onnxruntime, and ONNX's reference evaluator."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from tests.fuzz.generator.trial import REFUSALS, Rejected, as_arrays, session_of


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
    """onnxruntime without graph optimisations.

    Raises:
        Discarded: onnxruntime refuses the model.
    """

    def __init__(self, model: onnx.ModelProto) -> None:
        try:
            self._session = session_of(model)
        except REFUSALS as error:
            raise Discarded(f"onnxruntime: {str(error)[:200]}") from error

    def outputs(self, feeds: Mapping[str, Any]) -> list[Any]:
        """The outputs as arrays and lists of arrays.

        Raises:
            Discarded: onnxruntime fails on these inputs.
        """
        try:
            # BatchNormalization writes running statistics over inputs of the graph.
            results = self._session.run(None, deepcopy(dict(feeds)))
            return [as_arrays(y) for y in results]
        except (*REFUSALS, Rejected) as error:
            raise Discarded(f"onnxruntime: {str(error)[:200]}") from error


def reference_outputs(
    model: onnx.ModelProto, feeds: Mapping[str, Any]
) -> list[Any] | None:
    """What ONNX's reference evaluator computes; None if it cannot."""
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
