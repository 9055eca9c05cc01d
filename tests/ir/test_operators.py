"""Operators as values: equality, hash, repr and immutability as of dataclasses."""

from dataclasses import FrozenInstanceError, replace
from typing import Any

import numpy as np
import pytest

from burn_ir import Op, operator, operators
from burn_ir.errors import InvalidOperand
from burn_ir.ops.control import If
from burn_ir.ops.creation import ConstantOfShape
from burn_ir.ops.elementwise import Add, Mul
from burn_ir.ops.pool import AveragePool, LpPool, MaxPool
from burn_ir.ops.random import RandomNormal
from burn_ir.ops.reduction import ReduceMax, ReduceMin
from burn_ir.types import Type

COMPILED = {"__init__", "__repr__", "__setattr__", "__delattr__"}


def test_no_operator_has_methods_compiled_for_it() -> None:
    # Those of hundreds of classes took a third of the time of a small import.
    ours = [op for op in operators().values() if op.__module__.startswith("burn_ir.")]
    assert len(ours) > 300
    assert not [op for op in ours if COMPILED & vars(op).keys()]
    own = {op for op in ours if "__eq__" in vars(op)}
    assert own == {ConstantOfShape}  # its array has no truth of its own


def test_operators_are_equal_by_class_and_attributes() -> None:
    assert ReduceMax(keepdims=0) == ReduceMax(0)
    assert hash(ReduceMax(keepdims=0)) == hash(ReduceMax(0))
    assert ReduceMax(keepdims=0) != ReduceMax()
    assert ReduceMax() != ReduceMin()
    assert Add() == Add() and Add() != Mul() and Add() != 0
    assert len({Add(), Add(), Mul(), ReduceMax(), ReduceMax(1)}) == 3


def test_bodies_make_no_difference() -> None:
    one: Any = object()
    other: Any = object()
    assert If(then_branch=one, else_branch=one) == If(other, other)
    assert If(one, other).attrs() == {"else_branch": one, "then_branch": other}


def test_operators_are_shown_with_their_attributes() -> None:
    assert repr(Add()) == "Add()"
    shown = "ReduceMax(keepdims=0, noop_with_empty_axes=0)"
    assert repr(ReduceMax(keepdims=0)) == shown


def test_operators_do_not_change() -> None:
    op: Any = ReduceMax()
    with pytest.raises(FrozenInstanceError, match="keepdims"):
        op.keepdims = 0
    with pytest.raises(FrozenInstanceError, match="keepdims"):
        del op.keepdims
    assert op.with_attrs(keepdims=0) == replace(op, keepdims=0) == ReduceMax(0)
    assert op == ReduceMax()


@pytest.mark.parametrize(
    ("kind", "values", "named", "message"),
    [
        (Add, (1,), {}, "Add: more arguments than fields 1"),
        (ReduceMax, (1,), {"keepdims": 0}, "ReduceMax: two values of keepdims"),
        (ReduceMax, (), {"axis": 0}, "ReduceMax: no field axis"),
        (RandomNormal, (), {"scale": 2.0}, "RandomNormal: no value of shape"),
    ],
)
def test_arguments_set_every_field_once(
    kind: type[Op], values: tuple[Any, ...], named: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        kind(*values, **named)


def test_a_field_named_as_a_method_is_refused() -> None:
    class Clash:
        layer: int = 0

    with pytest.raises(TypeError, match="Clash: 'layer' is a method of Op"):
        operator(Clash)


@pytest.mark.parametrize("pool", [AveragePool, LpPool, MaxPool])
def test_a_window_without_axes_is_refused(pool: Any) -> None:
    with pytest.raises(InvalidOperand, match="kernel_shape with an axis"):
        pool(kernel_shape=()).infer(Type(np.dtype("float32"), (3, 5)))
