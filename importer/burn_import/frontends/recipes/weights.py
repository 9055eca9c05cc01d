"""Weights of a state dict, with a record of those that a recipe has used."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from burn.dtypes import DType, bfloat16, float16, float32, name_of
from burn.record.errors import shown
from burn_import.frontends.checkpoints import Checkpoint
from burn_import.frontends.checkpoints.checkpoint import LazyTensor
from burn_import.frontends.recipes.config import NotClaimed
from burn_import.frontends.state_dicts.key_tree import Node, tree_of
from burn_import.frontends.state_dicts.layer_inference import Flow, find_layer
from burn_ir import InvalidModel
from burn_ir.op import Layer
from burn_ir.types import Array

CONVOLUTIONS = ("Conv1d", "Conv2d", "Conv3d")
BATCH_NORMS = ("BatchNorm1d", "BatchNorm2d", "BatchNorm3d")
_KNOWN = frozenset({"Linear", "LayerNorm", "PReLU", *CONVOLUTIONS, *BATCH_NORMS})


@dataclass(frozen=True)
class Step:
    """A layer with its path, and the number of skipped indices before it (``gap``).

    ``first`` is whether it is the first of its list.
    """

    layer: Layer
    path: str
    gap: int
    first: bool

    @property
    def is_conv(self) -> bool:
        return self.layer.name in CONVOLUTIONS


def steps_of(checkpoint: Checkpoint) -> list[Step]:
    """Return the numbered layers of weights, in order; [] if there are others.

    The weights are one list, or a list of convolutions followed by one of linear
    layers.
    """
    items = [(key, tensor.dtype, tensor.shape) for key, tensor in checkpoint.items()]
    root = tree_of(items)
    lists = [root] if root.listed else list(root.children.values())
    if root.tensors or not lists or not all(node.listed for node in lists):
        return []
    if any(stored.key != key for stored, key in root.stored()):
        return []
    runs = [_steps(node) for node in lists]
    if not all(runs):
        return []
    runs.sort(key=lambda steps: not any(step.is_conv for step in steps))
    steps = [step for part in runs for step in part]
    if len(runs) > 2 or (len(runs) == 2 and not _is_conv_then_linear(*runs)):
        return []
    return steps if _are_linked(steps) else []


def _steps(node: Node) -> list[Step]:
    """Return the layers of a list; [] if something else is in it."""
    flow, last, steps = Flow(), -1, []
    for number in sorted(map(int, node.children)):
        child = node.children[str(number)]
        layer = find_layer(child, flow)
        if layer is None or layer.name not in _KNOWN:
            return []
        if layer.options.get("affine") is False:
            return []
        path = ".".join(child.path)
        steps.append(Step(layer, path, number - last - 1, last < 0))
        last = number
    return steps


def _is_conv_then_linear(before: list[Step], after: list[Step]) -> bool:
    """Return whether ``before`` ends with a convolution and ``after`` has none."""
    return before[-1].layer.name != "Linear" and not any(s.is_conv for s in after)


def _are_linked(steps: list[Step]) -> bool:
    """Return whether each layer's inputs match the outputs of the one before."""
    sized = [s.layer for s in steps if s.layer.name == "Linear" or s.is_conv]
    for before, after in pairwise(sized):
        features, inputs = before.args[1], after.args[0]
        flattened = after.name == "Linear" and before.name != "Linear"
        if inputs % features if flattened else inputs != features:
            return False
        if before.name == "Linear" and after.name != "Linear":
            return False
    return bool(sized) and steps[0].layer is sized[0]


#: Floating dtypes that are converted to float32 exactly, the dtype of layers.
NARROW = (bfloat16, float16)
#: Names of a norm's parameters in the first versions of BERT.
_OLD = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}


class Weights:
    """Tensors by key, read on demand; narrower floats become float32.

    ``used`` has the keys that were read. Keys of old versions are replaced by current
    ones.
    """

    def __init__(self, tensors: Mapping[str, LazyTensor]) -> None:
        self.tensors = {_current_key(key): tensor for key, tensor in tensors.items()}
        self.used: set[str] = set()
        self._counts = _count_modules(self.tensors)

    def __contains__(self, key: str) -> bool:
        return key in self.tensors

    def array(self, key: str) -> Array:
        """Return the tensor at ``key``.

        Raises:
            InvalidModel: the key is missing, or the tensor is empty.
        """
        self.used.add(key)
        tensor = self._tensor(key)
        if 0 in tensor.shape:
            form = f"shape {list(tensor.shape)}"
            raise InvalidModel(f"weight {shown(key)}: expected elements, got {form}")
        narrow = tensor.dtype in NARROW
        return tensor.array().astype(np.float32) if narrow else tensor.array()

    @property
    def notes(self) -> tuple[str, ...]:
        """A sentence about weights that were widened, if any."""
        used = {t.dtype for key, t in self.tensors.items() if key in self.used}
        names = " and ".join(name_of(dtype) for dtype in NARROW if dtype in used)
        note = f"The file has weights of {names}; they are float32 here, exactly."
        return (note,)[: len(names)]

    def shape(self, key: str) -> tuple[int, ...]:
        """Return the shape of the tensor at ``key``."""
        return self._tensor(key).shape

    def dtype(self, key: str) -> DType:
        """Return the dtype of the array at ``key``."""
        dtype = self._tensor(key).dtype
        return float32 if dtype in NARROW else dtype

    def _tensor(self, key: str) -> LazyTensor:
        if key not in self.tensors:
            raise NotClaimed(f"expected a weight {shown(key)}, found none")
        return self.tensors[key]

    def count(self, prefix: str) -> int:
        """Return the number of numbered modules below ``prefix``."""
        return self._counts.get(prefix, 0)

    def ignore(self, *keys: str) -> None:
        """Mark weights as used that the model computes itself."""
        self.used.update(keys)

    def check_used(self) -> None:
        """Check that every weight was used.

        Raises:
            NotClaimed: lists the unused weights.
        """
        unused = [key for key in self.tensors if key not in self.used]
        if unused:
            names = ", ".join(shown(key) for key in unused[:_MOST])
            more = f" and {len(unused) - _MOST} more" if len(unused) > _MOST else ""
            raise NotClaimed(f"weights that the architecture lacks: {names}{more}")


_MOST = 8


def _current_key(key: str) -> str:
    old = next((end for end in _OLD if key.endswith(end)), "")
    return key.removesuffix(old) + _OLD[old] if old else key


def _count_modules(keys: Iterable[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for key in keys:
        segments = key.split(".")
        for index, segment in enumerate(segments):
            if segment.isdecimal() and len(segment) < _MOST:
                prefix = ".".join(segments[:index])
                counts[prefix] = max(counts.get(prefix, 0), int(segment) + 1)
    return counts
