"""Plans whose steps were joined compute what the function does."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

import burn
from burn import ops
from burn.backend.cpu.onednn.binding import engine
from burn.plan.compiled import Compiled
from burn.plan.plan_ir import Step
from tests.runtime.onednn import assert_close, laid_out, normal
from tests.runtime.programs import optimized
from tests.sampling import example_count

WEIGHTS = [burn.Parameter(burn.from_numpy(normal(6, 6, 3, 3, seed=i))) for i in (1, 2)]
BIAS = burn.Parameter(burn.from_numpy(normal(6, seed=3)))


def conv(x: Any, number: int = 0) -> Any:
    return ops.conv(x, WEIGHTS[number], BIAS, padding=1)


#: Functions with the names of the primitives that are left of them.
CASES: dict[str, tuple[Any, list[str]]] = {
    "relu": (lambda x: ops.relu(conv(x)), ["conv_then"]),
    "clip": (lambda x: ops.clip(conv(x), 0.0, 6.0), ["conv_then"]),
    "integers": (lambda x: ops.clip(conv(x), -1, 2), ["conv_then"]),
    "residual": (
        lambda x: ops.relu(conv(ops.relu(conv(x))) + ops.tanh(x)),
        ["conv_then", "tanh", "conv_then"],
    ),
    "residual-first": (
        lambda x: ops.tanh(x) + ops.relu(conv(x)),
        ["tanh", "conv_then"],
    ),
    "two": (lambda x: ops.relu(conv(x) + conv(x, 1)), ["conv", "conv_then"]),
    "three": (
        lambda x: ops.clip(ops.relu(conv(x)) + ops.relu(conv(x, 1)), 0.5, 4.0),
        ["conv_then", "conv_then"],
    ),
    "used-twice": (lambda x: [y := conv(x), ops.relu(y)], ["conv", "relu"]),
    "one-bound": (lambda x: ops.clip(conv(x), 0.0), ["conv", "clip"]),
    "spread": (
        lambda x: conv(x) + ops.mean(ops.tanh(x), (2, 3), keepdims=True),
        ["conv", "tanh", "mean", "add"],
    ),
    "input": (lambda x: conv(x) + x, ["conv", "add"]),
    "number": (lambda x: conv(x) + 1.0, ["conv", "add"]),
    "read": (
        lambda x: ops.relu(y) if bool(ops.sum(y := conv(x)) > -1e9) else y,
        ["conv", "sum", "greater", "relu"],
    ),
}


NUMBERS: dict[str, tuple[float, ...]] = {
    **dict.fromkeys(("add", "gelu", "gelu_tanh", "hard_swish", "relu"), ()),
    **dict.fromkeys(("sigmoid", "silu", "tanh"), ()),
    "clip": (-0.5, 1.5),
    "leaky_relu": (0.2,),
}
MATRIX = burn.Parameter(burn.from_numpy(normal(8, 8, seed=5)))


def dense(x: Any) -> Any:
    return ops.linear(x, MATRIX, burn.from_numpy(normal(8, seed=6)))


CASES |= {
    "dense": (
        lambda x: dense(ops.gelu(dense(x))) + ops.tanh(x),
        ["linear_then", "tanh", "linear_then"],
    ),
    "gelu by tanh": (lambda x: ops.gelu(dense(x), approximate="tanh"), ["linear_then"]),
    "leaky": (lambda x: ops.leaky_relu(conv(x), alpha=0.2), ["conv_then"]),
    "silu": (lambda x: ops.silu(conv(x)), ["conv_then"]),
}


def left(compiled: "Compiled[Any, Any]") -> list[str]:
    """The names of the primitives of the quick plan, of all its segments."""
    segments, names = [optimized(compiled, (), may_split=False)], list[str]()
    for segment in segments:
        names += [s.primitive.name for s in segment.steps if isinstance(s, Step)]
        segments += segment.children.values()
    return names


@settings(max_examples=example_count(30))
@given(
    rows=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    after=st.lists(st.sampled_from(sorted(NUMBERS)), min_size=1, max_size=3),
)
def test_what_follows_a_product(rows: Any, after: list[str]) -> None:
    from burn.ops.fused import linear_then

    names = list(dict.fromkeys(after))
    residual = burn.from_numpy(normal(*rows, 8, seed=2)) if "add" in names else None
    given = (burn.from_numpy(normal(*rows, 8)), MATRIX, None, residual)
    static: Any = {"after": tuple((name, *NUMBERS[name]) for name in names)}
    with engine.whatever_size():
        actual = linear_then(*given, **static)
    with engine.numpy_only():
        expected = linear_then(*given, **static)
    assert_close(actual.numpy(), expected.numpy())


def leaves(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("numpy", [False, True])
def test_joined_steps_compute_the_same(name: str, numpy: bool) -> None:
    function, names = CASES[name]
    compiled = burn.compile(function)
    for seed in range(3):
        x = burn.from_numpy(normal(2, 6, 7, 8, seed=seed))
        if numpy:
            with engine.numpy_only():
                actual, expected = compiled(x), function(x)
        else:
            actual, expected = compiled(x), function(x)
        for a, b in zip(leaves(actual), leaves(expected), strict=True):
            assert_close(a.numpy(), b.numpy())
    assert left(compiled) == names


@settings(max_examples=example_count(40))
@given(
    order=st.permutations(range(4)),
    groups=st.sampled_from([1, 2, 6]),
    stride=st.integers(1, 2),
    after=st.lists(st.sampled_from(sorted(NUMBERS)), min_size=1, max_size=3),
)
def test_what_follows_a_convolution(
    order: Any, groups: int, stride: int, after: list[str]
) -> None:
    from burn.ops.fused import conv_then

    x, weight = normal(2, 6, 9, 8), normal(6, 6 // groups, 3, 3, seed=1)
    shape = ops.conv(*map(burn.from_numpy, (x, weight)), stride=stride, groups=groups)
    residual = laid_out(normal(*shape.shape, seed=2), order)
    names = list(dict.fromkeys(after))
    given = [x, weight, normal(6, seed=4), residual if "add" in names else None]
    tensors = [None if a is None else burn.from_numpy(a) for a in given]
    static: dict[str, Any] = {
        "after": tuple((name, *NUMBERS[name]) for name in names),
        "stride": stride,
        "groups": groups,
    }
    actual = conv_then(*tensors, **static)
    with engine.numpy_only():
        expected = conv_then(*tensors, **static)
    assert_close(actual.numpy(), expected.numpy())


@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite_are_not_lost(special: float) -> None:
    function = CASES["residual"][0]
    compiled = burn.compile(function)
    array = normal(2, 6, 7, 8)
    compiled(burn.from_numpy(array))
    array = array.copy()
    array[0, 1, 2, 3] = special
    x = burn.from_numpy(array)
    np.testing.assert_array_equal(compiled(x).numpy(), function(x).numpy())


def test_weights_that_are_not_finite_are_seen_when_they_are_set() -> None:
    weight = burn.Parameter(burn.from_numpy(normal(4, 4, 3, 3)))
    compiled = burn.compile(lambda x: ops.relu(ops.conv(x, weight)))
    x = burn.from_numpy(normal(1, 4, 6, 6))
    for number in (1.0, np.nan, 2.0):
        array = normal(4, 4, 3, 3)
        array[0, 0, 0, 0] = number
        weight.set(burn.from_numpy(array))
        for _ in range(2):
            actual = compiled(x).numpy()
            expected = ops.relu(ops.conv(x, weight)).numpy()
            np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-4)


def test_layers_of_one_input_whose_weights_are_constant_tensors() -> None:
    weights = [burn.from_numpy(normal(12, 16, seed=seed)) for seed in range(3)]
    plan = burn.compile(lambda x: [ops.linear(x, weight) for weight in weights])
    x = burn.from_numpy(normal(4, 16))
    for _ in range(3):
        for actual, weight in zip(plan(x), weights, strict=True):
            assert_close(actual.numpy(), ops.linear(x, weight).numpy())
    steps = optimized(plan).steps
    names = [step.primitive.name for step in steps if isinstance(step, Step)]
    assert names.count("linear") == 1
