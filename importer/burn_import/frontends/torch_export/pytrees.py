"""Names of the leaves in the pytrees of a program's inputs and outputs.

PyTorch flattens nested containers to a list of leaves, and stores their structure as
``[1, {"type": "builtins.dict", "context": "[\"a\"]", "children_spec": [...]}]``.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from burn.record.errors import shown
from burn_ir import InvalidModel, UnsupportedModel

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
    "config": {"": {"path_name": str, "use_pickle?": bool, "tensor_meta": TENSOR}}
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


Key = str | int
#: Containers whose items are identified by index.
_SEQUENCES = frozenset(
    {"builtins.list", "builtins.tuple", "collections.deque", "torch.Size"}
)
_DICTIONARIES = frozenset({"builtins.dict", "collections.OrderedDict"})
_VERSION = 1
#: Largest nesting depth of containers.
_DEEPEST = 64


def leaf_names(text: str, named_tuples: Mapping[str, Any]) -> list[str]:
    """Return the name of each leaf of a tree, ``""`` for one known only by index.

    The name joins the keys of its path: ``{"pair": (a, b)}`` has ``pair_0`` and
    ``pair_1``. ``named_tuples`` maps the class names in the tree to their fields.

    Raises:
        InvalidModel: the text is not a pytree specification.
        UnsupportedModel: it has containers of an unknown kind.
    """
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"expected a tree in JSON, got {shown(text)}") from error
    check(tree, [object], "tree")
    if len(tree) != 2 or tree[0] != _VERSION:
        raise UnsupportedModel(f"expected a tree of version 1, got {shown(tree[:1])}")
    return [_join_path(path) for path in _leaves(tree[1], (), named_tuples)]


def _join_path(path: Sequence[Key]) -> str:
    named = any(isinstance(key, str) for key in path)
    return "_".join(map(str, path)) if named else ""


def _leaves(
    tree: Any, path: tuple[Key, ...], named_tuples: Mapping[str, Any]
) -> Iterator[tuple[Key, ...]]:
    check(tree, {"type?": str, "children_spec": [object]}, "tree")
    kind, children = tree.get("type"), tree["children_spec"]
    if kind is None:
        yield path
        return
    if len(path) >= _DEEPEST:
        raise InvalidModel(f"expected at most {_DEEPEST} nested containers")
    keys = _keys(kind, tree.get("context"), len(children), named_tuples)
    if len(keys) != len(children):
        message = f"expected {len(keys)} items in {shown(kind)}, got {len(children)}"
        raise InvalidModel(message)
    for key, child in zip(keys, children, strict=True):
        yield from _leaves(child, (*path, key), named_tuples)


def _keys(
    kind: str, context: Any, count: int, named_tuples: Mapping[str, Any]
) -> Sequence[Key]:
    """Return the keys of a container, in the order of its items."""
    if kind in _SEQUENCES:
        return range(count)
    if kind == "collections.namedtuple":
        if not isinstance(context, str) or context not in named_tuples:
            raise InvalidModel(f"expected the fields of {shown(context)}, found none")
        return [str(name) for name in named_tuples[context]["field_names"]]
    parsed = _parsed(context)
    if kind == "collections.defaultdict" and isinstance(parsed, dict):
        parsed = parsed.get("dict_context")
    elif kind not in _DICTIONARIES and _is_fields(parsed):
        parsed = parsed[0]  # fields of a data class that are None
    plain = isinstance(parsed, list) and all(isinstance(k, str | int) for k in parsed)
    if plain and (kind in _DICTIONARIES or len(parsed) == count):
        return list(parsed)
    raise UnsupportedModel(
        "expected tensors in tuples, lists, dictionaries, named tuples and data "
        f"classes, got {shown(kind)}"
    )


def _parsed(context: Any) -> Any:
    if not isinstance(context, str):
        return context
    try:
        return json.loads(context)
    except (ValueError, RecursionError):
        return None


def _is_fields(value: Any) -> bool:
    """Return whether a value describes the fields of a data class."""
    pair = isinstance(value, list) and len(value) == 2
    return pair and all(isinstance(names, list) for names in value)
