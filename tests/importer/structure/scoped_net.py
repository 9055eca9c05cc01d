"""Graphs with the node and weight names that PyTorch writes for modules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

import burn
from burn import nn
from burn_import.options import Options
from burn_import.pipeline import import_model, write_model
from tests.importer.onnx_files import saved
from tests.modules import Array, import_file, onnxruntime_outputs

#: Tolerance of float32 results, relative to the largest element.
TOLERANCE = 1e-4


class ScopedNet:
    """A writer of a graph's nodes; values are their names.

    Args:
        producer: The recorded producer; with ``pytorch`` dotted names are keys.
        opset: The version of the ONNX operators.
    """

    def __init__(self, producer: str = "pytorch", opset: int = 18, seed: int = 5):
        self.producer = producer
        self.opset = opset
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.count = 0
        self.weights: dict[str, Array] = {}
        self.inputs: dict[str, Sequence[int | str]] = {}

    def input(self, name: str, *shape: int | str) -> str:
        """Declare a float32 input of this shape; return its name."""
        self.inputs[name] = shape
        return name

    def weight(self, key: str, *shape: int) -> str:
        """Store random numbers under ``key`` once; return the key."""
        if key not in self.weights:
            self.weights[key] = self.rng.normal(0, 0.4, shape).astype(np.float32)
        assert shape in ((), self.weights[key].shape), key
        return key

    def stored(self, name: str, array: Any) -> str:
        """Store ``array`` unchanged; return its name."""
        self.weights[name] = np.asarray(array)
        return name

    def run(self, op: str, scope: str, *operands: str, **attrs: Any) -> str:
        """Append a node in ``scope`` (``features.3.squeeze``); return its result."""
        prefix = scope_name(scope)
        number, self.count = self.count, self.count + 1
        result = f"{prefix}{op}_output_{number}"
        name = f"{prefix}{op}" if number == 0 else f"{prefix}{op}_{number}"
        self.nodes.append(
            helper.make_node(op, list(operands), [result], name=name, **attrs)
        )
        return result

    def body(
        self, build: Callable[[], Sequence[str]], *inputs: onnx.ValueInfoProto
    ) -> onnx.GraphProto:
        """Return a graph of the nodes that ``build`` appends, with its outputs."""
        around, self.nodes = self.nodes, []
        outputs = [helper.make_empty_tensor_value_info(name) for name in build()]
        nodes, self.nodes = self.nodes, around
        return helper.make_graph(nodes, "body", list(inputs), outputs)

    def conv(self, scope: str, x: str, given: int, result: int, size: int = 1) -> str:
        """Run an ``nn.Conv2d`` that keeps height and width."""
        weight = self.weight(f"{scope}.weight", result, given, size, size)
        pads = [size // 2] * 4
        bias = self.weight(f"{scope}.bias", result)
        window = {"kernel_shape": [size, size], "pads": pads}
        return self.run("Conv", scope, x, weight, bias, **window)

    def linear(self, scope: str, x: str, given: int, result: int) -> str:
        """Run an ``nn.Linear`` on rows."""
        weight = self.weight(f"{scope}.weight", result, given)
        bias = self.weight(f"{scope}.bias", result)
        return self.run("Gemm", scope, x, weight, bias, transB=1)

    def feeds(self, extent: int = 2) -> dict[str, Array]:
        """Return random inputs, with ``extent`` for every symbolic dimension."""
        shapes = {
            name: [extent if isinstance(dim, str) else dim for dim in shape]
            for name, shape in self.inputs.items()
        }
        return {
            name: self.rng.normal(size=shape).astype(np.float32)
            for name, shape in shapes.items()
        }

    def model(self, *outputs: str) -> onnx.ModelProto:
        """Return the whole model with ``outputs``."""
        graph = helper.make_graph(
            self.nodes,
            "main_graph",
            [
                helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape)
                for name, shape in self.inputs.items()
            ],
            [helper.make_empty_tensor_value_info(name) for name in outputs],
            [numpy_helper.from_array(a, name) for name, a in self.weights.items()],
        )
        return helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", self.opset)],
            ir_version=8,
            producer_name=self.producer,
        )


def scope_name(scope: str) -> str:
    """Return ``features.3.conv`` in TorchScript's form.

    It is ``/features/features.3/conv/``.
    """
    shown: list[str] = []
    for segment in filter(None, scope.split(".")):
        around = shown[-1].rpartition("/")[2] if shown else ""
        shown.append(f"{around}.{segment}" if segment.isdigit() else segment)
    return "".join(f"/{one}" for one in shown) + "/"


@dataclass(frozen=True)
class Imported:
    """An imported model: its source, and the module with its weights."""

    source: str
    module: nn.Module

    @property
    def keys(self) -> set[str]:
        """Return the keys of the module's state."""
        return set(self.module.state_dict())


def check_import(
    folder: Path, proto: onnx.ModelProto, *feeds: Mapping[str, Array], flat: bool = True
) -> Imported:
    """Return the imported model, after it agrees with onnxruntime.

    It is also imported flat if ``flat``. Both are called eagerly and compiled, the
    compiled one three times with each of ``feeds``.
    """
    path = saved(folder / "model.onnx", proto)
    expected = [onnxruntime_outputs(path, given) for given in feeds]
    module = import_into(folder / "tree", path, Options(stem="net"))
    compare(module.module, feeds, expected)
    if flat:
        compare(
            import_into(folder / "flat", path, Options(stem="net", flat=True)).module,
            feeds,
            expected,
        )
    return module


def import_into(folder: Path, model: Path, options: Options) -> Imported:
    """Return the module of ``model``, written into ``folder`` and loaded."""
    folder.mkdir(exist_ok=True)
    compiled = import_model(model, options)
    written = write_model(compiled, folder / "net.py").module
    loaded = getattr(import_file(written), compiled.class_name).load()
    return Imported(written.read_text("utf-8"), loaded)


def compare(
    module: Any, feeds: Sequence[Mapping[str, Array]], expected: list[list[Array]]
) -> None:
    """Check that ``module`` gives ``expected``, eagerly and compiled."""
    compiled = burn.compile(module)
    for given, results in zip(feeds, expected, strict=True):
        args = [burn.tensor(array) for array in given.values()]
        for run in (module, compiled, compiled, compiled):
            result = run(*args)
            several = result if isinstance(result, tuple) else (result,)
            assert len(several) == len(results)
            for one, other in zip(several, results, strict=True):
                scale = 1 + np.abs(other).max(initial=0, where=np.isfinite(other))
                np.testing.assert_allclose(
                    one.numpy(), other, rtol=TOLERANCE, atol=TOLERANCE * float(scale)
                )
                assert one.numpy().shape == other.shape
