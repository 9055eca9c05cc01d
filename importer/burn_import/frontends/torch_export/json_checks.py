"""Validation of the JSON in an archive against specifications.

A specification is a type, ``[item]`` for a list, ``{"": item}`` for an object of any
fields, or an object with the fields that are read; a field whose name ends in ``?`` may
be missing or null. Other fields are allowed and ignored.
"""

from __future__ import annotations

from typing import Any

from burn.record.errors import shown
from burn_ir import InvalidModel

NAME = {"name": str}
EXTENT = {"as_int?": int, "as_expr?": {"expr_str": str}}
TENSOR = {
    "dtype": int,
    "sizes": [EXTENT],
    "strides": [EXTENT],
    "storage_offset": EXTENT,
}
UNION = {"": object}
NODE = {
    "target": str,
    "inputs": [{"name": str, "arg": UNION}],
    "outputs": [UNION],
    "metadata?": {"": str},
    "name?": str,
}
GRAPH = {
    "inputs": [UNION],
    "outputs": [UNION],
    "nodes": [NODE],
    "tensor_values": {"": TENSOR},
    "sym_int_values?": {"": object},
    "sym_float_values?": {"": object},
    "sym_bool_values?": {"": object},
}
SIGNATURE = {"input_specs": [{"": {"": object}}], "output_specs": [{"": {"": object}}]}
#: The pytrees of inputs and outputs, of the program and of its modules.
CALL = {"fqn": str, "signature?": {"in_spec?": str, "out_spec?": str}}
PROGRAM = {
    "graph_module": {
        "graph": GRAPH,
        "signature": SIGNATURE,
        "module_call_graph?": [CALL],
        "treespec_namedtuple_fields?": {"": {"field_names": [str]}},
    },
    "schema_version": {"major": int},
    "torch_version?": str,
}
WEIGHTS = {
    "config": {
        "": {"path_name": str, "use_pickle?": bool, "tensor_meta": TENSOR},
    }
}


def check(value: Any, spec: Any, where: str = "program") -> None:
    """Check that ``value`` conforms to ``spec``.

    Raises:
        InvalidModel: it does not; the message has the location.
    """
    if isinstance(spec, list):
        for number, item in enumerate(_expect(value, list, where)):
            check(item, spec[0], f"{where}[{number}]")
    elif isinstance(spec, dict):
        _check_object(_expect(value, dict, where), spec, where)
    else:
        _expect(value, spec, where)


def _check_object(value: dict[str, Any], spec: dict[str, Any], where: str) -> None:
    if "" in spec:
        for name, item in value.items():
            check(item, spec[""], f"{where}.{name[:80]}")
        return
    for field, inner in spec.items():
        name = field.removesuffix("?")
        if name != field and value.get(name) is None:
            continue
        if name not in value:
            raise InvalidModel(f"{where}: expected a field {name!r}")
        check(value[name], inner, f"{where}.{name}")


def _expect(value: Any, kind: type, where: str) -> Any:
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise InvalidModel(f"{where}: expected {kind.__name__}, got {shown(value)}")
    return value
