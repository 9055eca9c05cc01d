"""Inference of a layer from the names and shapes of its parameters."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from burn import nn
from burn.dtypes import float32, int64
from burn_import.frontends.state_dicts.key_tree import Node
from burn_import.provenance.path_segments import Path
from burn_ir.op import Layer
from burn_ir.ops.options import one

Shapes = Mapping[str, tuple[int, ...]]
#: PyTorch's count of batches: no result depends on it, and no layer here has it.
COUNTER = "num_batches_tracked"
#: The uncertainty about a matrix without bias.
TABLE = "whether a matrix without bias is a table"
_GATES = {4: "LSTM", 3: "GRU", 1: "RNN"}
#: Parts of names of embedding tables, and of matrices of linear layers.
_TABLES = ("emb", "wte", "wpe", "lookup", "vocab")
_PRODUCTS = ("fc", "lin", "proj", "out", "head", "dense", "decoder", "classifier")
_NORMS = ("norm", "ln", "rms")
_TRANSPOSED_WORDS = ("transpose", "deconv", "convt", "up")
_GROUPS = (32, 16, 8, 4, 2, 1)


@dataclass
class Flow:
    """State from earlier layers: the channels and the number of spatial axes.

    ``numbered`` is whether this layer is in a list. ``conv1d_names`` has the names of
    layers with a transposed matrix, as in GPT-2's ``Conv1D``, ``tables`` the paths of
    embedding matrices in front of recurrent layers, and ``guesses`` the facts that
    shapes leave open.
    """

    channels: int = 0
    rank: int = 0
    numbered: bool = False
    conv1d_names: set[str] = field(default_factory=set)
    tables: set[Path] = field(default_factory=set)
    guesses: dict[str, None] = field(default_factory=dict)

    def guess(self, sentence: str) -> None:
        """Record an assumption that the weights cannot confirm."""
        self.guesses[sentence] = None


def find_layer(node: Node, flow: Flow) -> Layer | None:
    """Return the layer that holds exactly the tensors of ``node``; None if none does.

    Layers hold float32; other dtypes become plain parameters.
    """
    if node.children or not node.tensors:
        return None
    shapes = {}
    for name, stored in node.tensors.items():
        counts = name == COUNTER and stored.dtype == int64 and not stored.shape
        if counts and "running_mean" in node.tensors:
            continue
        if stored.dtype != float32:
            return None
        shapes[name] = stored.shape
    words = [segment.lower() for segment in node.path if not segment.isdigit()]
    flow.numbered = bool(node.path) and node.path[-1].isdigit()
    if any(0 in shape for shape in shapes.values()):
        return None
    name = words[-1] if words else ""
    if node.path in flow.tables and not any(word in name for word in _PRODUCTS):
        flow.guess(TABLE)
        return _layer("Embedding", shapes["weight"])
    for layer in _candidates(shapes, name, flow):
        if _fits(layer, shapes):
            return layer
    return None


def _fits(layer: Layer, shapes: Shapes) -> bool:
    """Return whether a layer has exactly parameters and buffers of these shapes."""
    try:
        module = getattr(nn, layer.name)(*layer.args, **layer.options)
    except ValueError:
        return False  # channels not divisible by the groups
    return {path: box.shape for path, box in module.boxes()} == dict(shapes)


def _layer(
    name: str, args: tuple[object, ...], options: Mapping[str, object] | None = None
) -> Layer:
    return Layer(name, args, options or {}, {})


def _candidates(shapes: Shapes, name: str, flow: Flow) -> Iterator[Layer]:
    yield from _recurrent(shapes, flow)
    weight = shapes.get("weight")
    if "running_mean" in shapes:
        affine = {} if weight is not None else {"affine": False}
        rank = flow.rank or 1
        if len(shapes["running_mean"]) == 1:
            yield _layer(f"BatchNorm{rank}d", shapes["running_mean"], affine)
    elif weight is not None and len(weight) == 1:
        yield from _vectors(shapes, name, flow)
    elif weight is not None and len(weight) == 2:
        yield from _matrices(shapes, name, flow)
    elif weight is not None and 3 <= len(weight) <= 5:
        yield from _convolutions(shapes, name, flow)
    if weight is not None and len(weight) > 1:
        yield _layer("LayerNorm", (weight,))


def _recurrent(shapes: Shapes, flow: Flow) -> Iterator[Layer]:
    stacked = "weight_hh_l0" in shapes
    first = "_l0" if stacked else ""
    inner, outer = (shapes.get(f"weight_{part}{first}") for part in ("hh", "ih"))
    if inner is None or outer is None or len(inner) != 2 or len(outer) != 2:
        return
    hidden = inner[1]
    kind = _GATES.get(inner[0] // max(hidden, 1), "RNN")
    args, bias = (outer[1], hidden), f"bias_ih{first}" in shapes
    options: dict[str, object] = {} if bias else {"bias": False}
    if not stacked:
        yield _layer(f"{kind}Cell", args, options)
        return
    count = sum(1 for name in shapes if name.startswith("weight_hh_l"))
    both = "weight_hh_l0_reverse" in shapes
    if count > 1 + both:
        options["num_layers"] = count // (1 + both)
    if both:
        options["bidirectional"] = True
    flow.guess("whether the batch comes first in recurrent layers")
    yield _layer(kind, args, options)


def _vectors(shapes: Shapes, name: str, flow: Flow) -> Iterator[Layer]:
    (size,) = shapes["weight"]
    if "group" in name or name.startswith("gn"):
        flow.guess("groups of GroupNorm")
        groups = next(g for g in _GROUPS if size % g == 0 and size > g or g == 1)
        yield _layer("GroupNorm", (groups, size))
    if "bias" in shapes:
        flow.guess("epsilons")
        yield _layer("LayerNorm", (size,))
    elif any(word in name for word in _NORMS):
        flow.guess("epsilons")
        yield _layer("RMSNorm", (size,))
    elif "relu" in name or "act" in name or flow.numbered:
        yield _layer("PReLU", (size,))


def _matrices(shapes: Shapes, name: str, flow: Flow) -> Iterator[Layer]:
    outer, inner = shapes["weight"]
    if "bias" not in shapes:
        if any(word in name for word in _TABLES):
            yield _layer("Embedding", (outer, inner))
            return
        flow.guess(TABLE)
        flow.channels = outer
        yield _layer("Linear", (inner, outer), {"bias": False})
        return
    transposed = _layer("Conv1D", (inner, outer))
    if name in flow.conv1d_names:
        yield transposed
    flow.channels = outer
    yield _layer("Linear", (inner, outer))
    yield transposed


def _convolutions(shapes: Shapes, name: str, flow: Flow) -> Iterator[Layer]:
    out, per_group, *kernel = shapes["weight"]
    rank, bias = len(kernel), shapes.get("bias")
    options = {"kernel_size": one(kernel), "groups": 1}
    if bias is None:
        options["bias"] = False
    flow.rank = rank
    flow.guess("strides, paddings and dilations of convolutions")
    groups = (
        flow.channels // per_group
        if per_group and flow.channels % per_group == 0
        else 1
    )
    groups = groups if groups and out % groups == 0 else 1
    plain = _layer(
        f"Conv{rank}d", (per_group * groups, out), _with_groups(options, groups)
    )
    wide = (
        bias[0] // per_group if bias and per_group and bias[0] % per_group == 0 else 1
    )
    transposed = _layer(
        f"ConvTranspose{rank}d", (out, per_group * wide), _with_groups(options, wide)
    )
    pair = (plain, transposed)
    for layer in (
        pair[::-1] if any(word in name for word in _TRANSPOSED_WORDS) else pair
    ):
        if _fits(layer, shapes):
            flow.channels = layer.args[1]
            yield layer


def _with_groups(options: Mapping[str, object], groups: int) -> dict[str, object]:
    """Return ``options`` with ``groups``, which is left out if it is 1."""
    merged = {**options, "groups": groups}
    return {k: v for k, v in merged.items() if (k, v) != ("groups", 1)}


def find_conv1d_names(root: Node) -> set[str]:
    """Return the names of layers that are ``Conv1D`` wherever shapes can decide."""
    is_conv1d: dict[str, bool] = {}
    for node in _nodes(root):
        shapes = _shapes(node)
        weight, bias = shapes.get("weight"), shapes.get("bias")
        if weight and bias and len(weight) == 2 and weight[0] != weight[1]:
            word = node.path[-1].lower() if node.path else ""
            is_conv1d[word] = is_conv1d.get(word, True) and bias == weight[1:]
    return {word for word, holds in is_conv1d.items() if holds}


def read_tables(root: Node) -> set[Path]:
    """Return the paths of embedding matrices in front of recurrent layers.

    Such a matrix has no bias, and as many columns but not as many rows as the recurrent
    layer has input features; a linear layer in front of it would have as many rows. A
    matrix that stands there and is read by something else is rare, and would usually
    have a bias. Square matrices stay linear layers. Norms in between change no extents.
    """
    tables = set()
    layers = [n for n in _nodes(root) if any(len(s) > 1 for s in _shapes(n).values())]
    for node, after in pairwise(layers):
        shapes, reader = _shapes(node), _shapes(after)
        read = reader.get("weight_ih_l0", reader.get("weight_ih"))
        alone = not node.children and shapes.keys() == {"weight"}
        if read is None or not alone or len(shapes["weight"]) != 2:
            continue
        rows, columns = shapes["weight"]
        if read[-1] == columns != rows:
            tables.add(node.path)
    return tables


def _shapes(node: Node) -> Shapes:
    return {name: stored.shape for name, stored in node.tensors.items()}


def _nodes(node: Node) -> Iterator[Node]:
    yield node
    for child in node.children.values():
        yield from _nodes(child)
