"""Values of node attributes, read by their ``AttributeType``."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from burn_import.frontends.onnx.tensors import Tensors
from burn_import.frontends.onnx.types import declared_type
from burn_ir import InvalidModel, RawGraph
from burn_ir.dim import Dim, symbol
from burn_ir.ops.options import shortest

if TYPE_CHECKING:
    from onnx import AttributeProto, GraphProto

#: The field of ``AttributeProto`` that holds the value, by attribute type.
FIELDS = {
    1: "f",
    2: "i",
    3: "s",
    4: "t",
    5: "g",
    11: "sparse_tensor",
    13: "tp",
    6: "floats",
    7: "ints",
    8: "strings",
    9: "tensors",
    10: "graphs",
    12: "sparse_tensors",
    14: "type_protos",
}
_SINGLE = ("f", "i", "s", "t", "g", "sparse_tensor", "tp")


def attribute_value(
    attr: AttributeProto,
    where: str,
    operator: tuple[str, int, str],
    tensors: Tensors,
    read_graph: Callable[[GraphProto], RawGraph],
) -> Any:
    """Return the value: a number, string, array, graph or type, or a tuple of them.

    Attributes of kind ``TypeProto`` become the :class:`Type` of a value. ``operator``
    is the operator's name, version and domain.

    Raises:
        InvalidModel: the attribute has no type, or a string is not UTF-8.
    """
    name = FIELDS.get(attr.type) if attr.type else _infer_field(attr, operator)
    if name is None:
        raise InvalidModel(f"{where}: expected a type of ONNX, got {attr.type}")
    readers: dict[str, Callable[[Any], Any]] = {
        "f": shortest,
        "i": int,
        "s": lambda value: _text(value, where),
        "t": lambda value: tensors.array(value, where),
        "g": read_graph,
        "sparse_tensor": lambda value: tensors.sparse(value, where),
        "tp": lambda value: declared_type(value, where, _anonymous_dim),
    }
    value = getattr(attr, name)
    if name in readers:
        return readers[name](value)
    single = {"type_protos": "tp"}.get(name, name.removesuffix("s"))
    first = {"floats": "f", "ints": "i", "strings": "s", "tensors": "t", "graphs": "g"}
    read = readers[first.get(name, single)]
    return tuple(read(item) for item in value)


def _infer_field(attr: AttributeProto, operator: tuple[str, int, str]) -> str | None:
    """Return the field in use when ``type`` is unset, as in the oldest files.

    The operator's schema decides; without one, the only non-empty field is taken.
    """
    from onnx import AttributeProto, defs

    op_type, version, domain = operator
    try:
        schema = defs.get_schema(op_type, version, domain)
    except defs.SchemaError:
        schema = None
    declared = schema.attributes.get(attr.name) if schema is not None else None
    if declared is not None:
        kind = str(declared.type).rpartition(".")[2]
        return FIELDS[AttributeProto.AttributeType.Value(kind)]
    used = [field for field in _SINGLE if attr.HasField(field)]
    used += [f for f in FIELDS.values() if f not in _SINGLE and len(getattr(attr, f))]
    return used[0] if len(used) == 1 else None


def _text(value: bytes, where: str) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        message = f"{where}: expected text in UTF-8, got {value[:20]!r}"
        raise InvalidModel(message) from None


def _anonymous_dim(name: str, axis: int) -> Dim:
    """Return an anonymous symbol: dimensions of type attributes are not tracked."""
    return symbol("?")
