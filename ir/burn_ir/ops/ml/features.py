"""Selection, concatenation, imputation and binarisation of features."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from burn import dtypes, ops
from burn.dtypes import float32
from burn_ir.dim import Dim, unnamed
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Op, Type, Value, operator
from burn_ir.ops.ml.rewriting import Replaced, burn_step, chain
from burn_ir.ops.support import ints_of, shape_of
from burn_ir.upgrade import Draft

#: Maximum number of indices that are emitted as literals.
INLINE = 8


def numeric(x: Type) -> Type:
    """Check that ``x`` holds numbers; return it.

    Raises:
        InvalidOperand: it does not.
    """
    if x.dtype == dtypes.string or dtypes.is_complex(x.dtype):
        raise InvalidOperand(f"expected numbers, got {x.name}")
    return x


@operator
class Binarizer(Op, onnx="Binarizer", versions=(1,), domain="ai.onnx.ml"):
    threshold: float = 0.0

    def infer(self, x: Type) -> Type:
        return numeric(x).forget()

    def lower(self, x: Value) -> Value:
        whole = dtypes.is_integer(x.dtype)
        # An integer is above 2.5 if it is above 2.
        limit = math.floor(self.threshold) if whole else self.threshold
        return (x > limit).cast(x.dtype)


@operator
class Imputer(Replaced, Op, onnx="Imputer", versions=(1,), domain="ai.onnx.ml"):
    imputed_value_floats: tuple[float, ...] | None = None
    replaced_value_float: float = 0.0
    imputed_value_int64s: tuple[int, ...] | None = None
    replaced_value_int64: int = 0

    def replaced(self, draft: Draft) -> Draft:
        x = numeric(draft.type(0))
        replaced: float = self.replaced_value_float
        imputed: Any = self.imputed_value_floats
        if not dtypes.is_float(x.dtype):
            replaced, imputed = self.replaced_value_int64, self.imputed_value_int64s
        if not imputed:
            raise InvalidOperand(f"expected values to impute in {x.name}, got none")
        width = x.shape[-1] if x.shape else None
        if len(imputed) > 1 and isinstance(width, int) and width != len(imputed):
            raise InvalidOperand(f"expected {width} values, got {len(imputed)}")
        values = np.array(imputed, x.dtype)
        values = values[0] if len(values) == 1 else values
        name = draft.constant("imputed", np.asarray(values))
        step = burn_step("Impute", name, missing=replaced)
        return chain(draft, draft.node.inputs[0], [step])


@operator
class Impute(Op, onnx="Impute", versions=(1,), domain="burn"):
    """``x`` with ``values`` where it equals ``missing``, which may be NaN."""

    missing: int | float = 0.0

    def infer(self, x: Type, values: Type) -> Type:
        width = x.shape[-1] if x.shape else 1
        if values.shape and isinstance(width, int) and values.shape[0] != width:
            raise InvalidOperand(f"expected {width} values, got {values.name}")
        return x.forget()

    def lower(self, x: Value, values: Value) -> Value:
        if isinstance(self.missing, float) and math.isnan(self.missing):
            return ops.where(ops.isnan(x), values, x)
        return ops.where(ops.equal(x, self.missing), values, x)


@operator
class FeatureVectorizer(
    Op, onnx="FeatureVectorizer", versions=(1,), domain="ai.onnx.ml"
):
    """Concatenated operands, each cut or padded to its number of features."""

    inputdimensions: tuple[int, ...] | None = None

    def infer(self, *inputs: Type) -> Type:
        widths = [self._width(numeric(x), i) for i, x in enumerate(inputs)]
        samples: Dim = unnamed()
        for x in inputs:
            if x.shape is not None:
                samples = x.shape[0] if len(x.shape) == 2 else 1
        total: Dim = 0
        for width in widths:
            total = total + width
        return Type(float32, (samples, total))

    def _width(self, x: Type, position: int) -> Dim:
        if x.shape is not None and len(x.shape) not in (1, 2):
            raise InvalidOperand(f"expected a matrix, got {x.name}")
        if not self.inputdimensions:
            return unnamed() if x.shape is None else x.shape[-1]
        if position >= len(self.inputdimensions):
            raise InvalidOperand(f"expected {position + 1} or more inputdimensions")
        return self.inputdimensions[position]

    def lower(self, *inputs: Value) -> Value:
        parts = [self._part(x, i) for i, x in enumerate(inputs)]
        return parts[0] if len(parts) == 1 else ops.concat(parts, 1)

    def _part(self, x: Value, position: int) -> Value:
        shape, dtype = shape_of(x), x.dtype
        extent = None if shape is None else shape[-1]
        if shape is None:
            x = x.unsqueeze(0).flatten(0, -2)  # of a matrix, its former shape
        elif len(shape) == 1:
            x = x.unsqueeze(0)
        if self.inputdimensions:
            width = self.inputdimensions[position]
            if not isinstance(extent, int):
                x = ops.pad(x, (0, 0, 0, width))[:, :width]
            elif extent > width:
                x = x[:, :width]
            elif extent < width:
                x = ops.pad(x, (0, 0, 0, width - extent))
        return x if dtype == float32 else x.cast(float32)


@operator
class ArrayFeatureExtractor(
    Op, onnx="ArrayFeatureExtractor", versions=(1,), domain="ai.onnx.ml"
):
    """Selected features along the last axis; a vector is one sample."""

    def infer(self, x: Type, indices: Type) -> Type:
        if not dtypes.is_integer(indices.dtype):
            raise InvalidOperand(f"expected integers, got {indices.name}")
        if x.shape is not None and not x.shape:
            raise InvalidOperand(f"expected features, got {x.name}")
        count: Dim = 1
        if indices.shape is None:
            count = unnamed()
        else:
            for dim in indices.shape:
                count = count * dim
        if x.shape is None:
            return x.with_shape(None)
        return x.with_shape((*(x.shape[:-1] or (1,)), count))

    def lower(self, x: Value, indices: Value) -> Value:
        columns = self._taken(x, indices)
        return columns.unsqueeze(0) if len(x.shape) == 1 else columns

    def _taken(self, x: Value, indices: Value) -> Value:
        numbers = ints_of(indices)
        if numbers and numbers == tuple(range(numbers[0], numbers[0] + len(numbers))):
            return x[..., numbers[0] : numbers[0] + len(numbers)]
        if numbers is not None and len(numbers) <= INLINE:
            return ops.take(x, list(numbers), axis=-1)
        try:
            flat = len(indices.shape) == 1
        except Undecided:
            flat = False
        return ops.take(x, indices if flat else indices.reshape(-1), axis=-1)
