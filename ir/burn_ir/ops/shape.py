"""Shape operators: reshaping, broadcasting, joining, and shape queries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Literal

import numpy as np

from burn import ops
from burn.dtypes import int64
from burn_ir.containers import AnyType
from burn_ir.dim import Dim, Poly, same
from burn_ir.errors import InvalidOperand, Undecided
from burn_ir.op import Layer, Op, Type, Value, operator
from burn_ir.ops.reshapes import joined_axes, with_open_size
from burn_ir.ops.support import (
    dims_of,
    ints_of,
    known_dims,
    known_ints,
    length,
    one_or_all,
    resolve,
    shape_of,
    unnamed_dims,
    writable,
)
from burn_ir.types import Array, broadcast, is_unnamed
from burn_ir.upgrade import Draft

NEWEST = (19, 21, 23, 24, 25)


@operator
class Reshape(Op, onnx="Reshape", versions=(1, 5, 13, 14, *NEWEST)):
    allowzero: Literal[0, 1] = 0

    def infer(self, data: Type, shape: Type) -> Type:
        dims = known_dims(shape)
        if dims is not None:
            return data.with_shape(resolve(dims, data, bool(self.allowzero)))
        try:
            return data.with_shape(unnamed_dims(length(shape)))
        except Undecided:
            return data.with_shape(None)

    def lower(self, data: Value, shape: Value) -> Value:
        dims = dims_of(shape)
        dims_in_source = None if dims is None else self._source_shape(data, dims)
        if dims is not None and dims_in_source is not None:
            target = self._resolved(data, dims)
            axes = joined_axes(shape_of(data), target)
            if axes is not None:
                return data.flatten(*axes)
            return data.reshape(dims_in_source)
        if self.allowzero:
            return data.reshape(shape)
        return ops.reshape(data, shape, keep_zeros=True)

    def stateless_layer(self, data: Type, shape: Type) -> Layer | None:
        dims = known_dims(shape)
        if dims is None or data.shape is None:
            return None
        try:
            target = resolve(dims, data, bool(self.allowzero))
        except Undecided:
            return None
        axes = joined_axes(data.shape, target)
        if axes is None or len(target) >= data.rank:
            return None
        return Layer("Flatten", () if axes == (1,) else axes, {}, {})

    def _resolved(self, data: Value, dims: Sequence[Dim]) -> tuple[Dim, ...] | None:
        """Return the extents of the result, or None if they are not known in time."""
        extents = shape_of(data)
        if extents is None:
            return None
        try:
            return resolve(dims, Type(data.dtype, extents), bool(self.allowzero))
        except Undecided:
            return None

    def _source_shape(self, data: Value, dims: Sequence[Dim]) -> tuple[Dim, ...] | None:
        """Return the target shape for source, or None if it is not known in time."""
        extents = shape_of(data)
        if extents is None:
            return None if 0 in dims and not self.allowzero else writable(dims)
        try:
            result = list(
                resolve(dims, Type(data.dtype, extents), bool(self.allowzero))
            )
        except Undecided:  # the size of the -1 axis depends on data: it stays -1
            keep = not self.allowzero
            result = [
                extents[axis] if keep and dim == 0 else dim
                for axis, dim in enumerate(dims)
            ]
        if -1 in dims and not _short(result[list(dims).index(-1)]):
            result[list(dims).index(-1)] = -1
        return writable(with_open_size(result, extents))


def _short(dim: Dim) -> bool:
    return isinstance(dim, int) or (not is_unnamed(dim) and str(dim).isidentifier())


@Reshape.upgrade(1)
def shape_attribute(draft: Draft) -> Draft:
    """Upgrade: before 5, the shape was an attribute."""
    return draft.attr_to_input("shape", 1)


@operator
class Transpose(Op, onnx="Transpose", versions=(1, 13, 21, 23, 24, 25)):
    perm: tuple[int, ...] | None = None

    def infer(self, data: Type) -> Type:
        if data.shape is None:
            return data.with_shape(None)
        perm = self._perm(data.rank)
        if sorted(data.axes(perm)) != list(range(data.rank)):
            raise InvalidOperand(f"expected perm to name the axes of {data.name} once")
        return data.with_shape([data.dims[axis] for axis in perm])

    def lower(self, data: Value) -> Value:
        extents = shape_of(data)
        if extents is None and self.perm is None:
            return ops.permute(data)
        perm = self._perm(0 if extents is None else len(extents))
        moved = [axis for axis, source in enumerate(perm) if axis != source]
        if not moved:
            return data
        if len(moved) == 2:
            return data.transpose(*moved)
        return data.permute(*perm)

    def _perm(self, rank: int) -> tuple[int, ...]:
        return tuple(reversed(range(rank))) if self.perm is None else self.perm


@operator
class Flatten(Op, onnx="Flatten", versions=(1, 9, 11, 13, 21, 23, 24, 25)):
    axis: int = 1

    def infer(self, x: Type) -> Type:
        return x.with_shape(unnamed_dims(2) if x.shape is None else self._dims(x.shape))

    def lower(self, x: Value) -> Value:
        extents = shape_of(x)
        if extents is None and self.axis:
            # The axis may be one after the last, or the first.
            return self._blindly(x.unsqueeze(-1 if self.axis > 0 else 0))
        if extents is None:
            return self._blindly(x)
        if self.axis == 1 and len(extents) > 1:
            return x.flatten(1)
        dims = writable(self._dims(extents))
        return self._blindly(x) if dims is None else x.reshape(dims)

    def stateless_layer(self, x: Type) -> Layer | None:
        is_default = self.axis == 1 and x.shape is not None and x.rank > 1
        return Layer("Flatten", (), {}, {}) if is_default else None

    def _blindly(self, x: Value) -> Value:
        if self.axis == 0:
            return x.flatten().unsqueeze(0)
        last = x.flatten(self.axis)
        if self.axis == 1:
            return last
        return last.flatten(0, self.axis - 1 if self.axis > 0 else -2)

    def _dims(self, extents: Sequence[Dim]) -> tuple[Dim, Dim]:
        rank = len(extents)
        if not -rank <= self.axis <= rank:
            raise InvalidOperand(
                f"expected an axis in [{-rank}, {rank}], got {self.axis}"
            )
        axis = self.axis + rank if self.axis < 0 else self.axis
        return prod(extents[:axis]), prod(extents[axis:])


@operator
class Squeeze(Op, onnx="Squeeze", versions=(1, 11, 13, 21, 23, 24, 25)):
    def infer(self, data: Type, axes: Type | None = None) -> Type:
        if axes is None:
            dims = data.dims
            return data.with_shape([d for d in dims if not same(d, 1)])
        numbers = known_ints(axes)
        if numbers is None:
            return data.with_shape(unnamed_dims(data.rank - length(axes)))
        gone = data.axes(numbers)
        for axis in gone:
            if isinstance(data.dims[axis], int) and data.dims[axis] != 1:
                raise InvalidOperand(f"expected extent 1 on axis {axis} of {data.name}")
        others = [d for axis, d in enumerate(data.dims) if axis not in gone]
        return data.with_shape(others)

    def lower(self, data: Value, axes: Value = None) -> Value:
        if axes is None:
            return data.squeeze()
        numbers = ints_of(axes)
        return data.squeeze(axes if numbers is None else one_or_all(numbers))


@operator
class Unsqueeze(Op, onnx="Unsqueeze", versions=(1, 11, 13, 21, 23, 24, 25)):
    def infer(self, data: Type, axes: Type) -> Type:
        numbers = known_ints(axes)
        if numbers is None:
            return data.with_shape(unnamed_dims(data.rank + length(axes)))
        rank = data.rank + len(numbers)
        new = Type(data.dtype, (1,) * rank).axes(numbers)
        if len(set(new)) != len(new):
            raise InvalidOperand(f"expected distinct axes, got {numbers}")
        rest = iter(data.dims)
        return data.with_shape([1 if a in new else next(rest) for a in range(rank)])

    def lower(self, data: Value, axes: Value) -> Value:
        numbers = ints_of(axes)
        return data.unsqueeze(axes if numbers is None else one_or_all(numbers))


@Squeeze.upgrade(1, 11)
@Unsqueeze.upgrade(1, 11)
def axes_attribute(draft: Draft) -> Draft:
    """Upgrade: before 13, the axes were an attribute."""
    return draft.attr_to_input("axes", 1)


@operator
class Concat(Op, onnx="Concat", versions=(1, 4, 11, 13)):
    axis: int

    def infer(self, *inputs: Type) -> Type:
        if len({x.dtype for x in inputs}) != 1:
            shown = " and ".join(x.name for x in inputs)
            raise InvalidOperand(f"expected inputs of one dtype, got {shown}")
        shaped = [x for x in inputs if x.shape is not None]
        if not shaped:
            return inputs[0].with_shape(None)
        if len({x.rank for x in shaped}) != 1:
            shown = " and ".join(x.name for x in inputs)
            raise InvalidOperand(f"expected inputs of one rank, got {shown}")
        (axis,) = shaped[0].axes(self.axis)
        dims = list(equal_dims(shaped, axis))
        dims[axis] = (
            sum(x.dims[axis] for x in shaped)
            if len(shaped) == len(inputs)
            else unnamed_dims(1)[0]
        )
        return shaped[0].with_shape(dims)

    def lower(self, *inputs: Value) -> Value:
        if self.axis == 0:
            return ops.concat(list(inputs))
        return ops.concat(list(inputs), axis=self.axis)


def equal_dims(types: Sequence[Type], free: int | None = None) -> tuple[Dim, ...]:
    """Return the common shape of all types except for the axis ``free``.

    Raises:
        InvalidOperand: the shapes differ.
    """
    shape: list[Dim] = []
    for axis, dims in enumerate(zip(*(t.dims for t in types), strict=True)):
        numbers = {d for d in dims if isinstance(d, int)}
        if axis != free and len(numbers) > 1:
            shown = " and ".join(t.name for t in types)
            raise InvalidOperand(f"expected equal extents on axis {axis}, got {shown}")
        named = [d for d in dims if not isinstance(d, int)]
        shape.append(numbers.pop() if numbers else min(named, key=is_unnamed))
    return tuple(shape)


@Concat.upgrade(1)
def axis_is_required(draft: Draft) -> Draft:
    """Upgrade: before 4, the default axis was 1."""
    return draft if "axis" in draft.attrs else draft.with_attrs(axis=1)


@operator
class Expand(Op, onnx="Expand", versions=(8, 13)):
    def infer(self, x: Type, shape: Type) -> Type:
        dims = known_dims(shape)
        if dims is not None:
            # Of two symbols the target's: the operand's may be 1.
            return x.with_shape(broadcast(Type(x.dtype, dims), x))
        rank = max(x.rank, length(shape))
        return x.with_shape(unnamed_dims(rank))

    def lower(self, x: Value, shape: Value) -> Value:
        dims, extents = dims_of(shape), shape_of(x)
        if dims is None or extents is None:
            return x.expand(shape)
        joint = broadcast(Type(x.dtype, dims), Type(x.dtype, extents))
        assert joint is not None
        if any(map(is_unnamed, joint)):
            return x.expand(shape)
        own = (None,) * (len(joint) - len(extents)) + tuple(extents)
        kept = [-1 if n == e and n != 1 else n for n, e in zip(joint, own, strict=True)]
        has_new = any(n not in (-1, 1) for n in kept)
        return x.expand(kept if has_new else joint)


@operator
class Tile(Op, onnx="Tile", versions=(1, 6, 13)):
    def infer(self, x: Type, repeats: Type) -> Type:
        counts = known_dims(repeats)
        if counts is None:
            return x.with_shape(unnamed_dims(x.rank))
        if len(counts) != x.rank:
            raise InvalidOperand(f"expected {x.rank} repeats, got {len(counts)}")
        dims = [d * n for d, n in zip(x.dims, counts, strict=True)]
        return x.with_shape(dims)

    def lower(self, x: Value, repeats: Value) -> Value:
        counts = ints_of(repeats)
        return ops.tile(x, repeats if counts is None else counts)


@Tile.upgrade(1)
def tiles_along_one_axis(draft: Draft) -> Draft:
    """Upgrade: before 6, the operands were one number and its axis."""
    tiles, axis = known_ints(draft.type(1)), known_ints(draft.type(2))
    if tiles is None or axis is None:
        raise InvalidOperand("expected stored tiles and axis for this version")
    repeats = np.ones(draft.rank(0), np.int64)
    repeats[axis[0]] = tiles[0]
    draft = draft.with_input(1, draft.constant("repeats", repeats))
    node = replace(draft.node, inputs=draft.node.inputs[:2])
    return replace(draft, node=node, types=draft.types[:2])


@operator
class Shape(Op, onnx="Shape", versions=(1, 13, 15, *NEWEST)):
    start: int = 0
    end: int | None = None

    def infer(self, data: Type) -> Type:
        if data.shape is None:
            return Type(int64, unnamed_dims(1))
        dims = data.shape[self.start : self.end]
        return Type(int64, (len(dims),), as_contents(dims))

    def lower(self, data: Value) -> Value:
        shape = ops.shape(data)
        if self.start == 0 and self.end is None:
            return shape
        return shape[self.start or None : self.end]


def as_contents(dims: Sequence[Dim]) -> Array:
    """Return dimensions as the contents of an int64 vector."""
    symbolic = any(isinstance(d, Poly) for d in dims)
    contents = np.empty(len(dims), object if symbolic else np.int64)
    for position, dim in enumerate(dims):
        contents[position] = dim
    return contents


@operator
class Size(Op, onnx="Size", versions=(1, 13, *NEWEST)):
    def infer(self, data: Type) -> Type:
        if data.shape is None:
            return Type(int64, ())
        return Type(int64, (), as_contents([prod(data.shape)]).reshape(()))

    def lower(self, data: Value) -> Value:
        return ops.size(data)


@operator
class Identity(Op, onnx="Identity", versions=(1, 13, 14, 16, *NEWEST)):
    def infer(self, x: AnyType) -> Type:
        return x

    def lower(self, x: Value) -> Value:
        return x


@operator
class Detach(Op, onnx="Detach", versions=(1,), domain="burn"):
    """``x`` as a constant: no gradient passes through the result."""

    def infer(self, x: Type) -> Type:
        return x.forget()

    def lower(self, x: Value) -> Value:
        return ops.detach(x)
