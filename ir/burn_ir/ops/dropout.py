"""Dropout: the identity in inference, random in training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from burn import dtypes, ops
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.attention import Attention
from burn_ir.ops.functions import expect_float
from burn_ir.ops.options import non_default, shortest
from burn_ir.ops.random import first_state
from burn_ir.static import static
from burn_ir.upgrade import Draft

#: Classes of ``nn`` that drop elements, or whole channels, in training.
DROPOUTS = ("Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout")


@operator
class Dropout(Op, onnx="Dropout", versions=(1, 6, 7, 10, 12, 13, 22)):
    """Active if ``training_mode`` is true; without it, the file is for inference.

    With a ``seed`` it draws the mask of the standard's reference implementation in
    every call. Without one, it is a layer with a random state.
    """

    deterministic = False

    seed: int | None = None
    results: int = 1

    def infer(
        self, x: Type, ratio: Type | None = None, training_mode: Type | None = None
    ) -> tuple[Type, ...]:
        rate = None if ratio is None or ratio.known is None else ratio.known
        if rate is not None and rate.size != 1:
            raise InvalidOperand(f"expected a scalar ratio, got {rate.size} numbers")
        if rate is not None and not 0.0 <= float(rate.item()) <= 1.0:
            raise InvalidOperand(f"expected a ratio in [0, 1], got {rate.item()}")
        return x.forget(), x.with_dtype(dtypes.bool_)

    def lower(
        self, x: Value, ratio: Value = None, training_mode: Value = None
    ) -> Value:
        mode = _scalar(training_mode, False)
        if mode is False:
            return self._without_dropout(x)
        p = _scalar(ratio, 0.5)
        rest: tuple[Any, ...] = () if mode is True else (mode,)
        if self.seed is not None:
            results = ops.dropout_by_seed(x, p, *rest, seed=self.seed)
        else:
            results = ops.dropout_with_mask(x, first_state(None), p, *rest)
        return results[0] if self.results == 1 else (results[0], results[1])

    def _without_dropout(self, x: Value) -> Value:
        if self.results == 1:
            return x
        return x, ops.ones_like(x, dtype=dtypes.bool_)

    def layer(
        self, x: Type, ratio: Type | None = None, training_mode: Type | None = None
    ) -> Layer | None:
        if self.seed is not None or training_mode is None:
            return None
        mode = training_mode.known
        if mode is not None and not mode.any():
            return None
        options: dict[str, Any] = {"mask": True} if self.results > 1 else {}
        if ratio is not None and ratio.known is None:
            return Layer("DynamicDropout", (), options, {}, (0, 2, 1))
        p = 0.5 if ratio is None or ratio.known is None else ratio.known.item()
        args = () if p == 0.5 else (shortest(p),)
        return Layer(
            "DynamicDropout", args, options, {}, (0, 2) if mode is None else (0,)
        )


@operator
class TrackedDropout(Op, onnx="Dropout", versions=(1,), domain="burn"):
    """Dropout of a PyTorch module, as a layer that is active in training.

    ``module`` is its class. It is ``restored`` if the program is for inference and does
    not apply it.
    """

    deterministic = False

    ratio: float = 0.5
    module: str = "Dropout"
    restored: int = 0

    def infer(self, x: Type) -> Type:
        if self.module not in DROPOUTS:
            raise InvalidOperand(f"expected a module of dropout, got {self.module!r}")
        if not 0.0 <= self.ratio <= 1.0:
            raise InvalidOperand(f"expected a ratio in [0, 1], got {self.ratio}")
        return expect_float(x).forget()

    def lower(self, x: Value) -> Value:
        return x

    def layer(self, x: Type) -> Layer | None:
        args = () if self.ratio == 0.5 else (shortest(self.ratio),)
        return Layer(self.module, args, {}, {})


@operator
class AttentionWithDropout(Attention, onnx="Attention", versions=(1,), domain="burn"):
    """Attention whose weights are dropped in training, by the layer of this name."""

    deterministic = False

    dropout: float = 0.5

    def infer(
        self, query: Type, key: Type, value: Type, *others: Type | None
    ) -> tuple[Type, ...]:
        if not 0.0 <= self.dropout <= 1.0:
            raise InvalidOperand(f"expected dropout in [0, 1], got {self.dropout}")
        if len(others) > 1 or self.results > 1 or self.softmax_precision is not None:
            raise InvalidOperand("expected a query, a key, a value and a mask alone")
        return super().infer(query, key, value, *others)

    def layer(
        self, query: Type, key: Type, value: Type, mask: Type | None = None
    ) -> Layer | None:
        window = (self.left_window_size, self.right_window_size)
        options = non_default(
            scale=(self.scale, None),
            softcap=(self.softcap, 0.0),
            causal=(bool(self.is_causal), False),
            window=(window, (-1, -1)),
        )
        rate = {"dropout": shortest(self.dropout)}
        data = (0, 1, 2) if mask is None else (0, 1, 2, 3)
        return Layer("Attention", (), rate | options, {}, data)


def _scalar(operand: Value, default: Any) -> Any:
    """Return the scalar value of an operand, or the operand if it is unknown."""
    if operand is None:
        return default
    try:
        item = static(operand).item()
    except Undecided:
        return operand
    return shortest(item) if isinstance(default, float) else bool(item)


@Dropout.upgrade(7)
def mask_of_numbers(draft: Draft) -> Draft:
    """Upgrade: before 10, the mask had the dtype of the data.

    The ratio has no effect in inference.
    """
    return _numeric_mask(draft.with_attrs("ratio"))


@Dropout.upgrade(10)
def for_inference(draft: Draft) -> Draft:
    """Upgrade: before 12, the ratio was an attribute, without a training mode."""
    return draft.with_attrs("ratio")


@Dropout.upgrade(1, 6)
def active_unless_testing(draft: Draft) -> Draft:
    """Upgrade: before 7, the operator was active unless ``is_test`` was set."""
    if draft.attrs.get("is_test", 0):
        return _numeric_mask(draft.with_attrs("is_test", "ratio"))
    dtype = draft.type(0).dtype
    ratio = np.array(draft.attrs.get("ratio", 0.5), dtype)
    draft = draft.with_input(1, draft.constant("ratio", ratio))
    draft = draft.with_input(2, draft.constant("training_mode", np.array(True)))
    return _numeric_mask(draft.with_attrs("is_test", "ratio"))


def _numeric_mask(draft: Draft) -> Draft:
    """Return the operator with its mask cast to numbers, if it is used."""
    if len(draft.node.outputs) < 2 or draft.node.outputs[1] is None:
        return draft
    out, mask = draft.node.outputs
    kept = f"{mask}.kept"
    draft.insert(replace(draft.node, outputs=(out, kept)))
    node = replace(
        draft.node,
        op_type="CastLike",
        inputs=(kept, draft.node.inputs[0]),
        outputs=(mask,),
        attrs={},
    )
    return replace(draft, node=node, types=(draft.learn(kept), draft.type(0)))
