"""The program in the JSON of an archive: validated and typed.

The schema is PyTorch's ``torch/_export/serde/schema.py``, major version 8; minor
versions add optional fields only. A union is an object with one field, ``as_tensor``.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from burn.record.errors import shown
from burn_import.provenance.path_segments import without_lookups
from burn_ir import InvalidModel, UnsupportedModel

MAJOR = 8
#: ``ScalarType`` of the schema by number.
SCALARS = {
    1: "uint8",
    2: "int8",
    3: "int16",
    4: "int32",
    5: "int64",
    6: "float16",
    7: "float32",
    8: "float64",
    9: "complex32",
    10: "complex64",
    11: "complex128",
    12: "bool",
    13: "bfloat16",
    28: "uint16",
    29: "float8_e4m3fn",
    30: "float8_e5m2",
    31: "float8_e4m3fnuz",
    32: "float8_e5m2fnuz",
    33: "float8_e8m0fnu",
    34: "uint32",
    35: "uint64",
}

T = TypeVar("T")
#: An argument: a number, a string, None, a list of arguments, or a class below.
Argument = Any


@dataclass(frozen=True)
class TensorRef:
    """A tensor by its name."""

    name: str


@dataclass(frozen=True)
class SymbolRef:
    """A computed number by its name."""

    name: str


@dataclass(frozen=True)
class ScalarType:
    """A dtype as an argument."""

    name: str


@dataclass(frozen=True)
class Ignored:
    """A device, layout or memory format, which changes no value."""


@dataclass(frozen=True)
class GraphRef:
    """A graph as an argument."""

    graph: Mapping[str, Any]


def field(of: Any, name: str, kind: type[T]) -> T:
    """Return the field ``name`` of an object, which must be of ``kind``.

    Raises:
        InvalidModel: the field is missing, or of another kind.
    """
    if not isinstance(of, dict) or not isinstance(of.get(name), kind):
        actual = type(of.get(name)).__name__ if isinstance(of, dict) else "no object"
        message = f"field {shown(name)}: expected {kind.__name__}, got {actual}"
        raise InvalidModel(message)
    value: T = of[name]
    return value


def union(of: Any) -> tuple[str, Any]:
    """Return the field of a union that is set, and its value.

    Raises:
        InvalidModel: no field is set, or several are.
    """
    if not isinstance(of, dict) or len(of) != 1:
        raise InvalidModel(f"expected an object of one field, got {shown(of)}")
    return next(iter(of.items()))


def argument(of: Any) -> Argument:
    """Return the argument in a union of the schema.

    Raises:
        InvalidModel: it contradicts the schema.
        UnsupportedModel: arguments of this kind are not supported.
    """
    kind, value = union(of)
    if kind in _PLAIN:
        return _parse_plain(kind, value)
    if kind in _LISTS:
        if not isinstance(value, list):
            raise InvalidModel(f"{kind}: expected a list, got {shown(value)}")
        return [_item(kind, item) for item in value]
    if kind in _OBJECTS:
        return _OBJECTS[kind](value)
    raise UnsupportedModel(f"arguments of kind {shown(kind)} are not read")


def _tensor(value: Any) -> Argument:
    return TensorRef(field(value, "name", str))


def _complex(value: Any) -> Argument:
    return complex(field(value, "real", float), field(value, "imag", float))


def _symbol(of: Any) -> Argument:
    kind, value = union(of)
    return SymbolRef(str(value)) if kind == "as_name" else _number(value)


def _number(value: Any) -> Argument:
    return float(_SPECIAL[value]) if isinstance(value, str) else _fitting(value)


#: Arguments that are objects themselves.
_OBJECTS: dict[str, Callable[[Any], Argument]] = {
    **dict.fromkeys(("as_tensor", "as_nested_tensor"), _tensor),
    **dict.fromkeys(("as_sym_int", "as_sym_float", "as_sym_bool"), _symbol),
    **dict.fromkeys(
        ("as_device", "as_layout", "as_memory_format"), lambda value: Ignored()
    ),
    "as_scalar_type": lambda value: ScalarType(scalar_name(value)),
    "as_graph": lambda value: GraphRef(field(value, "graph", dict)),
    "as_optional_tensor": lambda value: argument(value),
    "as_complex": _complex,
}
_PLAIN = {
    "as_none": bool,
    "as_int": int,
    "as_float": (int, float),
    "as_bool": bool,
    "as_string": str,
    "as_operator": str,
}
_LISTS = {
    "as_tensors": "tensor",
    "as_optional_tensors": "union",
    "as_ints": "plain",
    "as_floats": "plain",
    "as_bools": "plain",
    "as_strings": "plain",
    "as_sym_ints": "symbol",
    "as_sym_floats": "symbol",
    "as_sym_bools": "symbol",
    "as_int_lists": "plain",
    "as_nested_tensors": "tensors",
    "as_float_lists": "plain",
}


def _parse_plain(kind: str, value: Any) -> Argument:
    if kind == "as_float" and isinstance(value, str) and value in _SPECIAL:
        return float(_SPECIAL[value])
    expected: Any = _PLAIN[kind]
    if not isinstance(value, expected) or (kind == "as_int" and value is True):
        raise InvalidModel(f"{kind}: got {shown(value)}")
    return None if kind == "as_none" else _fitting(value)


def _fitting(value: Any) -> Any:
    """Return ``value``, after a check that integers fit int64.

    Raises:
        InvalidModel: a number exceeds int64.
    """
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidModel(f"expected a number of 64 bits, got {shown(value)}")
    return value


#: The JSON strings of numbers without a literal.
_SPECIAL: dict[Any, str] = {"Infinity": "inf", "-Infinity": "-inf", "NaN": "nan"}


def _item(kind: str, item: Any) -> Argument:
    form = _LISTS[kind]
    if form == "tensor":
        return TensorRef(field(item, "name", str))
    if form == "tensors":
        return [TensorRef(field(element, "name", str)) for element in item]
    if form == "symbol":
        return _symbol(item)
    if form == "union":
        return argument(item)
    return _fitting(item)


def scalar_name(number: Any) -> str:
    """Return PyTorch's name of a dtype number of the schema.

    Raises:
        UnsupportedModel: the number is unknown.
    """
    if not isinstance(number, int) or number not in SCALARS:
        raise UnsupportedModel(f"expected a known scalar type, got {shown(number)}")
    return SCALARS[number]


def scopes(metadata: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield the modules around a node from outside in: (path, class).

    ``nn_module_stack`` is ``key,path,class;key,path,class``.
    """
    stack = metadata.get("nn_module_stack", "")
    if "_empty_nn_module_stack" in stack:
        return
    for entry in stack.split(";"):
        parts = entry.split(",")
        if len(parts) == _STACKED:
            yield without_lookups(parts[1]), parts[2].rpartition(".")[2]


_STACKED = 3
