"""Attention over a key-value cache and a new entry, without concatenating them."""

from typing import Any, NamedTuple

from burn.dtypes import HALVES
from burn.ops.casting import cast
from burn.ops.decoding import cached_attention
from burn.ops.elementwise import add, mul, sub
from burn.ops.fused_attention import scaled_attention
from burn.ops.indexing import getitem
from burn.ops.shape import chunk, concat, unsqueeze
from burn.plan.passes.graph import Graph, Steps, is_same
from burn.plan.plan_ir import Read, Slot, Step
from burn.structs import replace

_WHOLE = slice(None)


class _Concatenation(NamedTuple):
    """The concatenation of a cache and a new entry."""

    past: Any
    new: Any
    length: int


class _Rotation(NamedTuple):
    """A rotary embedding: its operand, cosines and sines."""

    x: Any
    cos: Any
    sin: Any


def fuse_caches(steps: Steps, graph: Graph) -> Steps:
    """Replace attention of single queries by steps that read the caches in place.

    A slice of the concatenation that is the new entry becomes that entry.
    """
    new_steps: Steps = []
    keys: dict[int, Any] = {}
    for step in steps:
        if isinstance(step, Read):
            new_steps.append(step)
            continue
        attention = _attention(step, graph)
        if attention is not None:
            keys[step.args[1].place] = Slot(attention.outputs[1])
            new_steps.append(attention)
            continue
        new_steps.append(_entry(step, graph, keys) or step)
    return new_steps


def _concatenation_of(value: Any, graph: Graph) -> _Concatenation | None:
    """Return the cache and the entry that ``value`` concatenates along the key axis."""
    maker = graph.maker.get(value.place) if type(value) is Slot else None
    if not isinstance(maker, Step) or maker.primitive is not concat:
        return None
    parts, axis = (*maker.args, maker.static.get("axis", 0))[:2]
    if len(maker.shapes[0]) != 4 or axis % 4 != 2 or len(parts) != 2:
        return None
    shape = graph.known(parts[0])[0]
    return None if shape is None else _Concatenation(parts[0], parts[1], shape[2])


def _attention(step: Step, graph: Graph) -> Step | None:
    """Return the attention over a cache that ``step`` computes, or None."""
    if step.primitive is not scaled_attention or step.static.get("causal"):
        return None
    query, key, value, mask = (*step.args, None)[:4]
    keys, values = _concatenation_of(key, graph), _concatenation_of(value, graph)
    if keys is None or values is None or keys.length != values.length:
        return None
    rows, size = step.shapes[0][2:]
    new = [graph.known(part)[0] for part in (keys.new, values.new)]
    if rows != 1 or any(s is None or s[2:] != (1, size) for s in new):
        return None
    if graph.known(query)[0] is None or graph.known(query)[0][3] != size:  # type: ignore[index]
        return None
    turns = [_rotation_of(part, graph) for part in (query, keys.new)]
    angles: tuple[Any, ...] = (None, None)
    query, key = query, keys.new
    if None not in turns and _are_equal(turns[0][1:], turns[1][1:], graph):  # type: ignore[index]
        (query, *angles), (key, *_) = turns  # type: ignore[misc,assignment]
    args = (query, key, values.new, keys.past, values.past, _before_cast(mask, graph))
    static = {n: v for n, v in step.static.items() if n != "causal"}
    return replace(
        step,
        primitive=cached_attention,
        args=(*args, *angles),
        static=static,
        outputs=(step.outputs[0], graph.fresh()),
        shapes=(step.shapes[0], new[0]),
        dtypes=(step.dtypes[0], graph.known(keys.new)[1]),
    )


def _before_cast(mask: Any, graph: Graph) -> Any:
    """Return ``mask`` before its cast to float32."""
    maker = graph.maker.get(mask.place) if type(mask) is Slot else None
    if not isinstance(maker, Step) or maker.primitive is not cast:
        return mask
    return maker.args[0] if graph.known(maker.args[0])[1] in HALVES else mask


def _entry(step: Step, graph: Graph, keys: dict[int, Any]) -> Step | None:
    """Return a view of the new entry if ``step`` slices exactly it, else None."""
    if step.primitive is not getitem or len(step.args) != 2:
        return None
    joint = _concatenation_of(step.args[0], graph)
    if joint is None or step.args[1] != (_WHOLE, _WHOLE, slice(joint.length, None)):
        return None
    new = keys.get(step.args[0].place, joint.new)
    return replace(step, args=(new, (_WHOLE,)))


def _rotation_of(value: Any, graph: Graph) -> _Rotation | None:
    """Return the operands if ``value`` is computed like :func:`rotary_embedding`."""
    joint = _producer(value, concat, graph)
    if joint is None or (*joint.args, joint.static.get("axis", 0))[1] not in (-1, 3):
        return None
    if len(joint.args[0]) != 2:
        return None
    left, right = (_skip_cast(part, graph) for part in joint.args[0])
    minus, plus = _producer(left, sub, graph), _producer(right, add, graph)
    if minus is None or plus is None:
        return None
    products = [_producer(a, mul, graph) for a in (*minus.args, *plus.args)]
    if None in products:
        return None
    a, b, c, d = (product.args for product in products if product is not None)
    (first, cos), (second, sin) = a, b
    pairs = zip((first, sin, second, cos), (*c, *d), strict=True)
    if not all(is_same(one, other) for one, other in pairs):
        return None
    first, second = (_skip_cast(part, graph) for part in (first, second))
    halves = _producer(first, chunk, graph)
    if halves is None or type(second) is not Slot:
        return None
    if halves.outputs != (first.place, second.place):
        return None
    return _Rotation(halves.args[0], cos, sin)


def _producer(value: Any, primitive: Any, graph: Graph) -> Step | None:
    maker = graph.maker.get(value.place) if type(value) is Slot else None
    is_one = isinstance(maker, Step) and maker.primitive is primitive
    return maker if is_one and isinstance(maker, Step) else None


def _skip_cast(value: Any, graph: Graph) -> Any:
    maker = _producer(value, cast, graph)
    return value if maker is None else maker.args[0]


def _are_equal(one: Any, other: Any, graph: Graph) -> bool:
    """Return whether two angles are the same value, or equal views of one value."""
    for a, b in zip(one, other, strict=True):
        if is_same(a, b):
            continue
        first, second = _producer(a, unsqueeze, graph), _producer(b, unsqueeze, graph)
        if first is None or second is None or first.args[1:] != second.args[1:]:
            return False
        if not is_same(first.args[0], second.args[0]):
            return False
    return True
