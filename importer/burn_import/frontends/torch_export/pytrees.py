"""Names of leaves in the trees of containers of a program's inputs and outputs.

PyTorch flattens tuples, dictionaries and the like to a list of leaves, and keeps how as
``[1, {"type": "builtins.dict", "context": "[\\"a\\"]", "children_spec": [...]}]``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from burn.record.errors import shown
from burn_import.frontends.torch_export.json_checks import check
from burn_ir import InvalidModel, UnsupportedModel

Key = str | int
#: Containers whose items are known by their place.
_SEQUENCES = frozenset(
    {"builtins.list", "builtins.tuple", "collections.deque", "torch.Size"}
)
_DICTIONARIES = frozenset({"builtins.dict", "collections.OrderedDict"})
_VERSION = 1
#: Containers in containers; nobody nests them deeper.
_DEEPEST = 64


def leaf_names(text: str, named_tuples: Mapping[str, Any]) -> list[str]:
    """The name of each leaf of a tree, ``""`` where nothing but places tell.

    It is made of the keys on the way: ``{"pair": (a, b)}`` has ``pair_0`` and
    ``pair_1``. ``named_tuples`` has their fields, by what the tree calls their classes.

    Raises:
        InvalidModel: it is no such tree.
        UnsupportedModel: it has containers of a kind that is not known.
    """
    try:
        tree = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidModel(f"expected a tree in JSON, got {shown(text)}") from error
    check(tree, [object], "tree")
    if len(tree) != 2 or tree[0] != _VERSION:
        raise UnsupportedModel(f"expected a tree of version 1, got {shown(tree[:1])}")
    return [_joined(path) for path in _leaves(tree[1], (), named_tuples)]


def _joined(path: Sequence[Key]) -> str:
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
        raise InvalidModel(f"expected at most {_DEEPEST} containers in each other")
    keys = _keys(kind, tree.get("context"), len(children), named_tuples)
    if len(keys) != len(children):
        message = f"expected {len(keys)} items in {shown(kind)}, got {len(children)}"
        raise InvalidModel(message)
    for key, child in zip(keys, children, strict=True):
        yield from _leaves(child, (*path, key), named_tuples)


def _keys(
    kind: str, context: Any, count: int, named_tuples: Mapping[str, Any]
) -> Sequence[Key]:
    """The keys of a container, in the order of its items."""
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
        parsed = parsed[0]  # of a data class; the others are None
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
    """Whether these are the fields of a data class: those that are set, and others."""
    pair = isinstance(value, list) and len(value) == 2
    return pair and all(isinstance(names, list) for names in value)
