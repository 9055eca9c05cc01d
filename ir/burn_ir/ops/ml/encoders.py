"""Mappings between categories and numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from burn import dtypes, ops
from burn.dtypes import DType, float32, int64, string
from burn_ir.errors import InvalidOperand
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.ml.rewriting import Replaced, burn_step, chain
from burn_ir.types import Array
from burn_ir.upgrade import Draft


@operator
class Lookup(Op, onnx="Lookup", versions=(1,), domain="burn"):
    """The value for each element as a key; ``default`` for unknown keys."""

    default: int | float | str = 0

    def infer(self, x: Type, keys: Type, values: Type) -> Type:
        if x.dtype != keys.dtype:
            shown = dtypes.name_of(keys.dtype)
            raise InvalidOperand(f"expected elements of {shown}, got {x.name}")
        return Type(values.dtype, x.shape)

    def lower(self, x: Value, keys: Value, values: Value) -> Value:
        return ops.lookup(x, keys, values, default=self.default)


@operator
class OneHotCategories(Op, onnx="OneHotCategories", versions=(1,), domain="burn"):
    """One-hot encoding by a list of categories, along a new last axis."""

    strict: int = 0

    def infer(self, x: Type, categories: Type) -> Type:
        if (x.dtype == string) != (categories.dtype == string):
            shown = dtypes.name_of(categories.dtype)
            raise InvalidOperand(f"expected elements of {shown}, got {x.name}")
        if x.shape is None:
            return Type(float32, None)
        return Type(float32, (*x.shape, categories.dims[0]))

    def lower(self, x: Value, categories: Value) -> Value:
        if x.dtype not in (string, int64):
            x = x.cast(int64)
        options = {"strict": True} if self.strict else {}
        return ops.one_hot_encode(x, categories, **options)


@operator
class OneHotEncoder(
    Replaced, Op, onnx="OneHotEncoder", versions=(1,), domain="ai.onnx.ml"
):
    cats_int64s: tuple[int, ...] | None = None
    cats_strings: tuple[str, ...] | None = None
    zeros: int = 1

    def replaced(self, draft: Draft) -> Draft:
        if bool(self.cats_int64s) == bool(self.cats_strings):
            raise InvalidOperand("expected categories, either integers or strings")
        dtype = int64 if self.cats_int64s else string
        categories = np.array(self.cats_int64s or self.cats_strings, dtype)
        name = draft.constant("categories", categories)
        step = burn_step("OneHotCategories", name, strict=int(not self.zeros))
        return chain(draft, draft.node.inputs[0], [step])


@operator
class CategoryMapper(
    Replaced, Op, onnx="CategoryMapper", versions=(1,), domain="ai.onnx.ml"
):
    """A mapping between strings and integers, in either direction."""

    cats_int64s: tuple[int, ...] | None = None
    cats_strings: tuple[str, ...] | None = None
    default_int64: int = -1
    default_string: str = "_Unused"

    def replaced(self, draft: Draft) -> Draft:
        numbers = np.array(self.cats_int64s or (), int64)
        words = np.array(self.cats_strings or (), string)
        if draft.type(0).dtype == string:
            return looked_up(draft, words, numbers, self.default_int64)
        return looked_up(draft, numbers, words, self.default_string)


def looked_up(draft: Draft, keys: Array, values: Array, default: Any) -> Draft:
    """Return ``draft`` as a lookup in a stored table.

    Raises:
        InvalidOperand: the numbers of keys and values differ.
    """
    if len(keys) != len(values):
        raise InvalidOperand(f"expected {len(keys)} values, got {len(values)}")
    names = (draft.constant("keys", keys), draft.constant("values", values))
    step = burn_step("Lookup", *names, default=default)
    return chain(draft, draft.node.inputs[0], [step])


@operator
class LabelEncoder(
    Replaced, Op, onnx="LabelEncoder", versions=(1, 2, 4), domain="ai.onnx.ml"
):
    """A lookup; repeated keys have the last value; NaN is a valid key."""

    keys_strings: tuple[str, ...] | None = None
    keys_int64s: tuple[int, ...] | None = None
    keys_floats: tuple[float, ...] | None = None
    keys_tensor: Array | None = None
    values_strings: tuple[str, ...] | None = None
    values_int64s: tuple[int, ...] | None = None
    values_floats: tuple[float, ...] | None = None
    values_tensor: Array | None = None
    default_string: str = "_Unused"
    default_int64: int = -1
    default_float: float = -0.0
    default_tensor: Array | None = None

    def replaced(self, draft: Draft) -> Draft:
        keys, values = self._table("keys"), self._table("values")
        return looked_up(draft, keys, values, self._default(values.dtype))

    def _table(self, side: str) -> Array:
        """Return the keys or the values, which are given in one of several attributes.

        Raises:
            InvalidOperand: none is set, or several are.
        """
        kinds = {"strings": string, "int64s": int64, "floats": float32}
        tables = [
            np.array(values, dtype)
            for kind, dtype in kinds.items()
            if (values := getattr(self, f"{side}_{kind}"))
        ]
        tensor = getattr(self, f"{side}_tensor")
        tables += [] if tensor is None else [np.asarray(tensor).reshape(-1)]
        if len(tables) != 1:
            raise InvalidOperand(f"expected one kind of {side}, got {len(tables)}")
        return tables[0]

    def _default(self, dtype: DType) -> int | float | str:
        values = self.default_tensor
        if values is not None and values.size:
            number: int | float | str = values.ravel().tolist()[0]
            return number
        if dtype == string:
            return self.default_string
        return self.default_float if dtypes.is_float(dtype) else self.default_int64


@LabelEncoder.upgrade(1)
def listed_classes(draft: Draft) -> Draft:
    """Upgrade: before 2, the table was a list of strings and their indices."""
    classes = tuple(draft.attrs.get("classes_strings", ()))
    indices = tuple(range(len(classes)))
    if draft.type(0).dtype == string:
        attributes: dict[str, Any] = {"keys_strings": classes, "values_int64s": indices}
    else:
        attributes = {"keys_int64s": indices, "values_strings": classes}
    return draft.with_attrs("classes_strings", **attributes)
