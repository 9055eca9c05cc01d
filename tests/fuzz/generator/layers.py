"""Layers as exporters write them, of which :mod:`tests.fuzz.generator.blocks` is made.

A :class:`Layers` collects the nodes of one module: it knows the path of the module, the
version of ONNX, and how the exporter that it imitates names values and weights.
"""

from __future__ import annotations

import random
import zlib
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from onnx import NodeProto, helper

from tests.fuzz.generator.builder import Builder
from tests.fuzz.generator.values import Array

#: How names are given: PyTorch's exporter with scopes, keys of weights alone, no names.
STYLES = ("scopes", "keys", "none")


@dataclass
class Layers:
    """The nodes of one module under construction.

    ``path`` is the scope of its nodes (``/layers.0/attn``) and ``owner`` the path of
    its weights (``layers.0.attn``), which is another module's if both share them.
    """

    builder: Builder
    rng: random.Random
    style: str
    path: str
    owner: str
    nodes: list[NodeProto] = field(default_factory=list)

    def inside(self, name: str) -> Layers:
        """The module ``name`` of this one; it adds to the same nodes."""
        return replace(
            self, path=f"{self.path}/{name}", owner=_joined(self.owner, name)
        )

    def op(self, op: str, *inputs: str, **attrs: Any) -> str:
        """The result of a new node."""
        return self.ops(op, inputs, 1, **attrs)[0]

    def ops(self, op: str, inputs: Any, outputs: int, **attrs: Any) -> list[str]:
        """The results of a new node."""
        number = self.builder.shared.fresh("")
        name = f"{self.path}/{op}_{number}" if self.style == "scopes" else ""
        if self.style == "scopes":
            results = [f"{name}_output_{i}" for i in range(outputs)]
        else:
            results = [f"{op.lower()}_{number}_{i}" for i in range(outputs)]
        node = helper.make_node(op, list(inputs), results, name=name, **attrs)
        self.nodes.append(node)
        return results

    def const(self, value: Any, dtype: Any = np.float32) -> str:
        """A constant without a name of its own."""
        array = np.asarray(value, dtype)
        if self.rng.random() < 0.5 and self.builder.opset >= 9:
            tensor = helper.make_tensor(
                "value",
                helper.np_dtype_to_tensor_dtype(array.dtype),
                array.shape,
                array.tobytes(),
                raw=True,
            )
            return self.op("Constant", value=tensor)
        name = self.builder.shared.fresh("onnx::c")
        self.builder.constants[name] = array
        return name

    def ints(self, *values: int) -> str:
        """A constant vector of int64."""
        return self.const(values, np.int64)

    def weight(self, name: str, *shape: int, around: float = 0.0) -> str:
        """A weight under its key; that of ``owner`` if it has been made before."""
        fan = shape[-1] if len(shape) > 1 else 4
        if len(shape) > 2:
            fan = int(np.prod(shape[1:]))
        noise = self.builder.rng.standard_normal(shape) / np.sqrt(fan)
        return self.stored(name, (around + 0.7 * noise).astype(np.float32))

    def stored(self, name: str, array: Array) -> str:
        """``array`` under its key; the one of the owner if there is one."""
        key = _joined(self.owner, name)
        if self.style == "none":
            key = f"t{zlib.crc32(key.encode())}"
        self.builder.constants.setdefault(key, array)
        return key

    def along(self, op: str, x: str, axes: tuple[int, ...], since: int = 13) -> str:
        """A node whose axes are an attribute before version ``since``."""
        attrs: dict[str, Any] = {"keepdims": 1} if op.startswith("Reduce") else {}
        if self.builder.opset < since:
            return self.op(op, x, axes=list(axes), **attrs)
        return self.op(op, x, self.ints(*axes), **attrs)

    def mean(self, x: str) -> str:
        """The mean over the last axis, which stays."""
        return self.along("ReduceMean", x, (-1,), 18)

    def cut(self, x: str, start: str | int, end: str | int, axis: int) -> str:
        """A slice along one axis; bounds are numbers or names of vectors."""
        bounds = [n if isinstance(n, str) else self.ints(n) for n in (start, end)]
        return self.op("Slice", x, *bounds, self.ints(axis))

    def extent(self, x: str, axis: int) -> str:
        """One extent of ``x`` as a vector of one element."""
        shape = self.op("Shape", x)
        if self.rng.random() < 0.5:
            return self.op("Gather", shape, self.ints(axis), axis=0)
        scalar = self.op("Gather", shape, self.const(axis, np.int64), axis=0)
        return self.along("Unsqueeze", scalar, (0,))

    def reshape(self, x: str, like: str, *dims: int | None) -> str:
        """``x`` with other extents; None is the one that ``like`` has at the place."""
        if self.rng.random() < 0.3 and dims.count(None) <= 1 and -1 not in dims:
            return self.op("Reshape", x, self.ints(*(d or -1 for d in dims)))
        parts = [
            self.extent(like, index) if dim is None else self.ints(dim)
            for index, dim in enumerate(dims)
        ]
        return self.op("Reshape", x, self.op("Concat", *parts, axis=0))


def _joined(*parts: str) -> str:
    return ".".join(part for part in parts if part)
