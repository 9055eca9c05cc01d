"""Comparison of a derivative by autodiff with a difference quotient."""

from __future__ import annotations

from typing import Any

import numpy as np

import burn
from burn import Autodiff, Cpu, dtypes, ops
from burn.tensor import Tensor
from burn_import.verification.errors import InputsError

#: The finite-difference step, relative to the parameters' magnitude.
_STEP = 1e-5


def derivative_error(model: Any, arrays: list[Any], seed: int = 0) -> float:
    """Return the relative error of one derivative, along a random direction.

    ``model`` and floating ``arrays`` are in float64. The function is a random
    weighting of all floating outputs; the direction is over all floating
    parameters, proportional to their magnitudes. The quotient is extrapolated from
    two steps (Richardson).

    Raises:
        InputsError: no output or no parameter is floating.
    """
    random = np.random.default_rng(seed)
    twin = model.valid().to(Autodiff(Cpu()))
    boxes = [box for _, box in twin.parameters() if dtypes.is_float(box.dtype)]
    if not boxes:
        raise InputsError("the module has no parameters to differentiate by")
    start = [box.held().numpy() for box in boxes]
    scales = [np.abs(a).mean() if a.size else 0.0 for a in start]
    turns = [
        (random.standard_normal(a.shape) * s).astype(a.dtype)
        for a, s in zip(start, scales, strict=True)
    ]
    gradients = _loss(twin, arrays, seed).backward()
    exact = sum(
        float((gradients[box].numpy().astype(np.float64) * turn).sum())
        for box, turn in zip(boxes, turns, strict=True)
        if box in gradients
    )

    def at(step: float) -> float:
        for box, first, turn in zip(boxes, start, turns, strict=True):
            box.set(
                burn.tensor((first + step * turn).astype(first.dtype)).to(box.backend)
            )
        return float(_loss(twin, arrays, seed).numpy())

    def quotient(step: float) -> float:
        return (at(step) - at(-step)) / (2 * step)

    wide, narrow = quotient(_STEP), quotient(_STEP / 2)
    numeric = (4 * narrow - wide) / 3
    return abs(exact - numeric) / max(abs(exact), abs(numeric), 1e-12)


def _loss(model: Any, arrays: list[Any], seed: int) -> Tensor:
    random = np.random.default_rng(seed + 1)
    result = model(*(burn.tensor(array) for array in arrays))
    results = result if isinstance(result, tuple) else (result,)
    total: Any = None
    for item in results:
        if not isinstance(item, Tensor) or not dtypes.is_float(item.dtype):
            continue
        weights = burn.tensor(random.standard_normal(item.shape).astype(item.dtype))
        part = ops.sum(item * weights)
        total = part if total is None else total + part
    if total is None:
        raise InputsError("the module has no output to differentiate")
    loss: Tensor = total
    return loss
