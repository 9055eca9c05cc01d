"""Graph builder for recipes: modules, layers with weights, operators."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from burn.record.errors import shown
from burn_import.frontends.recipes.weights import Weights
from burn_ir import InvalidModel
from burn_ir.dim import Dim, symbol
from burn_ir.graph import ROOT_SCOPE
from burn_ir.graph_builder import GraphBuilder, Origin
from burn_ir.raw import RawGraph, RawModel
from burn_ir.types import Array, Type

OPSETS = {"": 23, "burn": 1}
#: Operators of burn's own domain.
OWN = frozenset({"AdaptiveAvgPool", "Conv1D", "Linear"})
#: Producer of graphs whose weight names are PyTorch's keys.
PRODUCER = "pytorch"
#: The output name of classification scores.
LOGITS = "logits"
#: Symbolic extents of inputs.
BATCH, LENGTH, TARGET = symbol("batch"), symbol("length"), symbol("target_length")


@dataclass
class RecipeWriter:
    """A graph under construction. Values are represented by their names."""

    weights: Weights
    out: GraphBuilder = field(default_factory=GraphBuilder)
    inputs: dict[str, Type] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    notes: list[str] = field(default_factory=list)
    defaults: dict[str, Array] = field(default_factory=dict)
    class_name: str = ""

    def note(self, *sentences: str) -> None:
        """Add notes about assumed defaults to the module's docstring."""
        self.notes += sentences

    def input(
        self, name: str, dtype: str, *dims: Dim, default: Array | None = None
    ) -> str:
        """Add an input of the model, optional if there is a ``default``."""
        if default is not None:
            self.defaults[name] = default
        self.inputs[name] = Type(np.dtype(dtype), dims)
        self.out.names.add(name)
        return name

    @contextmanager
    def module(self, name: str, class_name: str = "") -> Iterator[None]:
        """Put nodes and keys in the block into the child module ``name``.

        ``name`` may lead through lists (``layer.0``); ``class_name`` is that of the
        last segment.
        """
        outer = self.path, self.classes
        segments = tuple(segment for segment in name.split(".") if segment)
        self.path += segments
        self.classes += ("",) * (len(segments) - 1) + (class_name,) * bool(segments)
        yield
        self.path, self.classes = outer

    def base(self, name: str, class_name: str) -> AbstractContextManager[None]:
        """Put nodes and keys in the block into module ``name`` if it exists."""
        return self.module(name if self.inside(name) else "", class_name)

    def inside(self, name: str) -> bool:
        """Return whether the child module ``name`` has weights."""
        start = f"{self.key(name)}."
        return any(key.startswith(start) for key in self.weights.tensors)

    def called(self, class_name: str) -> None:
        """Set the class name of this module."""
        self.class_name = class_name
        depth = len(self.path)
        if depth:
            self.classes = (*self.classes[:-1], class_name)
            self.out.nodes = [
                (
                    replace(n, classes=(*self.classes, *n.classes[depth:]))
                    if n.scope[:depth] == self.path
                    else n
                )
                for n in self.out.nodes
            ]

    def op(self, op_type: str, *operands: Any, name: str = "", **attrs: Any) -> str:
        """Add an ONNX operator; return its result, called ``name`` if free."""
        return self.many(op_type, 1, *operands, name=name, **attrs)[0]

    def many(
        self, op_type: str, count: int, *operands: Any, name: str = "", **attrs: Any
    ) -> list[str]:
        """Add an operator with ``count`` results; return them."""
        names = tuple(None if x is None else self.operand(x) for x in operands)
        origin = Origin("", self.path or ROOT_SCOPE, self.classes)
        outputs = (name or op_type.lower(),) * count
        domain = "burn" if op_type in OWN else ""
        return list(self.out.node(op_type, names, outputs, attrs, origin, domain))

    def operand(self, x: Any) -> str:
        """Return a value's name, a constant for numbers, arrays unchanged."""
        if isinstance(x, str):
            return x
        array = np.asarray(x, np.int64 if np.asarray(x).dtype.kind in "iu" else None)
        if array.dtype == np.float64 and not isinstance(x, np.ndarray):
            array = array.astype(np.float32)
        return self.out.literal("number", array)

    def key(self, name: str) -> str:
        """Return the key of a weight of this module."""
        return ".".join((*self.path, name))

    def has(self, name: str) -> bool:
        """Return whether this module has a weight called ``name``."""
        return self.key(name) in self.weights

    def weight(self, name: str) -> str:
        """Return a weight of this module, ``query.weight``."""
        return self.shared(self.key(name))

    def shared(self, key: str) -> str:
        """Return the weight at the full key ``key``."""
        if key not in self.out.constants:
            self._store(key, self.weights.array(key))
        return key

    def _store(self, key: str, array: Array) -> None:
        self.out.constants[key] = array
        self.out.names.add(key)

    def constant(self, name: str, array: Array) -> str:
        """Store an array of this module that is not in the state dict."""
        key = self.key(name)
        self._store(key, array)
        self.weights.ignore(key)
        return key

    def shape(self, name: str) -> tuple[int, ...]:
        """Return the shape of a weight of this module.

        Raises:
            InvalidModel: the weight has no elements or rank 0.
        """
        shape = self.weights.shape(self.key(name))
        if 0 in shape or not shape:
            raise InvalidModel(
                f"weight {shown(self.key(name))}: expected extents, got {list(shape)}"
            )
        return shape

    def count(self, name: str) -> int:
        """Return the number of modules in the list ``name`` of this module."""
        return self.weights.count(self.key(name))

    def model(self, *outputs: str, **named: str) -> RawModel:
        """Return the finished model; ``named`` are outputs with their names.

        Raises:
            NotClaimed: some weights are not used.
        """
        for name, value in named.items():
            outputs = (*outputs, self.op("Identity", value, name=name))
        self.weights.check_used()
        nodes, constants = tuple(self.out.nodes), self.out.constants
        graph = RawGraph(
            *("main", self.inputs, outputs, nodes, constants, self.defaults)
        )
        return RawModel(graph, OPSETS, PRODUCER, tuple(self.notes))

    # Layers

    def linear(self, name: str, x: str, output: str = "") -> str:
        """Apply ``nn.Linear`` called ``name``, with a bias if there is one."""
        with self.module(name, "Linear"):
            bias = self.weight("bias") if self.has("bias") else None
            operands = (x, self.weight("weight"), bias)
            return self.op("Linear", *operands, name=output)

    def embedding(self, name: str, indices: str) -> str:
        """Apply ``nn.Embedding`` called ``name``."""
        with self.module(name, "Embedding"):
            return self.op("Gather", self.weight("weight"), indices)

    def layer_norm(self, name: str, x: str, eps: float) -> str:
        """Apply ``nn.LayerNorm`` called ``name``, over the last axis."""
        with self.module(name, "LayerNorm"):
            bias = self.weight("bias") if self.has("bias") else None
            operands = (x, self.weight("weight"), bias)
            return self.op("LayerNormalization", *operands, epsilon=eps, axis=-1)

    def rms_norm(self, name: str, x: str, eps: float) -> str:
        """Apply ``nn.RMSNorm`` called ``name``, over the last axis."""
        with self.module(name, "RMSNorm"):
            scale = self.weight("weight")
            return self.op("RMSNormalization", x, scale, epsilon=eps, axis=-1)

    def batch_norm(self, name: str, x: str, eps: float = 1e-5) -> str:
        """Apply ``nn.BatchNorm`` called ``name``, with its statistics."""
        with self.module(name, "BatchNorm2d"):
            names = ("weight", "bias", "running_mean", "running_var")
            operands = [self.weight(part) for part in names]
            self.weights.ignore(self.key("num_batches_tracked"))
            return self.op("BatchNormalization", x, *operands, epsilon=eps)

    def conv(
        self,
        name: str,
        x: str,
        stride: int = 1,
        padding: int | None = None,
        groups: int = 1,
        dilation: int = 1,
    ) -> str:
        """Apply ``nn.Conv`` called ``name``; default padding keeps the extents."""
        with self.module(name, "Conv2d"):
            kernel = self.shape("weight")[2:]
            pads = [dilation * (k // 2) if padding is None else padding for k in kernel]
            bias = self.weight("bias") if self.has("bias") else None
            return self.op(
                "Conv",
                *(x, self.weight("weight"), bias),
                strides=(stride,) * len(kernel),
                pads=(*pads, *pads),
                dilations=(dilation,) * len(kernel),
                group=groups,
            )

    # Frequent operators

    def add(self, a: str, b: Any) -> str:
        """Return ``a + b``."""
        return self.op("Add", a, b)

    def heads(self, x: str, count: int, name: str = "") -> str:
        """Return ``[batch, length, hidden]`` split into heads and transposed."""
        split = self.op("Reshape", x, [0, 0, count, -1])
        return self.op("Transpose", split, perm=(0, 2, 1, 3), name=name)

    def merged(self, x: str) -> str:
        """Return ``[batch, heads, length, size]`` with the heads merged."""
        moved = self.op("Transpose", x, perm=(0, 2, 1, 3))
        return self.op("Reshape", moved, [0, 0, -1])

    def attention(
        self,
        query: str,
        key: str,
        value: str,
        mask: str | None = None,
        scale: float | None = None,
        causal: bool = False,
        softcap: float | None = None,
    ) -> str:
        """Apply attention; ``mask`` is bool, or a term to add."""
        return self.op(
            "Attention",
            *(query, key, value, mask),
            is_causal=int(causal),
            scale=scale,
            softcap=softcap or None,
        )

    def activation(self, name: str, x: str) -> str:
        """Apply the activation that Hugging Face and PyTorch call ``name``.

        Raises:
            UnsupportedModel: there is none of this name.
        """
        return _activation(self, name, x)

    def slice(self, x: str, axis: int, start: int, end: Any) -> str:
        """Return ``x`` from ``start`` to ``end`` of an axis."""
        ends = end if isinstance(end, str) else [end]
        return self.op("Slice", x, [start], ends, [axis])

    def extent(self, x: str, axis: int) -> str:
        """Return the extent of an axis, as a vector of one element."""
        return self.op("Shape", x, start=axis, end=axis + 1)

    def positions(self, x: str, axis: int = 1) -> str:
        """Return ``0, 1, 2, ...`` along an axis of ``x``."""
        length = self.op("Squeeze", self.extent(x, axis), [0])
        return self.op("Range", 0, length, 1, name="positions")

    def patches(self, layer: str, image: str, size: int) -> str:
        """Return patches of images ``[batch, count, features]``, by a convolution."""
        grid = self.conv(layer, image, stride=size, padding=0)
        rows = self.op("Reshape", grid, [0, 0, -1])
        return self.op("Transpose", rows, perm=(0, 2, 1), name="patches")

    def after_token(self, key: str, rows: str) -> str:
        """Return the rows ``[batch, length, features]`` after a stored one."""
        shape = self.op("Concat", self.extent(rows, 0), [1, 1], axis=0)
        token = self.op("Expand", self.weight(key), shape)
        return self.op("Concat", token, rows, axis=1)

    def padding_mask(self, mask: str) -> str:
        """Return a ``[batch, length]`` mask as bool ``[batch, 1, 1, length]``."""
        flags = self.op("Cast", mask, to=9)
        return self.op("Unsqueeze", flags, [1, 2], name="mask")


def _activation(w: RecipeWriter, name: str, x: str) -> str:
    from burn_ir import UnsupportedModel

    if name in ("gelu", "gelu_python"):
        return w.op("Gelu", x)
    if name in ("gelu_new", "gelu_pytorch_tanh", "gelu_fast"):
        return w.op("Gelu", x, approximate="tanh")
    if name in ("silu", "swish"):
        return w.op("Mul", x, w.op("Sigmoid", x))
    if name == "quick_gelu":
        return w.op("Mul", x, w.op("Sigmoid", w.op("Mul", x, 1.702)))
    simple = {
        "relu": "Relu",
        "tanh": "Tanh",
        "sigmoid": "Sigmoid",
        "mish": "Mish",
        "hardswish": "HardSwish",
        "softplus": "Softplus",
        "elu": "Elu",
        "leaky_relu": "LeakyRelu",
    }
    if name not in simple:
        raise UnsupportedModel(f"expected a known activation, got {name!r}")
    return w.op(simple[name], x)
