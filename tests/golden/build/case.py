"""How a golden model is put together: a graph, its weights and its inputs."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper, numpy_helper

Array = NDArray[Any]
Feeds = Mapping[str, Array]
Shape = Sequence[int | str | None]

FLOAT, INT64, BOOL = (
    onnx.TensorProto.FLOAT,
    onnx.TensorProto.INT64,
    onnx.TensorProto.BOOL,
)


@dataclass
class Case:
    """A model with one or two sets of inputs; those with a stored value may lack."""

    model: onnx.ModelProto
    feeds: tuple[Feeds, ...]


@dataclass
class Build:
    """A graph that grows: every method appends and returns the name of a value."""

    seed: int
    nodes: list[onnx.NodeProto] = field(default_factory=list)
    weights: list[onnx.TensorProto] = field(default_factory=list)
    rng: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def weight(self, name: str, *shape: int, scale: float = 0.5) -> str:
        """Return the name of a float weight from a normal distribution."""
        return self.stored(name, scale * self.rng.standard_normal(shape))

    def positive(self, name: str, *shape: int) -> str:
        """Return the name of a float weight between 0.5 and 1.5."""
        return self.stored(name, self.rng.uniform(0.5, 1.5, shape))

    def stored(self, name: str, values: Any) -> str:
        """Return the name of a stored tensor; floats are float32, integers int64."""
        array = np.asarray(values)
        array = array.astype(np.float32 if array.dtype.kind == "f" else np.int64)
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def op(self, op_type: str, inputs: Sequence[str], output: str, **attrs: Any) -> str:
        """Return ``output``, the only result of a new node."""
        name = attrs.pop("name", f"{op_type}_{len(self.nodes)}")
        self.nodes.append(
            helper.make_node(op_type, list(inputs), [output], name, **attrs)
        )
        return output

    def normal(self, *shape: int) -> Array:
        """Return values for an input."""
        return self.rng.standard_normal(shape, np.float32)

    def graph(
        self,
        name: str,
        inputs: Mapping[str, Shape],
        outputs: Mapping[str, Shape],
        kinds: Mapping[str, int] | None = None,
        declared: Mapping[str, Shape] | None = None,
    ) -> onnx.GraphProto:
        """Return the graph; ``kinds`` are the element types that are not float."""
        names = kinds or {}
        given, results = (
            [
                helper.make_tensor_value_info(value, names.get(value, FLOAT), shape)
                for value, shape in side.items()
            ]
            for side in ({**inputs, **(declared or {})}, outputs)
        )
        return helper.make_graph(self.nodes, name, given, results, self.weights)


def model(graph: onnx.GraphProto, opset: int = 18) -> onnx.ModelProto:
    """Return a checked model of one opset."""
    proto = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", opset)],
        ir_version=8,
        producer_name="golden",
    )
    onnx.checker.check_model(proto)
    return proto


Builder = Callable[[], Case]
