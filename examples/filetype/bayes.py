"""A network that names kinds of files, to try the example with.

It is naive Bayes: each kind has a logarithm of a probability for each pair of bytes. It
learns from files that are there: those of this repository.
"""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx.parser
from numpy.typing import NDArray
from onnx import numpy_helper

KINDS = {
    ".json": "json",
    ".md": "markdown",
    ".npz": "npz",
    ".onnx": "onnx",
    ".png": "png",
    ".py": "python",
}
CLASSIFIER = """
<ir_version: 10, opset_import: ["": 20]>
bayes (int32[batch, 2048] bytes) => (float[batch, kinds] target_label)
    <int64[1] axes = {1}, int64[1] zero = {0}, int64[1] one = {1},
     int64[1] last = {2047}, int64[1] end = {2048},
     int32 symbols = {257}, float certainty = {60.0}>
{
    first = Slice(bytes, zero, last, axes)
    second = Slice(bytes, one, end, axes)
    shifted = Mul(first, symbols)
    pairs = Add(shifted, second)
    logarithms = Gather(table, pairs)
    mean = ReduceMean<keepdims = 0>(logarithms, axes)
    scores = Mul(mean, certainty)
    target_label = Softmax<axis = -1>(scores)
}
"""


def write_model(
    model: Path, config: Path, files: Sequence[Path], tokens: Callable[[Path], Any]
) -> None:
    """Write a network that learnt from files, and its configuration."""
    labels = sorted(set(KINDS.values()))
    counts: NDArray[np.float32] = np.full((257 * 257, len(labels)), 0.02, np.float32)
    for file in files:
        row = tokens(file)
        pairs = np.bincount(row[:-1] * 257 + row[1:], minlength=len(counts))
        counts[:, labels.index(KINDS[file.suffix])] += pairs
    table = np.log(counts / counts.sum(0))
    table[-1] = 0  # where nothing is left of a file
    proto = onnx.parser.parse_model(CLASSIFIER)
    proto.graph.initializer.append(numpy_helper.from_array(table, "table"))
    onnx.save(proto, model)
    config.write_text(json.dumps({"target_labels_space": labels, "thresholds": {}}))
