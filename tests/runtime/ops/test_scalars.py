"""Python numbers as every operand of every elementwise primitive, beside tensors."""

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import burn
from burn import Tensor, dtypes
from burn.backend.autodiff import Autodiff
from burn.backend.cpu import Cpu
from burn.primitive import Primitive, primitives

FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
INTEGERS = (dtypes.uint8, dtypes.int32, dtypes.int64)
NUMERIC = (*FLOATS, *INTEGERS)
#: The primitives that broadcast all of their operands, and the dtypes they are for.
ELEMENTWISE = {
    **dict.fromkeys(("add", "sub", "mul", "div", "floor_div", "pow"), NUMERIC),
    **dict.fromkeys(("remainder", "fmod", "maximum", "minimum", "clip"), NUMERIC),
    **dict.fromkeys(("equal", "not_equal", "less", "less_equal"), NUMERIC),
    **dict.fromkeys(("greater", "greater_equal"), NUMERIC),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), INTEGERS),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTEGERS),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), (dtypes.bool_,)),
    "trunc_div": INTEGERS,
    "prelu": FLOATS,
}
ELEMENTS = np.array([[1, 2, 3], [4, 3, 2]])
WEIGHTS = np.arange(6.0).reshape(2, 3)


def operands(arity: int, dtype: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    """Operands of which some are Python numbers, and the same ones as arrays."""
    number: Any = True if dtype == dtypes.bool_ else 2
    number = 2.5 if dtypes.is_float(dtype) else number
    for choice in product((False, True), repeat=arity):
        if any(choice) and not all(choice):
            arrays = [(ELEMENTS + i).astype(dtype) for i in range(arity)]
            full = [
                np.full_like(x, number) if weak else x
                for x, weak in zip(arrays, choice, strict=True)
            ]
            given = [
                number if weak else x for x, weak in zip(arrays, choice, strict=True)
            ]
            yield given, full


def on(values: list[Any], backend: Any) -> list[Any]:
    """The arrays among ``values`` as tensors, which are leaves where that is known."""
    made = []
    for x in values:
        if isinstance(x, np.ndarray):
            x = burn.from_numpy(x, backend)
            leaf = backend.tracks_gradients and dtypes.is_float(x.dtype)
            x = x.require_grad() if leaf else x
        made.append(x)
    return made


def compiled(primitive: Primitive[..., Any], values: list[Any]) -> Callable[[], Any]:
    """``primitive`` as a plan of the tensors among ``values``."""

    def of_tensors(*tensors: Tensor) -> Any:
        rest = iter(tensors)
        return primitive(*(next(rest) if isinstance(x, Tensor) else x for x in values))

    plan = burn.compile(of_tensors)
    return lambda: plan(*(x for x in values if isinstance(x, Tensor)))


def assert_equal(found: Tensor, expected: Tensor, error: float = 0.0) -> None:
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    np.testing.assert_allclose(found.numpy(), expected.numpy(), error)


PAIRS = [(name, dtype) for name, kinds in ELEMENTWISE.items() for dtype in kinds]
each_primitive = pytest.mark.parametrize(
    ("name", "dtype"), PAIRS, ids=[f"{n}-{dtypes.name_of(d)}" for n, d in PAIRS]
)


@each_primitive
def test_numbers_are_like_full_arrays(name: str, dtype: Any) -> None:
    primitive = primitives()[name]
    for given, full in operands(3 if name == "clip" else 2, dtype):
        expected = primitive(*on(full, Cpu()))
        values = on(given, Cpu())
        assert_equal(primitive(*values), expected)
        call = compiled(primitive, values)
        for _ in range(3):
            assert_equal(call(), expected)


@each_primitive
def test_gradients_beside_numbers(name: str, dtype: Any) -> None:
    primitive = primitives()[name]
    if primitive.rule is None or not dtypes.is_float(dtype):
        return
    tape = Autodiff(Cpu())
    for given, full in operands(3 if name == "clip" else 2, dtype):
        found, expected = (
            (values, (primitive(*values) * WEIGHTS.astype(dtype)).sum().backward())
            for values in (on(given, tape), on(full, tape))
        )
        for x, y in zip(found[0], expected[0], strict=True):
            if isinstance(x, Tensor) and y in expected[1]:
                assert_equal(found[1][x], expected[1][y], 4 * dtypes.step(dtype))


def test_where_beside_a_number() -> None:
    where = primitives()["where"]
    condition = ELEMENTS > 2
    for dtype in NUMERIC:
        x = ELEMENTS.astype(dtype)
        number: Any = 2.5 if dtypes.is_float(dtype) else 2
        full = np.full_like(x, number)
        for given, same in (
            ((condition, number, x), (condition, full, x)),
            ((condition, x, number), (condition, x, full)),
            ((True, number, x), (np.full_like(condition, True), full, x)),
            ((False, number, x), (np.full_like(condition, False), full, x)),
        ):
            expected = where(*on(list(same), Cpu()))
            values = on(list(given), Cpu())
            assert_equal(where(*values), expected)
            assert_equal(compiled(where, values)(), expected)
