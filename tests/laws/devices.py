"""What an operator computes on a device: its results and its gradients."""

from typing import Any

import numpy as np

import burn
from burn import Tensor, dtypes
from burn.backend.autodiff import Autodiff
from burn_ir import evaluate
from tests.laws import models
from tests.strategies import Example


def results(graph: Any, example: Example, device: Any) -> list[Any]:
    """The results as arrays, then the gradients of their sum."""
    tape = Autodiff(device)
    operands = [
        models.mapped(lambda t: tape_leaf(t, tape), x)
        for x in models.operands(example, stored=False)
    ]
    values = leaves_of(evaluate(graph, operands))
    arrays = [value.numpy() for value in values]
    floats = [v for v in values if dtypes.is_float(v.dtype) and v.node is not None]
    if not floats or not example.smooth:
        return arrays
    total: Any = 0.0
    for value in floats:
        total = total + (value.cast(dtypes.float32) * 0.5).sum()
    grads = total.backward()
    sources = leaves_of(operands)
    return arrays + [grads[x].numpy() for x in sources if x in grads]


def tape_leaf(tensor: Tensor, tape: Any) -> Tensor:
    """``tensor`` on the device of ``tape``, a leaf if it has a gradient."""
    moved = burn.from_numpy(np.array(tensor.numpy()), tape)
    return moved.require_grad() if dtypes.is_float(moved.dtype) else moved


def leaves_of(values: Any) -> list[Any]:
    """The tensors in lists, maps and optional values."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, dict):
        values = list(values.values())
    if isinstance(values, list | tuple):
        return [leaf for value in values for leaf in leaves_of(value)]
    return []
