"""Whole networks under every option: parts, other dtypes, one class.

The models are not in the repository: ``--zoo FOLDER`` says where they are.
"""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import burn
from burn_import import Options, load
from tests.modules import Array

NETWORKS = (
    "bert.ts-op17",
    "convnext.ts-op11",
    "gru_lm.dynamo-op20",
    "llama.dynamo-op20",
    "segformer.ts-op14",
    "t5_encoder.ts-op17",
)
#: Options, and how far a result may be from the largest one recorded.
CHOICES: dict[str, tuple[Options, float]] = {
    "flat": (Options(flat=True), 1e-4),
    "plain": (Options(passes=()), 1e-4),
    "flat and plain": (Options(flat=True, passes=()), 1e-4),
    "float64": (Options(dtype="float64"), 1e-4),
    "float16": (Options(dtype="float16"), 3e-2),
    "bfloat16": (Options(dtype="bfloat16"), 2e-1),
}
#: Where a network may be cut: in the middle of these.
JOINTS = ("Add", "Conv", "LayerNormalization", "Mul", "Relu", "Softmax")


class Network:
    """A file with one recorded call."""

    def __init__(self, path: Path) -> None:
        self.path = path
        graph = onnx.load(path, load_external_data=False).graph
        self.joints = [n.output[0] for n in graph.node if n.op_type in JOINTS]
        with np.load(path.with_name(f"{path.stem}.golden.npz")) as data:
            self.inputs: dict[str, Array] = {
                v.name: data[f"in:{v.name}"]
                for v in graph.input
                if f"in:{v.name}" in data
            }
            self.outputs = {v.name: data[f"out:{v.name}"] for v in graph.output}

    def run(self, options: Options, *first: Any) -> list[Any]:
        """The results of the module, called with ``first`` and the recorded inputs."""
        given = [burn.tensor(x) for x in self.inputs.values()]
        if options.dtype:
            dtype = getattr(burn, options.dtype)
            given = [x.cast(dtype) if x.numpy().dtype.kind == "f" else x for x in given]
        net: Any = load(self.path, options)
        results = net(*first, *given)
        return list(results) if isinstance(results, tuple) else [results]

    def check(self, result: list[Any], tolerance: float) -> None:
        """Return nothing if ``found`` are the recorded results."""
        for value, expected in zip(result, self.outputs.values(), strict=True):
            assert value.shape == expected.shape
            most = max(float(np.abs(expected).max()), 1e-3)
            error = np.abs(value.numpy().astype(np.float64) - expected).max()
            assert error <= tolerance * most


@pytest.fixture(params=NETWORKS)
def network(request: pytest.FixtureRequest) -> Network:
    """Return a third-party network."""
    path = request.config.getoption("--zoo") / "arch" / f"{request.param}.onnx"
    if not path.is_file():
        pytest.skip(f"no third-party models (see --zoo): {path.name} not checked")
    return Network(path)


@pytest.mark.parametrize("name", CHOICES)
@pytest.mark.sampled(6)
def test_the_recorded_values_stay(network: Network, name: str) -> None:
    options, tolerance = CHOICES[name]
    result = network.run(options)
    if options.dtype:
        floats = [
            v
            for v, e in zip(result, network.outputs.values(), strict=True)
            if e.dtype.kind == "f"
        ]
        assert {v.dtype for v in floats} == {getattr(burn, options.dtype)}
    network.check(result, tolerance)


@pytest.mark.sampled(2)
def test_two_parts_are_the_whole(network: Network) -> None:
    middle = network.joints[len(network.joints) // 2]
    *_, value = network.run(Options(outputs=(*network.outputs, middle)))
    second = Options(inputs=(middle, *network.inputs))
    network.check(network.run(second, value), 1e-4)
