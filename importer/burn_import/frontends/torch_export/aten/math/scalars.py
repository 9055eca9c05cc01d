"""Computed Python numbers, and assertions, which compute nothing."""

from typing import Any

from burn_import.frontends.torch_export.aten.math.cast import to
from burn_import.frontends.torch_export.builder import Builder, Operand, Value
from burn_import.frontends.torch_export.registry import RULES, rule
from burn_ir import UnsupportedModel


@rule(
    "aten._assert_tensor_metadata.default",
    "aten._assert_scalar.default",
    "aten._assert_async.default",
    "aten._assert_async.msg",
    "aten._linalg_check_errors.default",
    "aten.sym_constrain_range.default",
    "aten.sym_constrain_range_for_size.default",
    "aten._functional_assert_async.msg",
    "aten._functional_assert_scalar.default",
    "aten._functional_sym_constrain_range.default",
    "aten._functional_sym_constrain_range_for_size.default",
    "_operator.is_",
    *("aten.promote_types.default", "aten.can_cast.default", "aten.result_type.Tensor"),
    *("aten.result_type.Scalar", "aten.result_type.Scalar_Tensor"),
    "aten.result_type.Scalar_Scalar",
)
def nothing(g: Builder, *args: Any, **kwargs: Any) -> None:
    """Drop an assertion of the exporter; the model's shapes satisfy it.

    A function of dtypes alone has no result in the program, whose calls have the dtype.
    """


@rule("higher_order.with_effects")
def with_effects(g: Builder, token: Any, operator: str, *operands: Any) -> None:
    """Drop an assertion that a token keeps in order.

    Raises:
        UnsupportedModel: the operator is no assertion but another side effect.
    """
    entry = RULES.get(operator.removeprefix("torch.ops."))
    if entry is None or entry.rule is not nothing:
        raise UnsupportedModel(f"expected an assertion among effects, got {operator!r}")


@rule("aten._shape_as_tensor.default")
def shape_as_tensor(g: Builder, self: Value) -> Value:
    """Return the extents of a tensor, as a tensor int64[rank]."""
    return g.op("Shape", self)


@rule("torch.sym_float", "torch.sym_int", "math.trunc", "_operator.pos")
def sym_float(g: Builder, a: Operand) -> Value:
    return g.cast(a)


@rule("torch._sym_sqrt")
def sym_sqrt(g: Builder, a: Operand) -> Value:
    return g.op("Sqrt", g.cast(a))


@rule("_operator.neg")
def neg(g: Builder, a: Operand) -> Value:
    return g.op("Neg", g.cast(a))


@rule("math.ceil")
def ceil(g: Builder, a: Value) -> Value:
    return g.cast(g.at(a.dtype).op("Ceil", a))


@rule("math.floor")
def floor(g: Builder, a: Value) -> Value:
    return g.cast(g.at(a.dtype).op("Floor", a))


@rule("aten.item.default", "aten._local_scalar_dense.default")
def item(g: Builder, self: Value) -> Value:
    """Return the only element of a tensor, as a number."""
    number = to(g, self)
    return g.op("Reshape", number, []) if self.rank else number
