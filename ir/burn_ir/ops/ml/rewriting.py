"""Rewriting of operators with weights in attributes to operators with operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from burn import dtypes
from burn_ir.errors import InvalidOperand
from burn_ir.op import Type
from burn_ir.types import Array
from burn_ir.upgrade import Draft

POST_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
FLOAT32 = 1  # in ONNX's TensorProto.DataType


class Replaced:
    """Operators that are rewritten to other operators before type inference."""

    def infer(self, *inputs: Type | None) -> Type:
        raise InvalidOperand("expected the operators that stand for it")

    def lower(self, *inputs: Any) -> Any:
        raise InvalidOperand("expected the operators that stand for it")


@dataclass(frozen=True)
class Step:
    """One operator of a chain; its first operand is the previous result."""

    op_type: str
    domain: str = ""
    operands: tuple[str | None, ...] = ()
    attrs: dict[str, Any] = field(default_factory=dict)


def burn_step(op_type: str, *operands: str | None, **attrs: Any) -> Step:
    """Return a step with an operator of the domain ``burn``."""
    return Step(op_type, "burn", operands, attrs)


def onnx(op_type: str, *operands: str | None, **attrs: Any) -> Step:
    """Return a step with an operator of ONNX."""
    return Step(op_type, "", operands, attrs)


def chain(draft: Draft, x: str | None, steps: Sequence[Step]) -> Draft:
    """Return ``draft`` as the last of ``steps``, the first of which reads ``x``."""
    for step in steps[:-1]:
        x = insert_step(draft, x, step)
    inputs = (x, *steps[-1].operands)
    types = tuple(None if name is None else draft.learn(name) for name in inputs)
    return replace(draft, node=_node(draft, x, steps[-1]), types=types)


def insert_step(draft: Draft, x: str | None, step: Step) -> str:
    """Insert ``step`` before ``draft``; return the name of its first output."""
    outputs = (f"{draft.node.outputs[0]}.{step.op_type.lower()}",)
    return draft.insert(replace(_node(draft, x, step), outputs=outputs))


def _node(draft: Draft, x: str | None, step: Step) -> Any:
    return replace(
        draft.node,
        op_type=step.op_type,
        domain=step.domain,
        inputs=(x, *step.operands),
        attrs=step.attrs,
    )


def matrix(draft: Draft, dtype: Any = None) -> str | None:
    """Return the first operand as [samples, features], cast to ``dtype`` if set.

    Raises:
        InvalidOperand: it is not a vector or matrix of numbers.
    """
    x = draft.type(0)
    name = draft.node.inputs[0]
    if x.dtype == dtypes.string or dtypes.is_complex(x.dtype):
        raise InvalidOperand(f"expected numbers, got {x.name}")
    if x.shape is not None and len(x.shape) not in (1, 2):
        raise InvalidOperand(f"expected a matrix, got {x.name}")
    if dtype is not None and x.dtype != dtype:
        name = draft.before("Cast", (name,), to=FLOAT32)
    if x.shape is not None and len(x.shape) == 1:
        axes = draft.constant("axes", np.array([0]))
        name = draft.before("Unsqueeze", (name, axes))
    return name


def numbers(
    numbers: Sequence[float] | None, tensor: Array | None, name: str, dtype: Any
) -> Array | None:
    """Return an attribute that is a list of float32 or a tensor, or None.

    Raises:
        InvalidOperand: both are set.
    """
    if tensor is not None and tensor.size:
        if numbers:
            raise InvalidOperand(f"expected one of {name} and {name}_as_tensor")
        return np.asarray(tensor).reshape(-1).astype(dtype)
    # The list holds float32, even if it is compared in float64.
    return np.array(numbers, np.float32).astype(dtype) if numbers else None


def post_transform_steps(transform: str) -> list[Step]:
    """Return the steps that apply a post transform to [samples, targets].

    Raises:
        InvalidOperand: the transform does not exist.
    """
    if transform not in POST_TRANSFORMS:
        expected = ", ".join(POST_TRANSFORMS)
        raise InvalidOperand(
            f"expected post_transform in {expected}, got {transform!r}"
        )
    return (
        [] if transform == "NONE" else [burn_step("PostTransform", transform=transform)]
    )


def store_weight(draft: Draft, layer: str, name: str, array: Array) -> str:
    """Store a weight of ``layer``; return its name.

    The name of the node is part of it if it differs from that of the operator.
    """
    node = draft.node.name
    is_informative = node and not node.lower().startswith(
        draft.node.op_type.lower()[:6]
    )
    stem = node.replace(".", "_") if is_informative else layer
    return draft.store(f"{stem}_{name}", array)
