"""Views: reshapes and permutations."""

from collections.abc import Sequence
from dataclasses import replace

from burn_import.frontends.torch_export.builder import Builder, Value
from burn_import.frontends.torch_export.registry import Rule, rule
from burn_ir import UnsupportedModel
from burn_ir.ops.support import ELEMENT_NUMBERS

Sizes = Sequence[int | Value]


@rule(
    "aten.view.default",
    "aten.reshape.default",
    "aten._unsafe_view.default",
    "aten.view_copy.default",
    "aten._reshape_copy.default",
    views=True,
)
def view(g: Builder, self: Value, size: Sizes = (), shape: Sizes = ()) -> Value:
    sizes = list(size or shape)
    return g.op("Reshape", self, sizes, allowzero=int(0 in sizes) or None)


@rule("aten.view_as.default", "aten.reshape_as.default", views=True)
def view_as(g: Builder, self: Value, other: Value) -> Value:
    if self.dims == other.dims:
        return self
    return g.op("Reshape", self, [g.extent(other, a) for a in range(other.rank)])


@rule("aten.view.dtype", "aten.view_copy.dtype")
def view_dtype(g: Builder, self: Value, dtype: object) -> Value:
    if self.dtype.itemsize != g.dtype.itemsize:
        raise UnsupportedModel(
            f"expected a view of a dtype as wide as {self.dtype}, got {g.dtype}"
        )
    return g.op("BitCast", self, to=ELEMENT_NUMBERS[g.dtype])


@rule("aten.flatten.using_ints", views=True)
def flatten(g: Builder, self: Value, start_dim: int = 0, end_dim: int = -1) -> Value:
    if self.rank == 0:
        return g.op("Reshape", self, [1])
    start, end = self.axis(start_dim), self.axis(end_dim)
    if start == end:
        return self
    rest = [g.extent(self, axis) for axis in range(end + 1, self.rank)]
    return g.op("Reshape", self, [0] * start + [-1, *rest])


@rule("aten.ravel.default", views=True)
def ravel(g: Builder, self: Value) -> Value:
    return flatten(g, self)


@rule("aten.unflatten.int", views=True)
def unflatten(g: Builder, self: Value, dim: int, sizes: Sizes) -> Value:
    axis = self.axis(dim)
    before = [g.extent(self, a) for a in range(axis)]
    after = [g.extent(self, a) for a in range(axis + 1, self.rank)]
    extents = [*before, *sizes, *after]
    return g.op("Reshape", self, extents, allowzero=1 if 0 in extents else None)


def permute_value(g: Builder, x: Value, perm: Sequence[int]) -> Value:
    """Return ``x`` transposed; ``x`` itself for the identity permutation."""
    if list(perm) == sorted(perm):
        return x
    dims = None if x.dims is None else tuple(x.dims[axis] for axis in perm)
    result = g.op("Transpose", x, perm=tuple(perm))
    return replace(result, dtype=x.dtype, dims=dims)


@rule("aten.permute.default", "aten.permute_copy.default", views=True)
def permute(g: Builder, self: Value, dims: Sequence[int]) -> Value:
    return permute_value(g, self, [self.axis(d) for d in dims])


@rule("aten.transpose_.default", mutates="self")
@rule("aten.transpose.int", "aten.transpose_copy.int", views=True)
@rule("aten.swapaxes.default", "aten.swapdims.default", views=True)
def transpose(
    g: Builder,
    self: Value,
    dim0: int = 0,
    dim1: int = 0,
    axis0: int = 0,
    axis1: int = 0,
) -> Value:
    perm = list(range(self.rank))
    if not perm:
        return self
    a, b = self.axis(dim0 or axis0), self.axis(dim1 or axis1)
    perm[a], perm[b] = perm[b], perm[a]
    return permute_value(g, self, perm)


@rule("aten.t.default", "aten.t_copy.default", views=True)
@rule("aten.numpy_T.default", views=True)
def t(g: Builder, self: Value) -> Value:
    return permute_value(g, self, range(self.rank)[::-1])


@rule(
    "aten.mT.default",
    "aten.mH.default",
    "aten.matrix_H.default",
    "aten.adjoint.default",
    views=True,
)
def matrix_t(g: Builder, self: Value) -> Value:
    return transpose(g, self, -2, -1)


@rule("aten.movedim.int", "aten.movedim.intlist", views=True)
@rule("aten.moveaxis.int", "aten.moveaxis.intlist", views=True)
def movedim(
    g: Builder,
    self: Value,
    source: int | Sequence[int],
    destination: int | Sequence[int],
) -> Value:
    sources = [self.axis(a) for a in _as_list(source)]
    goals = [self.axis(a) for a in _as_list(destination)]
    left = [a for a in range(self.rank) if a not in sources]
    perm = dict(zip(goals, sources, strict=True))
    others = iter(left)
    return permute_value(
        g, self, [perm[a] if a in perm else next(others) for a in range(self.rank)]
    )


def _as_list(axes: int | Sequence[int]) -> Sequence[int]:
    return [axes] if isinstance(axes, int) else axes


@rule("aten.unsqueeze.default", "aten.unsqueeze_copy.default", views=True)
def unsqueeze(g: Builder, self: Value, dim: int) -> Value:
    return g.op("Unsqueeze", self, [dim])


@rule("aten.squeeze.dim", "aten.squeeze.dims", views=True)
@rule("aten.squeeze_copy.dim", "aten.squeeze_copy.dims", views=True)
def squeeze(g: Builder, self: Value, dim: int | Sequence[int]) -> Value:
    assert self.dims is not None
    ones = [axis for axis in _as_list(dim) if self.rank and self.dims[axis] == 1]
    return g.op("Squeeze", self, ones) if ones else self


@rule("aten.squeeze.default", "aten.squeeze_copy.default", views=True)
def squeeze_all(g: Builder, self: Value) -> Value:
    return squeeze(g, self, range(self.rank))


def of_each(apply: Rule) -> Rule:
    """Return the rule that applies another one to each tensor of a list."""

    def apply_all(g: Builder, tensors: Sequence[Value]) -> Sequence[Value]:
        return [replace(apply(g, x), dtype=x.dtype) for x in tensors]

    return apply_all


@rule("aten.atleast_1d.default", views=True)
def atleast_1d(g: Builder, self: Value) -> Value:
    return self if self.rank else g.op("Unsqueeze", self, [0])


@rule("aten.atleast_2d.default", views=True)
def atleast_2d(g: Builder, self: Value) -> Value:
    missing = max(2 - self.rank, 0)
    return g.op("Unsqueeze", self, list(range(missing))) if missing else self


@rule("aten.atleast_3d.default", views=True)
def atleast_3d(g: Builder, self: Value) -> Value:
    axes: Sequence[int] = ((0, 1, 2), (0, 2), (2,), ())[min(self.rank, 3)]
    return g.op("Unsqueeze", self, axes) if axes else self


for _least, _name in ((atleast_1d, "1d"), (atleast_2d, "2d"), (atleast_3d, "3d")):
    rule(f"aten.atleast_{_name}.Sequence")(of_each(_least))


@rule("aten.expand.default", "aten.expand_copy.default", views=True)
@rule("aten.broadcast_to.default", views=True)
def expand(g: Builder, self: Value, size: Sizes, implicit: bool = False) -> Value:
    target = [1 if s == -1 and isinstance(s, int) else s for s in size]
    return g.op("Expand", self, target) if target else self


@rule("aten.expand_as.default", views=True)
def expand_as(g: Builder, self: Value, other: Value) -> Value:
    if self.dims == other.dims:
        return self
    return g.op("Expand", self, g.op("Shape", other))


@rule("aten.broadcast_tensors.default")
def broadcast_tensors(g: Builder, tensors: Sequence[Value]) -> Sequence[Value]:
    results = []
    for x, result in zip(tensors, g.results, strict=True):
        value = x
        for other in tensors:
            if other is not x and x.dims != result.dims:
                value = g.op("Expand", value, g.op("Shape", other))
        results.append(value)
    return results


@rule("aten.pixel_shuffle.default")
def pixel_shuffle(g: Builder, self: Value, upscale_factor: int) -> Value:
    return _blocks(g, "DepthToSpace", self, upscale_factor)


@rule("aten.pixel_unshuffle.default")
def pixel_unshuffle(g: Builder, self: Value, downscale_factor: int) -> Value:
    return _blocks(g, "SpaceToDepth", self, downscale_factor)


def _blocks(g: Builder, op_type: str, x: Value, size: int) -> Value:
    if x.rank != _IMAGES:
        raise UnsupportedModel(f"expected images of rank {_IMAGES}, got {x.rank}")
    return g.op(op_type, x, blocksize=size, mode="CRD")


_IMAGES = 4


@rule("aten.channel_shuffle.default", "aten.native_channel_shuffle.default")
def channel_shuffle(g: Builder, self: Value, groups: int) -> Value:
    sizes = [g.extent(self, axis) for axis in range(self.rank)]
    grouped = g.op("Reshape", self, [sizes[0], groups, -1, *sizes[2:]])
    mixed = g.op("Transpose", grouped, perm=(0, 2, 1, *range(3, self.rank + 1)))
    return g.op("Reshape", mixed, sizes)


@rule("aten.sym_size.int")
def sym_size(g: Builder, self: Value, dim: int) -> Value:
    axis = self.axis(dim)
    return g.op("Squeeze", g.op("Shape", self, start=axis, end=axis + 1), [0])


@rule("aten.sym_numel.default", "aten.numel.default")
def sym_numel(g: Builder, self: Value) -> Value:
    return g.op("Size", self)
