"""Recognition of weights that belong to consecutive numbered layers."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

from burn_import.frontends.checkpoints import Checkpoint
from burn_import.frontends.state_dicts.key_tree import Node, tree_of
from burn_import.frontends.state_dicts.layer_inference import Flow, find_layer
from burn_ir.op import Layer

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
