"""Views of complex tensors: real rules applied to pairs of numbers.

The rules are those of real tensors, with an additional last axis that stays.
"""

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

import burn_import.frontends.torch_export.aten.control
import burn_import.frontends.torch_export.aten.math.creation
import burn_import.frontends.torch_export.aten.math.reduction
import burn_import.frontends.torch_export.aten.math.scalars
import burn_import.frontends.torch_export.aten.math.sorting
import burn_import.frontends.torch_export.aten.nn.normalization
import burn_import.frontends.torch_export.aten.shape.concatenation
import burn_import.frontends.torch_export.aten.shape.indexing
import burn_import.frontends.torch_export.aten.shape.scatter
import burn_import.frontends.torch_export.aten.shape.slicing
import burn_import.frontends.torch_export.aten.shape.views  # noqa: F401  these have the rules
from burn_import.frontends.torch_export.aten.shape.concatenation import pad_value
from burn_import.frontends.torch_export.builder import Builder, Operand, Value
from burn_import.frontends.torch_export.complex_as_real import (
    as_pairs,
    axes_of,
    is_complex,
    join_pairs,
    parts,
    reals,
)
from burn_import.frontends.torch_export.registry import COMPLEX, RULES, rule
from burn_ir import UnsupportedModel

Arguments = dict[str, Any]
#: Changes the arguments of a call with the given first tensor.
Change = Callable[[Arguments, Value], Arguments]
#: Arguments with complex numbers; others are indices and masks.
_DATA = frozenset({"input", "other", "self", "source", "src", "tensors", "values"})


def unchanged_arguments(named_args: Arguments, x: Value) -> Arguments:
    """Return the arguments unchanged."""
    return named_args


def shift_axes(*names: str, more: int = 0) -> Change:
    """Return a change to non-negative axes, for ``more`` axes than ``x`` has."""

    def change(named_args: Arguments, x: Value) -> Arguments:
        rank = x.rank + more
        check_axes(rank)
        changed: Arguments = {}
        for name in names:
            dim = named_args[name]
            if isinstance(dim, int):
                changed[name] = dim % rank
            elif dim is not None:
                changed[name] = [axis % rank for axis in dim]
        return {**named_args, **changed}

    return change


def default_axes(named_args: Arguments, x: Value) -> Arguments:
    """Return arguments with all axes but that of the pairs for no reduced axes."""
    check_axes(x.rank)
    return {**named_args, "dim": axes_of(x, named_args["dim"])}


def check_axes(rank: int) -> None:
    """Check that there are axes beside that of the pairs.

    Raises:
        UnsupportedModel: there are none.
    """
    if not rank:
        raise UnsupportedModel("expected a complex tensor with axes, got a scalar")


def append_extent(by: int, *names: str) -> Change:
    """Return a change that appends ``by`` for the axis of the pairs to extents."""

    def change(named_args: Arguments, x: Value) -> Arguments:
        used = [name for name in names if named_args[name]] or names[:1]
        return {**named_args, **{name: [*named_args[name], by] for name in used}}

    return change


def append_axis(named_args: Arguments, x: Value) -> Arguments:
    """Return the arguments with the axis of the pairs last in the permutation."""
    return {**named_args, "dims": [*axes_of(x, named_args["dims"]), x.rank]}


def as_data(g: Builder, name: str, x: Any) -> Any:
    """Return an argument with pairs in place of complex numbers."""
    if name not in _DATA:
        return x
    if isinstance(x, list | tuple):
        return [as_pairs(g, item) if isinstance(item, Value) else item for item in x]
    return as_pairs(g, x) if isinstance(x, Value) else x


def register_for_pairs(change: Change, targets: str) -> None:
    """Register rules of real tensors for pairs of numbers."""
    for target in (f"aten.{name}" for name in targets.split()):
        entry = RULES[target]
        rule(target, views=entry.views, table=COMPLEX)(rule_of_pairs(target, change))


def rule_of_pairs(target: str, change: Change) -> Callable[..., Any]:
    """Return a rule of real tensors as a rule of pairs."""
    real = RULES[target].rule
    signature = inspect.signature(real)

    @wraps(real)
    def apply(g: Builder, *args: Any, **kwargs: Any) -> Any:
        if not is_complex(g.results[0]):
            raise UnsupportedModel(f"expected complex results, got {g.dtype}")
        bound = signature.bind(g, *args, **kwargs)
        bound.apply_defaults()
        _, *rest = bound.arguments.items()
        named_args = dict(rest)
        tensors = [x for v in named_args.values() for x in (v if _is_list(v) else [v])]
        first = next((x for x in tensors if isinstance(x, Value)), g.results[0])
        changed = change(named_args, first)
        return real(reals(g), **{k: as_data(g, k, v) for k, v in changed.items()})

    return apply


def _is_list(x: Any) -> bool:
    return isinstance(x, list | tuple)


register_for_pairs(
    unchanged_arguments,
    "clone.default contiguous.default lift_fresh_copy.default detach_copy.default "
    "alias_copy.default alias.default detach.default lift_fresh.default "
    "resolve_conj.default resolve_neg.default expand_as.default view_as.default "
    "reshape_as.default index.Tensor _unsafe_index.Tensor index_put.default "
    "_unsafe_index_put.default atleast_1d.default flipud.default fliplr.default "
    "zeros_like.default empty_like.default positive.default",
)
register_for_pairs(
    shift_axes("dim"),
    "slice.Tensor slice_copy.Tensor narrow.default narrow_copy.default select.int "
    "select_copy.int unbind.int unbind_copy.int split.Tensor unsafe_split.Tensor "
    "split_copy.Tensor split_with_sizes.default split.sizes unsafe_chunk.default "
    "split_with_sizes_copy.default chunk.default tensor_split.sections "
    "tensor_split.indices index_select.default squeeze.dim squeeze.dims "
    "squeeze_copy.dim cat.default concat.default concatenate.default cumsum.default "
    "unflatten.int select_scatter.default slice_scatter.default index_add.default "
    "index_copy.default",
)
register_for_pairs(
    shift_axes("dim", more=1), "unsqueeze.default unsqueeze_copy.default stack.default"
)
register_for_pairs(
    shift_axes("dim0", "dim1", "axis0", "axis1"),
    "transpose.int transpose_copy.int swapaxes.default swapdims.default",
)
register_for_pairs(shift_axes("start_dim", "end_dim"), "flatten.using_ints")
register_for_pairs(shift_axes("source", "destination"), "movedim.int movedim.intlist")
register_for_pairs(shift_axes("dims"), "flip.default")
register_for_pairs(default_axes, "fft_fftshift.default fft_ifftshift.default")
register_for_pairs(default_axes, "sum.default sum.dim_IntList mean.default mean.dim")
register_for_pairs(
    append_extent(2, "size", "shape"),
    "view.default reshape.default _unsafe_view.default view_copy.default "
    "_reshape_copy.default",
)
register_for_pairs(
    append_extent(2, "size"),
    "expand.default expand_copy.default broadcast_to.default zeros.default "
    "empty.memory_format new_zeros.default new_empty.default",
)
register_for_pairs(append_extent(1, "repeats", "dims"), "repeat.default tile.default")
register_for_pairs(append_axis, "permute.default permute_copy.default")


@rule("aten.pad.default", table=COMPLEX)
def pad_(
    g: Builder, self: Value, pad: Any, mode: str = "constant", value: Operand = None
) -> Value:
    """Pad both parts; the imaginary part of a real ``value`` is 0."""
    if not value:
        return pad_value(reals(g), as_pairs(g, self), [0, 0, *pad], mode)
    real, imaginary = parts(g, self)
    fill = (value, 0) if isinstance(value, int | float) else parts(g, value)
    assert isinstance(real, Value) and isinstance(imaginary, Value)
    a = pad_value(reals(g), real, pad, mode, fill[0])
    return join_pairs(g, a, pad_value(reals(g), imaginary, pad, mode, fill[1]))


@rule("aten.constant_pad_nd.default", table=COMPLEX)
def constant_pad(g: Builder, self: Value, pad: Any, value: Operand = 0) -> Value:
    return pad_(g, self, pad, "constant", value)


@rule("aten.roll.default", table=COMPLEX)
def roll(g: Builder, self: Value, shifts: Any, dims: Any = ()) -> Value:
    if not dims:
        raise UnsupportedModel("expected dims to roll complex numbers along")
    rolled: Value = RULES["aten.roll.default"].rule(
        reals(g), as_pairs(g, self), shifts, axes_of(self, dims)
    )
    return rolled


@rule("aten.squeeze.default", "aten.squeeze_copy.default", views=True, table=COMPLEX)
def squeeze(g: Builder, self: Value) -> Value:
    pairs = as_pairs(g, self)
    squeezed: Value = RULES["aten.squeeze.dims"].rule(reals(g), pairs, range(self.rank))
    return squeezed


@rule("aten.t_copy.default", table=COMPLEX)
@rule("aten.t.default", "aten.numpy_T.default", views=True, table=COMPLEX)
def t(g: Builder, self: Value) -> Value:
    perm = [*range(self.rank)[::-1], self.rank]
    return reals(g).op("Transpose", as_pairs(g, self), perm=tuple(perm))


@rule("aten.mT.default", views=True, table=COMPLEX)
def matrix_t(g: Builder, self: Value) -> Value:
    order = [*range(self.rank - 2), self.rank - 1, self.rank - 2, self.rank]
    return reals(g).op("Transpose", as_pairs(g, self), perm=tuple(order))


@rule("aten.unfold_copy.default", table=COMPLEX)
@rule("aten.unfold.default", views=True, table=COMPLEX)
def unfold(g: Builder, self: Value, dimension: int, size: int, step: int) -> Value:
    """Return windows, on the axis before that of the pairs."""
    pairs, axis = as_pairs(g, self), self.axis(dimension)
    windows = RULES["aten.unfold.default"].rule(reals(g), pairs, axis, size, step)
    perm = (*range(self.rank), self.rank + 1, self.rank)
    return reals(g).op("Transpose", windows, perm=perm)


#: Operators that do not depend on the elements have the rules of real tensors.
for _target in (
    *("aten.sym_size.int", "higher_order.cond", "higher_order.while_loop"),
    *("higher_order.wrap_with_set_grad_enabled", "higher_order.wrap_with_autocast"),
    *("aten._assert_tensor_metadata.default", "higher_order.scan"),
    "higher_order.map_impl",
):
    COMPLEX[_target] = RULES[_target]
