"""Conversion of onnxruntime's blocked layout ``com.microsoft.nchwc`` to plain NCHW.

When it optimizes a model for a CPU, onnxruntime stores channels of images in blocks of
8 or 16, and the weights of convolutions to match. Shapes stay those of plain images
whose channels are padded to whole blocks. This module replaces such nodes by standard
operators and reorders the weights. The file does not state the block length: it is
inferred from dimensions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from burn_ir.errors import Problem, UnsupportedModel
from burn_ir.raw import RawGraph, RawModel, RawNode
from burn_ir.types import Array

DOMAIN = "com.microsoft.nchwc"
#: Operators that are the same on plain images.
SAME = ("MaxPool", "AveragePool", "GlobalMaxPool", "GlobalAveragePool")
#: Attributes that old versions lack, with their no-op value.
IDLE = {"ceil_mode": 0, "storage_order": 0, "count_include_pad": 0}


def unblocked(model: RawModel) -> RawModel:
    """Return ``model`` without blocked channels.

    Raises:
        UnsupportedModel: the block length cannot be inferred.
    """
    if not any(node.domain == DOMAIN for node in model.graph.nodes):
        return model
    return replace(model, graph=_Unblocking(model).graph())


@dataclass
class _Unblocking:
    model: RawModel
    constants: dict[str, Array] = field(default_factory=dict)
    channels: dict[str, int | None] = field(default_factory=dict)

    def graph(self) -> RawGraph:
        graph = self.model.graph
        self.constants = dict(graph.constants)
        self.follow(graph)
        self.block = self.length(graph)
        nodes = [new for node in graph.nodes for new in self.nodes(node)]
        return replace(graph, nodes=tuple(nodes), constants=self.constants)

    def follow(self, graph: RawGraph) -> None:
        """Record the number of channels of every blocked image (None if unknown)."""
        for node in graph.nodes:
            blocked = [n for n in node.inputs if n in self.channels]
            if node.domain == DOMAIN:
                if node.op_type == "ReorderOutput":
                    continue
            elif not blocked or node.op_type == "Shape":
                continue
            channels = self.channels[blocked[0]] if blocked else None
            if node.domain == DOMAIN and node.op_type == "Conv":
                channels = int(self.weight(node).shape[0])
            elif node.op_type == "Concat":
                channels = None
            self.channels.update({n: channels for n in node.outputs if n is not None})

    def weight(self, node: RawNode) -> Array:
        name = node.inputs[1]
        if name not in self.constants:
            raise _refused(node, "expected a stored weight")
        return self.constants[name]

    def length(self, graph: RawGraph) -> int:
        """Return the number of channels in a block."""
        lengths = {n for node in graph.nodes for n in self.evidence(node)}
        if len(lengths) != 1:
            got = "8 and 16" if lengths else "8 or 16, which the extents leave open"
            raise _refused(
                next(n for n in graph.nodes if n.domain == DOMAIN),
                f"expected channels in blocks of one length, got {got}; have "
                "onnxruntime optimize the model at the level 'extended' instead",
            )
        return lengths.pop()

    def evidence(self, node: RawNode) -> Iterator[int]:
        """Yield the block lengths that a node implies."""
        if node.domain != DOMAIN:
            return
        if node.op_type == "ReorderOutput":
            padded = self.channels.get(node.inputs[0] or "")
            channels = int(node.attrs.get("channels", 0))
            if padded is not None and padded != -(-channels // 8) * 8:
                yield 16
        if node.op_type == "Conv":
            outer, inner = self.weight(node).shape[:2]
            blocked = node.inputs[0] in self.channels
            if outer % 16:
                yield 8
            if node.attrs.get("group", 1) == 1 and inner % 16 and blocked:
                yield 8
            if 8 <= inner < 16 and not blocked:
                yield 16
            elif outer % 16 == 0:
                yield from self.filling(node)

    def filling(self, node: RawNode) -> Iterator[int]:
        """Yield the block length for which the last channel is zero padding."""
        zeros = []
        for block in (8, 16):
            if (
                not self.in_blocks(node, block)
                or self.weight(node).shape[1] % block == 0
            ):
                last = _plain_weight(
                    self.weight(node), block, self.in_blocks(node, block)
                )
                zeros.append(block if not last[-1].any() else 0)
        if len(zeros) == 2 and 0 in zeros and any(zeros):
            yield max(zeros)

    def nodes(self, node: RawNode) -> Iterator[RawNode]:
        """Yield the standard nodes that replace ``node``."""
        if node.domain != DOMAIN:
            yield node
        elif node.op_type in SAME:
            yield replace(node, domain="", attrs=_without_defaults(node.attrs))
        elif node.op_type == "Conv":
            yield from self.conv(node)
        elif node.op_type == "ReorderInput":
            yield from self.reorder_input(node)
        elif node.op_type == "ReorderOutput":
            yield from self.reorder_output(node)
        elif node.op_type == "Upsample":
            yield self.upsample(node)
        else:
            yield node  # reported as unsupported later

    def conv(self, node: RawNode) -> Iterator[RawNode]:
        """Yield a convolution, an optional sum and an optional activation."""
        attrs = dict(node.attrs)
        activation = attrs.pop("activation", "")
        params = attrs.pop("activation_params", ())
        ordinary = _plain_weight(
            self.weight(node), self.block, self.in_blocks(node, self.block)
        )
        weight = self.store(f"{node.inputs[1]}_ordinary", ordinary)
        data = (node.inputs[0], weight, *node.inputs[2:3])
        steps = [("Conv", data, attrs)]
        if len(node.inputs) > 3 and node.inputs[3] is not None:
            steps.append(("Add", ("", node.inputs[3]), {}))
        if activation:
            steps.append((activation, ("",), {}))
        last = data[0]
        for index, (op_type, inputs, own_attrs) in enumerate(steps):
            final = index == len(steps) - 1
            out = node.outputs[0] if final else f"{node.outputs[0]}.{op_type}"
            names = tuple(last if n == "" else n for n in inputs)
            step = replace(
                node, domain="", op_type=op_type, inputs=names, outputs=(out,)
            )
            if op_type == activation:
                own_attrs, more = self.parameters(activation, params)
                step = replace(step, inputs=names + more)
            yield replace(step, attrs=own_attrs)
            last = out

    def in_blocks(self, node: RawNode, block: int) -> bool:
        """Return whether the input channels of a weight are blocked, too."""
        inner = self.weight(node).shape[1]
        return int(inner) >= block

    def parameters(
        self, activation: str, params: tuple[float, ...]
    ) -> tuple[dict[str, Any], tuple[str, ...]]:
        """Return the attributes and the further operands of an activation."""
        names = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta")}
        if activation != "Clip":
            return dict(zip(names.get(activation, ()), params, strict=False)), ()
        if self.model.opsets.get("", 1) < 11:
            return dict(zip(("min", "max"), params, strict=True)), ()
        bounds = [np.array(p, np.float32) for p in params]
        return {}, tuple(self.store(f"clip.{p}", p) for p in bounds)

    def store(self, name: str, array: Array) -> str:
        self.constants[name] = array
        return name

    def reorder_input(self, node: RawNode) -> Iterator[RawNode]:
        """Yield a plain image, with channels padded to whole blocks."""
        attrs = {"block": self.block}
        if not node.attrs.get("channels_last", 0):
            yield replace(node, attrs=attrs)
            return
        first = f"{node.outputs[0]}.first"
        yield _transposed(node, node.inputs[0], first, (0, 3, 1, 2))
        yield replace(node, attrs=attrs, inputs=(first,))

    def reorder_output(self, node: RawNode) -> Iterator[RawNode]:
        """Yield a plain image, without the padding channels."""
        source, out = node.inputs[0], node.outputs[0]
        count = int(node.attrs.get("channels", 0))
        last = bool(node.attrs.get("channels_last", 0))
        if self.channels.get(source or "") != count:
            name = f"{out}.first" if last else out
            index = self.store(f"{out}.channels", np.arange(count))
            yield replace(
                node,
                domain="",
                op_type="Gather",
                attrs={"axis": 1},
                inputs=(source, index),
                outputs=(name,),
            )
            source = name
        elif not last:
            yield replace(node, domain="", op_type="Identity", attrs={})
        if last:
            yield _transposed(node, source, out, (0, 2, 3, 1))

    def upsample(self, node: RawNode) -> RawNode:
        """Return a resize by integer factors."""
        factors = np.asarray(node.attrs.get("scales", ()), np.float32)
        scales = self.store(f"{node.outputs[0]}.scales", factors)
        mode = node.attrs.get("coordinate_transformation_mode", "asymmetric")
        attrs = {
            "mode": node.attrs.get("mode", "nearest"),
            "coordinate_transformation_mode": mode,
            "nearest_mode": "floor",
        }
        inputs = (node.inputs[0], None, scales)
        return replace(node, domain="", op_type="Resize", attrs=attrs, inputs=inputs)


def _plain_weight(weight: Array, block: int, in_blocks: bool) -> Array:
    """Return a blocked weight in the order [O, I, *kernel].

    The index in the block of output channels is the last axis; with ``in_blocks``,
    that of input channels is before it.
    """
    outer, inner, *kernel = weight.shape
    if not in_blocks:
        parts = weight.reshape(outer // block, inner, *kernel, block)
        return np.moveaxis(parts, -1, 1).reshape(weight.shape)
    counts = outer // block, inner // block
    parts = weight.reshape(*counts, *kernel, block, block)
    parts = np.moveaxis(np.moveaxis(parts, -1, 1), -1, 3)
    return parts.reshape(weight.shape)


def _transposed(
    node: RawNode, source: str | None, out: str | None, perm: tuple[int, ...]
) -> RawNode:
    return replace(
        node,
        domain="",
        op_type="Transpose",
        attrs={"perm": perm},
        inputs=(source,),
        outputs=(out,),
    )


def _without_defaults(attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes without those that have no effect."""
    ones = {"dilations"}
    return {
        name: value
        for name, value in attrs.items()
        if value != IDLE.get(name) and not (name in ones and set(value) == {1})
    }


def _refused(node: RawNode, message: str) -> UnsupportedModel:
    return UnsupportedModel([Problem(message, node.name, node.op_type, 1)])
