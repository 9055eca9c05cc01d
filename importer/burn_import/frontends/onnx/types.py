"""Value types that a file declares."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from burn_import.frontends.onnx.tensors import dtype_of
from burn_ir import InvalidModel, Problem, Type, UnsupportedModel
from burn_ir.containers import map_of, optional_of, sequence_of
from burn_ir.dim import Dim

if TYPE_CHECKING:
    from onnx import TypeProto
    from onnx.onnx_ml_pb2 import TensorShapeProto

#: Returns the dimension of an axis without a fixed extent, from its name or axis.
Extent = Callable[[str, int], Dim]


def declared_type(proto: TypeProto, where: str, extent: Extent) -> Type:
    """Return the type that ``proto`` declares; ``where`` is the context for errors.

    Raises:
        InvalidModel: no type is declared.
        UnsupportedModel: values of this type are not supported.
    """
    kind = proto.WhichOneof("value")
    if kind == "tensor_type" and proto.tensor_type.elem_type:
        dtype = dtype_of(proto.tensor_type.elem_type, where)
        if not proto.tensor_type.HasField("shape"):
            return Type(dtype, None)
        return Type(dtype, _shape(proto.tensor_type.shape, extent))
    if kind == "sequence_type":
        return sequence_of(declared_type(proto.sequence_type.elem_type, where, extent))
    if kind == "optional_type":
        return optional_of(declared_type(proto.optional_type.elem_type, where, extent))
    if kind == "map_type":
        key = dtype_of(proto.map_type.key_type, where)
        return map_of(key, declared_type(proto.map_type.value_type, where, extent))
    if kind in ("tensor_type", None):
        raise InvalidModel(f"expected {where} to declare its type")
    message = (
        f"expected {where} to be a tensor, sequence, optional or map, got a {kind}"
    )
    raise UnsupportedModel([Problem(message.replace("_type", ""))])


def _shape(proto: TensorShapeProto, extent: Extent) -> tuple[Dim, ...]:
    """Return the extents; -1, which some exporters write, means unknown."""
    return tuple(
        (
            dim.dim_value
            if dim.HasField("dim_value") and dim.dim_value >= 0
            else extent(dim.dim_param, axis)
        )
        for axis, dim in enumerate(proto.dim)
    )
