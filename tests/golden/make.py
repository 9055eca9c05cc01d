"""Writes the golden models and the outputs that onnxruntime gives for their inputs.

Run it as ``python -m tests.golden.make`` at the root, with the four source folders on
the path, and ``pytest tests/golden --update-golden`` after it. With names as arguments
it writes those alone.
"""

import sys
from pathlib import Path
from typing import Any

import numpy as np

from tests.golden.build import features, loops, networks, recurrent
from tests.golden.build.case import Array, Builder, Case
from tests.modules import onnxruntime_outputs

HERE = Path(__file__).parent
BUILDERS: dict[str, Builder] = {
    "collisions": features.collisions,
    "embedding": networks.embedding,
    "hostile": features.hostile,
    "loops": loops.loops,
    "lstm": networks.lstm,
    "nested_if": features.nested_if,
    "opset9": features.opset9,
    "optional": features.optional,
    "padding": features.padding,
    "ranks": features.ranks,
    "recurrent": recurrent.recurrent,
    "residual": networks.residual,
    "shapes": features.shapes,
    "shared": networks.shared,
    "transformer": networks.transformer,
}


def recorded(case: Case, model: Path) -> dict[str, Array]:
    """Return inputs and outputs by ``in1:<name>``, ``out1:<name>``, ``in2:...``."""
    names = [value.name for value in case.model.graph.output]
    arrays: dict[str, Array] = {}
    for number, feeds in enumerate(case.feeds, 1):
        outputs = onnxruntime_outputs(model, feeds)
        arrays |= {f"in{number}:{name}": array for name, array in feeds.items()}
        pairs = zip(names, outputs, strict=True)
        arrays |= {f"out{number}:{name}": array for name, array in pairs}
    return arrays


def write(name: str) -> None:
    """Return nothing; writes ``model.onnx`` and ``io.npz`` of one golden model."""
    case = BUILDERS[name]()
    folder = HERE / name
    folder.mkdir(exist_ok=True)
    model = folder / "model.onnx"
    model.write_bytes(case.model.SerializeToString(deterministic=True))
    arrays: dict[str, Any] = recorded(case, model)
    np.savez_compressed(folder / "io.npz", **arrays)


if __name__ == "__main__":
    for chosen in sys.argv[1:] or BUILDERS:
        write(chosen)
