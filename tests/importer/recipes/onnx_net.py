"""Networks built layer by layer as ONNX graphs, which onnxruntime runs."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.modules import Array

_RNG_SEED = 11


class OnnxNet:
    """Graph builder; values are names. ``state`` has the weights by key."""

    def __init__(self, image: tuple[int, ...]) -> None:
        self.image = image
        self.rng = np.random.default_rng(_RNG_SEED)
        self.state: dict[str, Array] = {}
        self.extra: dict[str, Array] = {}
        self.nodes: list[Any] = []

    # Weights

    def drawn(self, key: str, shape: tuple[int, ...], scale: float = 1.0) -> str:
        """Return the name of a new weight."""
        assert key not in self.state, key
        self.state[key] = (self.rng.normal(size=shape) * scale).astype(np.float32)
        return key

    def positive(self, key: str, size: int) -> str:
        """Return the name of a new weight with values around 1."""
        self.state[key] = self.rng.uniform(0.5, 1.2, size).astype(np.float32)
        return key

    def tensor(self, key: str, *shape: int) -> str:
        return self.drawn(key, shape, 0.5)

    # Operators

    def op(self, kind: str, *operands: str, **attrs: Any) -> str:
        """Add an operator and return the name of its result."""
        name = f"value_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(operands), [name], **attrs))
        return name

    def stored(self, array: Any) -> str:
        """Return the name of a constant."""
        name = f"constant_{len(self.extra)}"
        self.extra[name] = np.asarray(array)
        return name

    def conv(
        self,
        key: str,
        x: str,
        size: tuple[int, int],
        kernel: int,
        *,
        stride: int = 1,
        padding: int = 0,
        groups: int = 1,
        bias: bool = False,
    ) -> str:
        given, out = size
        shape = (out, given // groups, kernel, kernel)
        scale = (given // groups * kernel * kernel) ** -0.5
        operands = [x, self.drawn(f"{key}.weight", shape, 1.5 * scale)]
        if bias:
            operands.append(self.drawn(f"{key}.bias", (out,), 0.1))
        window = {"strides": [stride] * 2, "pads": [padding] * 4, "group": groups}
        return self.op("Conv", *operands, **window)

    def norm(self, key: str, x: str, size: int, eps: float = 1e-5) -> str:
        operands = [
            self.positive(f"{key}.weight", size),
            self.drawn(f"{key}.bias", (size,), 0.1),
            self.drawn(f"{key}.running_mean", (size,), 0.1),
            self.positive(f"{key}.running_var", size),
        ]
        self.state[f"{key}.num_batches_tracked"] = np.asarray(3, np.int64)
        return self.op("BatchNormalization", x, *operands, epsilon=eps)

    def layer_norm(self, key: str, x: str, size: int, eps: float) -> str:
        operands = [
            self.positive(f"{key}.weight", size),
            self.drawn(f"{key}.bias", (size,), 0.1),
        ]
        return self.op("LayerNormalization", x, *operands, axis=-1, epsilon=eps)

    def linear(self, key: str, x: str, size: tuple[int, int]) -> str:
        weight = self.drawn(f"{key}.weight", size[::-1], size[0] ** -0.5)
        turned = self.op("Transpose", weight, perm=[1, 0])
        bias = self.drawn(f"{key}.bias", (size[1],), 0.1)
        return self.op("Add", self.op("MatMul", x, turned), bias)

    def attention(self, key: str, x: str, size: int, heads: int) -> str:
        weight = self.drawn(f"{key}.in_proj_weight", (3 * size, size), size**-0.5)
        bias = self.drawn(f"{key}.in_proj_bias", (3 * size,), 0.1)
        turned = self.op("Transpose", weight, perm=[1, 0])
        y = self.op("Add", self.op("MatMul", x, turned), bias)
        shape = self.stored(np.array([0, 0, 3, heads, size // heads]))
        y = self.op("Reshape", y, shape)
        query, key_, value = (
            self.op(
                "Transpose",
                self.op("Gather", y, self.stored(np.array(index)), axis=2),
                perm=[0, 2, 1, 3],
            )
            for index in range(3)
        )
        scores = self.op("MatMul", query, self.op("Transpose", key_, perm=[0, 1, 3, 2]))
        scale = self.stored(np.float32((size // heads) ** -0.5))
        scores = self.op("Softmax", self.op("Mul", scores, scale), axis=-1)
        y = self.op("Transpose", self.op("MatMul", scores, value), perm=[0, 2, 1, 3])
        y = self.op("Reshape", y, self.stored(np.array([0, 0, size])))
        return self.linear(f"{key}.out_proj", y, (size, size))

    def call(self, name: str, *operands: str) -> str:
        if name == "silu":
            return self.op("Mul", *operands, self.op("Sigmoid", *operands))
        if name == "relu6":
            ends = (self.stored(np.float32(end)) for end in (0, 6))
            return self.op("Clip", *operands, *ends)
        kinds = {"gelu": "Gelu", "add": "Add", "mul": "Mul", "relu": "Relu"}
        return self.op({**kinds, "sigmoid": "Sigmoid"}[name], *operands)

    def pool(self, kind: str, x: str, kernel: int, stride: int, pad: int) -> str:
        word = {"max": "MaxPool", "average": "AveragePool"}[kind]
        window = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2}
        return self.op(word, x, **window, pads=[pad] * 4)

    def adaptive(self, x: str, size: int) -> str:
        if size == 1:
            return self.op("ReduceMean", x, self.stored(np.array([2, 3])))
        rows, columns = (self.means(count, size) for count in self.extents(x))
        return self.op("Einsum", rows, x, columns, equation="rh,nchw,sw->ncrs")

    def means(self, count: int, size: int) -> str:
        """Return the matrix of adaptive average pooling to ``size`` elements."""
        weights = np.zeros((size, count), np.float32)
        for row in range(size):
            start, stop = row * count // size, -(-(row + 1) * count // size)
            weights[row, start:stop] = 1 / (stop - start)
        return self.stored(weights)

    def extents(self, x: str) -> list[int]:
        """Return the height and the width of a value."""
        shaped_model = onnx.shape_inference.infer_shapes(self.model(x))
        (result,) = shaped_model.graph.output
        return [dim.dim_value for dim in result.type.tensor_type.shape.dim[2:]]

    def permute(self, x: str, *axes: int) -> str:
        return self.op("Transpose", x, perm=list(axes))

    def flatten(self, x: str, axis: int) -> str:
        return self.op("Reshape", x, self.stored(np.array([0] * axis + [-1])))

    def concat(self, values: Sequence[str], axis: int) -> str:
        return self.op("Concat", *values, axis=axis)

    def first(self, x: str) -> str:
        return self.op("Gather", x, self.stored(np.array(0)), axis=1)

    def before(self, first: str, x: str) -> str:
        batch = self.op("Shape", x, start=0, end=1)
        shape = self.op("Concat", batch, self.stored(np.array([1, 1])), axis=0)
        return self.op("Concat", self.op("Expand", first, shape), x, axis=1)

    # The whole model

    def model(self, output: str) -> Any:
        """Return the model with the image ``x`` as input and one output."""
        weights = {
            k: v for k, v in (self.state | self.extra).items() if v.dtype != np.int64
        } | {k: v for k, v in self.extra.items() if v.dtype == np.int64}
        graph = helper.make_graph(
            self.nodes,
            "twin",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.image)],
            [helper.make_tensor_value_info(output, TensorProto.FLOAT, None)],
            [numpy_helper.from_array(array, name) for name, array in weights.items()],
        )
        opset = helper.make_opsetid("", 20)
        return helper.make_model(graph, opset_imports=[opset], ir_version=9)

    def run(self, output: str, x: Array) -> Array:
        """Return the output of onnxruntime for ``x``."""
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        data = self.model(output).SerializeToString()
        session = onnxruntime.InferenceSession(data, options)
        (actual,) = session.run(None, {"x": x})
        result: Array = actual
        return result
