"""Chains of elementwise operations as functions of elements."""

from collections import Counter
from itertools import product
from typing import Any

import numpy as np
import pytest

import burn
from burn import ops
from burn.backend.cuda.kernels.elementwise.printing import PRIMITIVES, is_printed
from burn.ops.elements import Operand, evaluated
from burn.plan.device_passes import device_segment
from burn.plan.executable import Plan
from burn.plan.passes.fusion.elements import KernelSupport
from burn.plan.passes.symbolic_execution import element_of
from burn.plan.plan_ir import Step
from burn.primitive import Primitive, primitives
from tests.runtime.onednn import normal
from tests.runtime.plan.test_seam import OtherDevice, PlainCalls

ABILITIES = KernelSupport(is_printed, PRIMITIVES)


class Device(OtherDevice):
    """A device that computes functions of elements."""

    def bind(self, plan: Plan) -> PlainCalls:
        self.bound.append(PlainCalls(device_segment(plan, ABILITIES), self))
        return self.bound[-1]


def counts(function: Any, *arrays: Any) -> Counter[str]:
    """Return the count of each primitive in the plan; check its results."""
    device = Device()
    plan = burn.compile(function)
    for shift in (0, 1, 2):
        tensors = [burn.from_numpy(np.roll(a, shift), device) for a in arrays]
        expected = function(*tensors).numpy()
        actual = plan(*tensors).numpy()
        assert actual.dtype == expected.dtype
        np.testing.assert_allclose(actual, expected, rtol=2e-3, atol=1e-4)
    steps = device.bound[-1].root.steps
    return Counter(s.primitive.name for s in steps if isinstance(s, Step))


@pytest.mark.parametrize("dtype", ("float16", "float32"))
def test_a_chain_is_one_step(dtype: str) -> None:
    def function(x: Any, y: Any, z: Any) -> Any:
        gate = ops.sigmoid(x * 2.0 + y)
        return ops.where(gate > 0.5, ops.gelu(gate * z), ops.exp(-x)) - z

    arrays = [normal(4, 6), normal(6, seed=1), normal(4, 6, seed=2)]
    kinds = counts(function, *(a.astype(dtype) for a in arrays))
    assert kinds == {"elements": 1}


@pytest.mark.parametrize("dtype", ("float16", "float32"))
def test_selections_of_scalar_arrays_and_angles_are_fused(dtype: str) -> None:
    """A mask of attention, and angles of a rotary embedding."""

    def mask(x: Any, y: Any) -> Any:
        zero, low = (ops.array(value, dtype=x.dtype) for value in (0.0, -65500.0))
        return ops.where(ops.where(x > y, True, x < 0.0), zero, low)

    def turned(x: Any, y: Any) -> Any:
        return x * ops.cos(x * 2.0) + y * ops.sin(x) - ops.tan(y)

    arrays = [normal(4, 6, seed=n).astype(dtype) for n in range(2)]
    assert counts(mask, *arrays) == {"elements": 1}
    assert counts(turned, *arrays) == {"elements": 1}


def test_conversions_join() -> None:
    def function(x: Any) -> Any:
        wide = ops.cast(x, dtype=burn.float32)
        return ops.cast(wide * wide + 1.0, dtype=burn.float16)

    assert counts(function, normal(4, 6).astype("float16")) == {"elements": 1}


def test_a_value_with_two_readers_is_computed_once() -> None:
    def function(x: Any) -> Any:
        y = ops.exp(x)
        return ops.sum(y * 2.0, axis=-1) + ops.max(y, axis=-1)

    assert counts(function, normal(4, 6)) == {"elements": 3, "sum": 1, "max": 1}


def test_smaller_operands_are_not_computed_for_each_element() -> None:
    def function(x: Any, y: Any) -> Any:
        return x * ops.exp(y)

    assert counts(function, normal(4, 6), normal(6, seed=1)) == {"elements": 2}


def test_other_functions_stay() -> None:
    def function(x: Any) -> Any:
        return ops.cumsum(ops.softmax(x + 1.0), axis=-1) % 2.0

    kinds = counts(function, normal(4, 6))
    assert kinds["elements"] == 1
    assert kinds["remainder"] == 1


#: Shapes of one to three operands, with and without scalars among them.
SHAPES = [s for count in (1, 2, 3) for s in product(((3, 4), ()), repeat=count)]


def test_values_that_a_kernel_reads_are_no_constants() -> None:
    """NumPy makes plain arrays of symbolic ones, of which a kernel sees the memory."""

    def kernel(x: Any, y: Any) -> Any:
        return x + np.asarray(y, x.dtype)

    raised: Any = Primitive(kernel, outputs=1, host=False, traceable=True)
    forms = [((3,), np.dtype(np.float32)), ((), np.dtype(np.float32))]
    operands = tuple(Operand(n, dtype) for n, (_, dtype) in enumerate(forms))
    assert element_of(raised, operands, {}, forms) is None
    assert element_of(raised, (operands[0], 2.0), {}, forms) is not None


@pytest.mark.parametrize("dtype", ("float16", "float32", "int64", "bool"))
def test_descriptions_of_primitives(dtype: str) -> None:
    seen = 0
    for primitive in primitives().values():
        for shapes in SHAPES:
            arrays = [np.abs(normal(*s, seed=n)) + 1 for n, s in enumerate(shapes)]
            arrays = [np.asarray(array).astype(dtype) for array in arrays]
            operands = tuple(Operand(n, array.dtype) for n, array in enumerate(arrays))
            forms = [(array.shape, array.dtype) for array in arrays]
            described = element_of(primitive, operands, {}, forms)
            if described is None:
                continue
            element, shape = described
            with np.errstate(invalid="ignore", divide="ignore"):  # the arcsine of 2
                expected = primitive.kernel(*arrays)
                actual = evaluated(element, tuple(arrays))
            assert (actual.shape, actual.dtype) == (shape, element.dtype)
            assert actual.dtype == expected.dtype
            np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-5)
            seen += 1
    assert seen > 10
