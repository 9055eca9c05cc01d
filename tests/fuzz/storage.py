"""Cases of failures in JSON, with which another machine runs the same graph.

A seed makes the same graph only where trial runs give the same numbers, which differ
by processor and by version of onnxruntime.
"""

from __future__ import annotations

import base64
import zlib
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from tests.fuzz.generator import FuzzCase


def case_as_json(case: FuzzCase) -> dict[str, Any]:
    """Return the model, the inputs and the noise of ``case`` as JSON has them."""
    return {
        "model": _text_of(case.model.SerializeToString()),
        "feeds": [{n: _encoded(x) for n, x in feeds.items()} for feeds in case.feeds],
        "noise": case.noise,
        "pieces": [[_encoded(x) for x in run] for run in case.pieces],
    }


def case_of_json(report: dict[str, Any]) -> FuzzCase:
    """Return the case of a line of a log whose seed failed.

    Raises:
        KeyError: the log has no case, as of seeds that were right.
    """
    stored = report["case"]
    model = onnx.ModelProto()
    model.ParseFromString(_bytes_of(stored["model"]))
    return FuzzCase(
        report["seed"],
        model,
        [{n: _decoded(x) for n, x in feeds.items()} for feeds in stored["feeds"]],
        stored["noise"],
        pieces=[[_decoded(x) for x in run] for run in stored["pieces"]],
        profile=report["profile"],
    )


def _encoded(value: Any) -> Any:
    """An array as the text of a TensorProto, a list as a list."""
    if value is None:
        return None
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    return _text_of(numpy_helper.from_array(np.asarray(value)).SerializeToString())


def _decoded(value: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return [_decoded(item) for item in value]
    tensor = onnx.TensorProto()
    tensor.ParseFromString(_bytes_of(value))
    array = numpy_helper.to_array(tensor)
    if tensor.data_type == onnx.TensorProto.STRING:
        texts = [x.decode() if isinstance(x, bytes) else x for x in array.flat]
        return np.array(texts, object).reshape(array.shape)
    return array


def _text_of(data: bytes) -> str:
    return base64.b85encode(zlib.compress(data, 9)).decode("ascii")


def _bytes_of(text: str) -> bytes:
    return zlib.decompress(base64.b85decode(text))
