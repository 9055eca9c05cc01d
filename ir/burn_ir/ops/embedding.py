"""Lookups in tables whose gradients are not plain sums over the lookups."""

from __future__ import annotations

from typing import Any

from burn import ops
from burn.dtypes import is_float
from burn_ir.errors import InvalidOperand
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.indexing import check_integers


@operator
class Embedding(Op, onnx="Embedding", versions=(1,), domain="burn"):
    """The rows ``indices`` of a matrix; the row ``padding_idx`` gets no gradient.

    With ``scale_grad_by_freq`` gradients are divided by the number of lookups. A
    ``module`` is a layer even if its indices are stored.
    """

    padding_idx: int | None = None
    scale_grad_by_freq: int = 0
    module: int = 0

    def infer(self, weight: Type, indices: Type) -> Type:
        check_integers(indices)
        if weight.rank != 2 or not is_float(weight.dtype):
            raise InvalidOperand(f"expected a matrix of floats, got {weight.name}")
        rows, features = weight.dims
        padding = self.padding_idx
        if padding is not None and isinstance(rows, int) and not 0 <= padding < rows:
            raise InvalidOperand(f"expected padding_idx below {rows}, got {padding}")
        if indices.shape is None:
            return weight.with_shape(None)
        return weight.with_shape((*indices.dims, features))

    def lower(self, weight: Value, indices: Value) -> Value:
        return ops.embedding(weight, indices, **self._options())

    def layer(self, weight: Type, indices: Type) -> Layer | None:
        table = weight.known
        if table is None or (indices.known is not None and not self.module):
            return None
        parameters = {"weight": 0}
        return Layer("Embedding", table.shape, self._options(), parameters, data=(1,))

    def _options(self) -> dict[str, Any]:
        """Return the keyword arguments that differ from the defaults."""
        options: dict[str, Any] = {}
        if self.padding_idx is not None:
            options["padding_idx"] = self.padding_idx
        if self.scale_grad_by_freq:
            options["scale_grad_by_freq"] = True
        return options
